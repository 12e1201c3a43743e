"""What the duel says of recorded matches: how one is played again, told and drawn."""
