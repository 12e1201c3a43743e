"""What the processes of a training tell each other where a rollout begins."""

import hashlib
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import ARRAYS, NONE_RUNNING, Cell, EpisodeBatch, joined
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.processes.exchange import Exchange

NONE = -1  # in the place of a rank: no episode runs that counts


@dataclass(frozen=True)
class RolloutReport:
    """What is known where a rollout begins: by one process, then by all of them."""

    ended: Sequence[EpisodeBatch] = ()  # of each step in which episodes ended, in order
    stop: bool = False  # whether any process is to end the training
    keep: bool = False  # a checkpoint is due: the leader says so
    asked: Sequence[tuple[str, Any]] = ()  # the leader's requests
    again: Sequence[tuple[int, Any]] = ()  # changes that the leader makes once more


class Agreement:
    """Makes the reports of all processes known to each, once a rollout.

    `weights` gives the bytes of what is learned, which must be the same everywhere.
    """

    def __init__(self, exchange: Exchange, first_row: int, weights: Callable[[], bytes]) -> None:
        self._exchange, self._first_row, self._weights = exchange, first_row, weights

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one process."""
        return self._exchange.place.count > 1

    def of_all(
        self, own: RolloutReport, *, step: int, running: int | None, first: int | None
    ) -> RolloutReport:
        """The report of all processes together, their episodes in the order of the rows.

        Where the last rollout began, `running` was the rank of the oldest episode that counts,
        those of scenario `first` and later ones. Raises RunFailedError where a process has learned
        something else.
        """
        if not self.is_shared:
            return own
        said = {
            "steps": packed_episodes(own.ended, self._first_row),
            "running": running,
            "stop": own.stop,
            "weights": hashlib.sha256(self._weights()).hexdigest(),
            "host": socket.gethostname(),
            "leader": [own.keep, list(own.asked), list(own.again)],
        }
        heard = [unpack(one) for one in self._exchange.gather(pack(said))]
        _check_weights(heard, step)
        keep, asked, again = heard[0]["leader"]
        return RolloutReport(
            ended=episodes_of_all(
                [one["steps"] for one in heard], [one["running"] for one in heard], first
            ),
            stop=any(one["stop"] for one in heard),
            keep=keep,
            asked=[tuple(one) for one in asked],
            again=[tuple(one) for one in again],
        )

    def gather(self, state: Any) -> list[Any]:
        """The `state` of every process, in the order of their rows."""
        if not self.is_shared:
            return [state]
        return [unpack(one) for one in self._exchange.gather(pack(state))]


def _check_weights(heard: Sequence[Mapping[str, Any]], step: int) -> None:
    for rank, one in enumerate(heard):
        if one["weights"] != heard[0]["weights"]:
            raise RunFailedError(
                f"process {rank} has other weights than process 0 at step {step:,} (on "
                f"{one['host']} and {heard[0]['host']}): their processors or libraries differ; "
                "train in one process, or on machines of one kind"
            )


def packed_episodes(ended: Sequence[EpisodeBatch], first_row: int) -> dict[str, Any]:
    """The batches `ended` as columns of all their episodes, whose rows are counted among all.

    Of the episodes that run on, only the oldest is kept that counts, as `EpisodeBatch.beside`
    leaves it.
    """
    running = [int(one.running_order[0]) if one.running_order.size else NONE for one in ended]
    cells = [cell for one in ended for cell in one.cell]
    kinds = list(dict.fromkeys(cells))
    found: dict[str, Any] = {
        "step": np.array([one.step for one in ended], np.int64),
        "count": np.array([len(one.cell) for one in ended], np.int64),
        "running": np.array(running, np.int64),
        "kinds": [None if kind is None else list(kind) for kind in kinds],
        "cell": np.array([kinds.index(cell) for cell in cells], np.int64),
    }
    if ended:
        for name in ARRAYS:
            found[name] = np.concatenate([getattr(one, name) for one in ended])
        found["row"] = found["row"] + first_row
        found["own"] = {
            name: np.concatenate([one.columns[name] for one in ended]) for name in ended[0].columns
        }
    return found


def episodes_of_all(
    parts: Sequence[Mapping[str, Any]], running: Sequence[int | None], first: int | None
) -> list[EpisodeBatch]:
    """The batches of all `parts`, those of the same step together.

    Where each part began, its oldest episode had the rank `running`.
    """
    oldest, places = list(running), [0] * len(parts)
    ends = [np.cumsum(part["count"]) for part in parts]
    ended = []
    for step in sorted({int(one) for part in parts for one in part["step"]}):
        batches = []
        for rank, part in enumerate(parts):
            at = places[rank]
            if at < len(part["step"]) and part["step"][at] == step:
                end = int(ends[rank][at])
                batches.append(_batch(part, slice(end - int(part["count"][at]), end), step))
                runs = int(part["running"][at])
                oldest[rank], places[rank] = None if runs == NONE else runs, at + 1
        known = min((one for one in oldest if one is not None), default=None)
        ended.append(joined(batches).beside(known, first))
    return ended


def _batch(part: Mapping[str, Any], which: slice, step: int) -> EpisodeBatch:
    """The episodes `which` of `part`, which ended at `step`."""
    kinds = [None if kind is None else Cell(*kind) for kind in part["kinds"]]
    return EpisodeBatch(
        **{name: part[name][which] for name in ARRAYS},
        cell=tuple(kinds[k] for k in part["cell"][which].tolist()),
        running_order=NONE_RUNNING,
        running_scenario=NONE_RUNNING,
        columns={name: column[which] for name, column in part["own"].items()},
        step=step,
    )
