"""Kernels of networks of parts: encoders, memories, actor and critic, forward and backward.

As those of `training.fused.core`, which they import beside `foundation.kernels`.
"""
