"""Worlds: batches of rows that are stepped together, each in a package of its own.

`worlds.registry` is all that the layers above use to make one.
"""
