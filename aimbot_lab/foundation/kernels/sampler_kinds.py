"""The kinds of samplers in kernels' arrays; apart, so that loading them loads no numba."""

CONSTANT, UNIFORM, GAUSSIAN, RANGES = range(4)
