"""Self-play: snapshots of the learner, who plays against which, and what the games say of them.

`session` is what a training holds; its past selves are what a world asks. A snapshot's weights
never change, and everything that is drawn comes from generators of its own, so that a training
that goes on from a checkpoint ends with the same games and weights to the bit.
"""
