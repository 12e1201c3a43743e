"""Evaluation: an agent on fixed seeds, reported with intervals.

Knows worlds and actions, not learning: an agent is a function from observations to actions.
"""
