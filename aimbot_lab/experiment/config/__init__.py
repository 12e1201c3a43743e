"""Curriculum files: read with positions, overridden, resolved and checked.

`load_curriculum` and `check_files` create nothing, answer every broken file with a
ConfigurationError that lists all its faults, and load none of torch, stable-baselines3, MLflow and
numba; only `interpolation` imports OmegaConf.
"""
