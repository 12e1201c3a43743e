"""One training on several machines: who belongs to it, what its launchers tell each other.

The machine with the meeting point leads: its launcher holds a store there, decides alone when a
round of workers begins, who takes part in it and what a loss means, and has rank 0. The others say
how their workers are, and do what it orders. All messages are JSON: nothing that comes over the
network is unpickled.
"""
