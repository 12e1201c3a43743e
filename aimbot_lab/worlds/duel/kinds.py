"""Kinds of matches, by who sits in the away seat."""

from aimbot_lab.worlds.duel.core.state import KINDS as PLAYED

TARGET = PLAYED[0]
"""Both seats are played from outside."""
SCRIPTS = PLAYED[1:]
"""A scripted player."""
SELF, REFERENCE = "self", "reference"
LEARNED = (SELF, REFERENCE)
"""A past self of the learner: any that is drawn, or the one that its lesson began with."""
KINDS = (*PLAYED, *LEARNED)
"""All of them, in the order of their numbers."""
