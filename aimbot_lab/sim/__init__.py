"""The arena: a vectorised FPS simulator, one row per environment.

`Arena` is the friendly layer, `sim.core` the numba kernels. Imported by faces, evaluation and
experiment; knows nothing of learning, files of a run, or tracking.
"""
