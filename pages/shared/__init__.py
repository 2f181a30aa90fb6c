"""Parts that several pages use: the table of pages, links, loaders and drawing; nothing here computes a result."""
