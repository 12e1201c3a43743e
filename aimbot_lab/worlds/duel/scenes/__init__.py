"""What the duel says of pages: matches as numbers, in the home agent's frame."""
