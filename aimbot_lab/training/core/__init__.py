"""Kernels of learning: actor and critic, forward and backward, and the loss between.

Imported by the fused engine of training. Plain functions over arrays that write into what they
are given; of the project they import each other and what `foundation` has for kernels.
"""
