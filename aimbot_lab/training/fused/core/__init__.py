"""Kernels of the fused engine: a network's parts forward and backward, acting, and the loss.

Plain functions over arrays that write into what they are given; of the project they import each
other and `foundation.kernels`. `network` goes through a network's parts in
order, there and back; `act` and `learn` are what is called.
"""
