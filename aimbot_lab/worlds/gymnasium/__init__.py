"""Any Gymnasium environment as a world: many copies of it, stepped one after the other.

`GymnasiumWorld` is the world, `spaces` maps observations and actions to columns. Imported by
`worlds.registry` and by `worlds.pettingzoo`, which builds on it; knows nothing of learning, the
files of a run, or tracking.
"""
