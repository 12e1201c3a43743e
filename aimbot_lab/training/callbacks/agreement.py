"""What the processes of a training tell each other where a rollout begins."""

import hashlib
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.callbacks.taken_steps import NOBODY, TakenStep, with_running
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.processes.exchange import Exchange

COLUMNS = "row", "agent", "order", "scenario", "outcome", "length", "terms"
NONE = -1  # the rank of nobody


@dataclass(frozen=True)
class Told:
    """What is known where a rollout begins: by one process, then by all of them."""

    steps: Sequence[TakenStep] = ()
    stop: bool = False  # somebody asks for the training's end
    keep: bool = False  # a checkpoint is due: the leader says so
    asked: Sequence[tuple[str, Any]] = ()  # the leader's requests
    again: Sequence[tuple[int, Any]] = ()  # changes that the leader makes once more


class Agreement:
    """Has every process know what all of them tell, once a rollout.

    `weights` gives the bytes of what is learned, which must be the same everywhere.
    """

    def __init__(self, exchange: Exchange, first_row: int, weights: Callable[[], bytes]) -> None:
        self._exchange, self._first_row, self._weights = exchange, first_row, weights

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one process."""
        return self._exchange.place.count > 1

    def of_all(self, told: Told, *, step: int, running: int | None, first: int | None) -> Told:
        """What all tell, the steps of all rows together, in the order of the rows.

        Where the last rollout began, `running` was the rank of the oldest episode that counts,
        those of scenario `first` and later ones. Raises RunFailedError where a process has learned
        something else.
        """
        if not self.is_shared:
            return told
        said = {
            "steps": columns_of_steps(told.steps, self._first_row),
            "running": running,
            "stop": told.stop,
            "weights": hashlib.sha256(self._weights()).hexdigest(),
            "host": socket.gethostname(),
            "leader": [told.keep, list(told.asked), list(told.again)],
        }
        heard = [unpack(one) for one in self._exchange.gather(pack(said))]
        _check_weights(heard, step)
        keep, asked, again = heard[0]["leader"]
        return Told(
            steps=steps_of_all(
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


def columns_of_steps(steps: Sequence[TakenStep], first_row: int) -> dict[str, Any]:
    """`steps` as columns of all their episodes, whose rows are counted among all."""
    batches = [one.episodes for one in steps]
    running = [int(one.running_order[0]) if one.running_order.size else NONE for one in batches]
    cells = [cell for one in batches for cell in one.cell]
    kinds = list(dict.fromkeys(cells))
    found: dict[str, Any] = {
        "step": np.array([one.step for one in steps], np.int64),
        "count": np.array([len(one.cell) for one in batches], np.int64),
        "running": np.array(running, np.int64),
        "kinds": [None if kind is None else list(kind) for kind in kinds],
        "cell": np.array([kinds.index(cell) for cell in cells], np.int64),
    }
    if batches:
        for name in COLUMNS:
            found[name] = np.concatenate([getattr(one, name) for one in batches])
        found["row"] = found["row"] + first_row
        own = batches[0].columns
        found["own"] = {
            name: np.concatenate([one.columns[name] for one in batches]) for name in own
        }
    return found


def steps_of_all(
    parts: Sequence[Mapping[str, Any]], running: Sequence[int | None], first: int | None
) -> list[TakenStep]:
    """The steps of all `parts`; where each began, its oldest episode had the rank `running`."""
    oldest, places = list(running), [0] * len(parts)
    ends = [np.cumsum(part["count"]) for part in parts]
    steps = []
    for step in sorted({int(one) for part in parts for one in part["step"]}):
        batches = []
        for rank, part in enumerate(parts):
            at = places[rank]
            if at < len(part["step"]) and part["step"][at] == step:
                end = int(ends[rank][at])
                batches.append(_batch(part, slice(end - int(part["count"][at]), end)))
                runs = int(part["running"][at])
                oldest[rank], places[rank] = None if runs == NONE else runs, at + 1
        known = min((one for one in oldest if one is not None), default=None)
        steps.append(TakenStep(step, with_running(joined_episodes(batches), known, first)))
    return steps


def _batch(part: Mapping[str, Any], which: slice) -> EpisodeBatch:
    """The episodes `which` of `part`."""
    kinds = [None if kind is None else Cell(*kind) for kind in part["kinds"]]
    return EpisodeBatch(
        **{name: part[name][which] for name in COLUMNS},
        cell=tuple(kinds[k] for k in part["cell"][which].tolist()),
        running_order=NOBODY,
        running_scenario=NOBODY,
        columns={name: column[which] for name, column in part["own"].items()},
    )


def joined_episodes(batches: Sequence[EpisodeBatch]) -> EpisodeBatch:
    """The episodes of several processes in the same step."""
    if len(batches) == 1:
        return batches[0]
    columns = {
        name: np.concatenate([one.columns[name] for one in batches]) for name in batches[0].columns
    }
    found: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in batches]) for name in COLUMNS
    }
    return batches[0]._replace(
        **found,
        cell=tuple(cell for one in batches for cell in one.cell),
        columns=columns,
    )
