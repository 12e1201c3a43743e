"""The fused engine: acting and learning of our own PPO on the CPU, without autograd.

`core` holds the kernels.
"""
