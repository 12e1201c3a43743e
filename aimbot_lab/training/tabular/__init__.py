"""Learning with a table in place of a network: an action's value for every state."""
