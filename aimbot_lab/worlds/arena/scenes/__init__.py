"""Rows that a person edits between steps: things placed, targets assigned, scenes kept.

Rows are edited by plain Python between steps; no kernel knows of it, and a step costs the same.
"""
