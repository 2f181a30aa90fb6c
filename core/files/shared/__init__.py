"""Files that many machines share at an address: reached, copied to this machine, held by one at a time."""
