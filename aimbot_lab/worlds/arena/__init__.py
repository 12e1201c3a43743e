"""The arena: a vectorised FPS simulator, one row per environment.

`Arena` is the friendly layer, `core` the numba kernels, `presets` the target blocks as data.
Knows nothing of learning, the files of a run, or tracking.
"""
