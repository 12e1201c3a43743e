"""Runs as the data folder and the store know them: opened, owned, listed, ended, deleted."""
