"""The composition root: a curriculum's YAML becomes settings, settings become a tracked training.

`config` reads files, `conversion` makes them of ML-Agents' and rl-zoo3's, `runs` trains and
resumes, `analysis` evaluates and compares.
"""
