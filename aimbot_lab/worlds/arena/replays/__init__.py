"""What the arena says of recorded episodes: how a row is played again, described and drawn."""
