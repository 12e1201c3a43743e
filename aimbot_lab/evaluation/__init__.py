"""Evaluation: an agent on fixed seeds, told with intervals.

Knows worlds and actions, not learning: an agent is a function from observations to actions.
"""
