"""What stands around every page: the server, its doors, the menu, who may do what."""
