"""Gorge Walk's kernels: plain functions over arrays.

They write into what they are given, allocate nothing, and import nothing but
`foundation.kernels` and each other.
"""
