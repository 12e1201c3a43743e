"""The composition root: a curriculum's YAML becomes settings, settings become a tracked training.

`config` reads files, `ml_agents` converts those of ML-Agents, `runs` trains and resumes, `analysis`
evaluates and compares.
"""
