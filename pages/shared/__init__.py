"""What pages share: the table of pages, the link, the loaders and the drawing; nothing here computes a result."""
