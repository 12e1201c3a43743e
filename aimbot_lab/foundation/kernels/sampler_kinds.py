"""The kinds of samplers in kernels' arrays; apart, so that loading them loads no numba."""

KINDS = CONSTANT, UNIFORM, GAUSSIAN, RANGES = (0, 1, 2, 3)
