"""Benchmarks, for the commands of `aimbot-lab bench`: each is a function that gives a `Report`.

`turns` is the harness: variants by turns, ratios with intervals, processes of their own, reports.
"""

ABLATION_TASKS = "recall", "duel", "stale"
"""What variants of `ablation` learn beside targets; here, so that help loads nothing for it."""
