"""What every other package may use: errors, the world protocol, episodes, seeds, settings."""
