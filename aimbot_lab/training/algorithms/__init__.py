"""Algorithms by name (`registry`), and our own PPO: `hybrid_ppo`, `ppo_update`, `buffers`."""
