"""`aimbot-lab play`: a world played by a person, or by a list of commands."""
