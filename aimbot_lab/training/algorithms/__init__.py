"""Algorithms by name (`registry`), and our own PPO: `hybrid_ppo` and `ppo_update`."""
