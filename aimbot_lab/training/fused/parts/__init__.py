"""The fused engine for networks of parts: encoders, a target to aim at, memories.

What differs from the engine of plain layers; `core` has the kernels. Without a memory a chunk is a
single step.
"""
