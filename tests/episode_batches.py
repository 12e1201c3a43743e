"""Batches of episodes for tests that feed them by hand."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch, parse_lines


def ended_batch(
    lines: Sequence[str],
    *,
    order: Sequence[int] | np.ndarray,
    running: Sequence[int] | np.ndarray,
    scenario: int | Sequence[int] | np.ndarray = 1,
    running_scenario: int = 1,
    row: Sequence[int] | None = None,
) -> EpisodeBatch:
    """Episodes that ended with these result lines, those that carry none left out.

    `order` has the rank of each, `running` those of the episodes that now run.
    """
    read = parse_lines(lines)
    count = len(read.cell)
    return EpisodeBatch(
        row=np.zeros(count, np.int64) if row is None else np.array(row, np.int64)[read.place],
        agent=np.zeros(count, np.int64),
        order=np.array(order, np.int64)[read.place],
        scenario=np.broadcast_to(scenario, len(lines))[read.place].astype(np.int64),
        cell=read.cell,
        outcome=read.outcome,
        length=np.ones(count, np.int64),
        terms=read.returns[:, None],
        running_order=np.array(running, np.int64),
        running_scenario=np.full(len(running), running_scenario, np.int64),
        columns={} if np.isnan(read.seconds).any() else {"seconds": read.seconds},
        unread=read.unread,
    )
