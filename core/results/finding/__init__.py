"""Where rows lie and what was read of them lately, for stores that are looked at again and again."""
