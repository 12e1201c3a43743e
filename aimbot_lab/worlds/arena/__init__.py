"""The arena: a vectorised FPS simulator, one row per environment.

`Arena` is the friendly layer, `core` the numba kernels, `data` the shipped target blocks.
Knows nothing of learning, the files of a run, or tracking.
"""
