"""How charts, tables and text of others come to a page."""
