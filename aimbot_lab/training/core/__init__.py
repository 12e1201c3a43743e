"""Kernels of learning: what lies between the matrix products of an update.

Imported by the fused engine of training. Plain functions over arrays that write into what they
are given; they import nothing of the project but the compiler and each other.
"""
