"""The command `aimbot-lab bench` and its parts."""
