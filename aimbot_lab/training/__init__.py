"""Learning: policies, algorithms and callbacks on torch and stable-baselines3.

Imported by experiment. Must stay free of files, YAML and MLflow.
"""
