"""Replays: episodes kept as a beginning and its actions, played again, and shown.

A replay holds all that its episode depends on, so it must play the same in every process, or be
refused.
"""
