"""What the panel costs a training."""
