"""Curriculum files: read with positions, overridden, resolved and checked.

`load_curriculum` creates nothing, answers every broken file with a ConfigurationError that lists
all its faults, and loads none of torch, stable-baselines3, MLflow and numba; only `yaml_reader`
imports OmegaConf.
"""
