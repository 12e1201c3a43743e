"""Benchmarks: how fast the simulator is on this machine, and where its time goes.

Every figure is the best of several short repeats, since whatever else a machine does can only
slow a repeat down.
"""
