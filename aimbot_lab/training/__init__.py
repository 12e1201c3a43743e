"""Learning: algorithms, networks, agents and callbacks on torch and stable-baselines3.

`training.training` assembles one training. Free of YAML and MLflow.
"""
