"""Which past selves to meet: the same training under each sampling, as runs that a league rates.

`bench self-play` imports it. Trainings are tracked runs, found again by their tag, so that what was
broken off goes on where it stopped.
"""
