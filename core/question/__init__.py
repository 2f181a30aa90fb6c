"""Questions that can be measured: data classes that validate themselves. Nothing here measures or reads a row."""
