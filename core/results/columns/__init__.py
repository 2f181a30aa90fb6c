"""The columns of a row, in groups, and how a column is declared."""
