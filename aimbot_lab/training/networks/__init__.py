"""Networks: what they see, their actions' distributions, and the policies of our own PPO."""
