"""Files of other trainers, ML-Agents and rl-zoo3, converted to curricula."""
