"""Builds that speak ML-Agents' protocol, such as Unity's, as a world: processes of many agents.

`UnityWorld` is the world; `probe` starts a build once to ask for its shape. Knows nothing of
learning, the files of a run, or tracking.
"""
