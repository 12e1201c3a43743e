"""Films of matches: what both agents see side by side, the hall from above, healths and result."""
