"""What computes a training of our own PPO: torch, or a faster engine where it suits the policy."""
