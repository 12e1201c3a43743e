"""Kernels of learning: actor and critic, forward and backward, and the loss between.

Plain functions over arrays that write into what they are given; of the project they import each
other and `foundation.kernels`.
"""
