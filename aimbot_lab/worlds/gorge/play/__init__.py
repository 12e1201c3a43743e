"""Gorge Walk played by a person: which game, what is seen of it, how it ended."""
