"""PettingZoo's parallel environments as worlds: each agent has a seat of every row.

`JointEnv` shows such an environment as one of Gymnasium's, so that all of worlds.gymnasium (copies,
processes, resuming, faults in a line) serves it, too. The home of pettingzoo among the worlds.
"""
