"""Learning: algorithms, networks, agents and callbacks on torch and stable-baselines3.

`training.training` assembles one training. Imported by experiment. Free of YAML and MLflow.
"""
