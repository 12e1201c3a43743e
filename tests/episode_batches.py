"""Batches of episodes for tests that feed them by hand."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch, UnparsedLineError, parse_result


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
    read, unread = {}, []
    for number, line in enumerate(lines):
        try:
            read[number] = parse_result(line)
        except UnparsedLineError as error:
            unread.append(str(error))
    count, places, found = len(read), np.array(list(read), np.int64), read.values()
    seconds = np.array([one.seconds for one in found], np.float64)
    return EpisodeBatch(
        row=np.zeros(count, np.int64) if row is None else np.array(row, np.int64)[places],
        agent=np.zeros(count, np.int64),
        order=np.array(order, np.int64)[places],
        scenario=np.broadcast_to(scenario, len(lines))[places].astype(np.int64),
        cell=tuple(one.cell for one in found),
        outcome=np.array([one.outcome for one in found], np.int8),
        length=np.ones(count, np.int64),
        terms=np.array([one.episode_return for one in found], np.float64)[:, None],
        running_order=np.array(running, np.int64),
        running_scenario=np.full(len(running), running_scenario, np.int64),
        columns={} if np.isnan(seconds).any() else {"seconds": seconds},
        unread=tuple(unread),
    )
