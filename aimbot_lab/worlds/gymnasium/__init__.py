"""Any Gymnasium environment as a world: many copies of it, stepped one after the other.

`GymnasiumWorld` is the world, `spaces` maps observations and actions to columns. The home of
gymnasium among the worlds; knows nothing of learning, the files of a run, or tracking.
"""
