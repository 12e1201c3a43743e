"""Algorithms by name (`registry`), and what our own PPO consists of: update, buffers, losses.

`rollout_algorithms` and `replay_buffer_algorithms` list those of stable-baselines3 and sb3-contrib.
"""
