"""Self-play: snapshots of the learner, who plays against which, and what the games say of them.

`past_selves` is what a world asks; `session` is what a training holds. A snapshot's weights never
change, and everything that is drawn comes from generators of its own, so that a training that goes
on from a checkpoint ends with the same games and weights to the bit.
"""
