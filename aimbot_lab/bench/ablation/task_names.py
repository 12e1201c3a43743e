"""Names of tasks that are not targets of the default world; loads nothing, so that help is fast."""

RECALL, DUEL, STALE = "recall", "duel", "stale"
OWN_TASKS = RECALL, DUEL, STALE
