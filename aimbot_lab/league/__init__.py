"""Leagues: agents of runs, their snapshots and scripted players, each against each, and rated.

The command line calls `plan_league` and `play_league`. Games are played in worlds of two sides;
nothing here knows which world that is.
"""
