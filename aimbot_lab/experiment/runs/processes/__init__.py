"""A run that several processes train: one leads and tracks it, the others follow."""
