"""Scripted players to measure agents against, from the weakest: still, random, greedy, aimbot."""
