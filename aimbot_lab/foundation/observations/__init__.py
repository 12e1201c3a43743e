"""Parts of a flat observation that a network may treat in its own way."""
