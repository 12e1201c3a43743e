"""What kernels are made of: the compiler, random numbers, arithmetic, matrix products.

The home of numba. Imported by kernels and by what calls them.
"""
