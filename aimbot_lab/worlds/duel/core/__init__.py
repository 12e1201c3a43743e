"""Kernels of the duel: plain functions over NamedTuples of arrays, beside the arena's own.

What a seat does is worked out from its own frame alone, so that both sides give the same bits.
"""
