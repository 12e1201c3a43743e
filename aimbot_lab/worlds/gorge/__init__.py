"""Gorge Walk: a hero on a 64 x 64 grid, from a start to an end, with treasures on the way.

`core` holds the numba kernels, `data` the shipped map. Knows nothing of learning, the files of a
run, or tracking.
"""
