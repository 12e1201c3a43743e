"""The fused engine: acting and learning of our own PPO on the CPU, without autograd.

There is one for all networks: a plain one is a network of parts (encoders, a target to aim at,
memories) without parts, and without a memory a chunk is a single step. `core` holds the kernels,
`policy` says which policies suit.
"""
