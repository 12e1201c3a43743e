"""Algorithms: which exist, what their settings mean, and our own PPO for hybrid actions."""
