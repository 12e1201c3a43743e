"""Intervals of rates and means, and measures of episodes. Imported by every layer."""
