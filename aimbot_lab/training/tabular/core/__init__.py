"""Kernels of a table of action values.

They write into what they are given, allocate nothing, and import nothing but
`foundation.kernels` and each other.
"""
