"""What kernels are made of: the compiler, random numbers, arithmetic, matrix products.

The home of numba.
"""
