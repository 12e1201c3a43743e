"""Actors: worlds in processes of their own that roll out, while one learner learns from all.

`training.training` uses it where a curriculum has `train.actors`; `cluster` places the same actors
on machines. In step (`lag` 0) an arena learns what one process learns, to the bit.
"""
