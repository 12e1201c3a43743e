"""Tracked runs judged: evaluated, compared, explained, filmed."""
