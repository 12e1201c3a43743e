"""The section `self_play` with the others: the world that is trained in, and what is wrong."""
