"""The composition root: a curriculum's YAML becomes settings, settings become a training.

Imported by sweep and cli. What must stay true: `load_curriculum` and `check_files` create
nothing, answer every broken file with a ConfigurationError that lists all its faults, and load
none of torch, stable-baselines3, MLflow and numba; only `composition` imports OmegaConf.
"""
