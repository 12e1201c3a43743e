"""Recorded episodes: which there are, and their moments as a page plays them."""
