"""Threads that work on one task without the interpreter: their synchronisation and their pool."""
