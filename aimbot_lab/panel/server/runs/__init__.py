"""Runs as the panel sees them: which there are, how one stands, what it came to, and new ones."""
