"""Threads that work on one task without the interpreter: their synchronisation and their pool.

Imported by worlds and the fused engine.
"""
