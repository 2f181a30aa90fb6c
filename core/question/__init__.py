"""What can be asked: plain data that check themselves. Nothing here measures, draws or reads a row."""
