"""Files: whole-or-nothing writes, and columns out of tables."""
