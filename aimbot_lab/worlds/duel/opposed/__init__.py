"""The duel for one agent: it plays home, and scripted players sit in the away seats."""
