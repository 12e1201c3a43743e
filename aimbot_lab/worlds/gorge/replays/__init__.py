"""What Gorge Walk says of recorded episodes: how a row is played again, told and drawn."""
