"""Past selves that are kept, and their scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from safetensors import SafetensorError
from safetensors.torch import save

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.files import read_bounded
from aimbot_lab.foundation.ratings import expected_score, ratings_of
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import MAX_WEIGHTS_BYTES, policy_of
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.settings import TrainSettings

GAMES_NAME = "games.csv"
GAMES_HEAD = "player,opponent,wins,draws,losses\n"
SCORES = (1.0, 0.5, 0.0)  # of a win, a draw, a loss
HALF_LIFE = 256  # games of the learner with the same snapshot
DECAY = 0.5 ** (1.0 / HALF_LIFE)
POINTS = 400.0  # in which the odds grow tenfold
FAR = 100_000.0  # from 0, beyond which powers of ten leave the range of floats


class GamesTable:
    """Wins, draws and losses of pairs of players, by their names."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = {}

    def add(self, player: str, opponent: str, score: float) -> None:
        """Take a game in which `player` had 1, 0.5 or 0 points."""
        counts = self._counts.setdefault((player, opponent), [0, 0, 0])
        counts[SCORES.index(score)] += 1

    def rows(self) -> Iterator[tuple[str, str, int, int, int]]:
        """(player, opponent, wins, draws, losses) of all pairs, as they first met."""
        return ((*pair, won, drawn, lost) for pair, (won, drawn, lost) in self._counts.items())

    def counts(self, players: Sequence[str]) -> np.ndarray:
        """[P, P, 3] wins, draws and losses of each of `players` against each."""
        place = {name: number for number, name in enumerate(players)}
        found = np.zeros((len(players), len(players), 3), np.int64)
        for player, opponent, wins, draws, losses in self.rows():
            one, other = place[player], place[opponent]
            found[one, other] += (wins, draws, losses)
            found[other, one] += (losses, draws, wins)
        return found

    @property
    def players(self) -> tuple[str, ...]:
        """The names of all players, in the order of their first games."""
        return tuple(dict.fromkeys(name for pair in self._counts for name in pair))

    def text(self) -> str:
        """The table as CSV."""
        return GAMES_HEAD + "".join(",".join(map(str, row)) + "\n" for row in self.rows())

    def state(self) -> list[list[Any]]:
        """Plain JSON values."""
        return [list(row) for row in self.rows()]

    def resume(self, state: Sequence[Sequence[Any]]) -> None:
        """Go on from what `state()` gave."""
        self._counts = {(player, other): list(counts) for player, other, *counts in state}


class Rated(NamedTuple):
    """A rating in points, its 95 % interval, and the games that it rests on."""

    rating: float
    lower: float
    upper: float
    games: int


def rated_players(
    games: GamesTable, names: Sequence[str], *, anchor: str, points: float
) -> dict[str, Rated]:
    """The rating of each of `names`, on a scale where `anchor` has exactly `points`.

    Intervals are those of the difference to it.
    """
    players = tuple(dict.fromkeys((anchor, *names, *games.players)))
    counts = games.counts(players)
    ratings = ratings_of(counts)
    above, errors, played = ratings.above(0), ratings.error_above(0), counts.sum(axis=(1, 2))
    found = {}
    for name in names:
        place = players.index(name)
        rating, error = points + float(above[place]), float(errors[place])
        found[name] = Rated(rating, rating - error, rating + error, int(played[place]))
    return found


class RecentScores:
    """Discounted scores and games with each snapshot, by its number; a draw is half a score.

    A snapshot that was not met counts as one that was drawn with once.
    """

    def __init__(self) -> None:
        self._scores: list[float] = []
        self._games: list[float] = []

    def add(self, snapshot: int, score: float) -> None:
        """Take a game with `snapshot`."""
        missing = snapshot + 1 - len(self._games)
        self._scores += [0.0] * missing
        self._games += [0.0] * missing
        self._scores[snapshot] = DECAY * self._scores[snapshot] + score
        self._games[snapshot] = DECAY * self._games[snapshot] + 1.0

    def expected(self, count: int) -> npt.NDArray[np.float64]:
        """The expected score [count] against each of the first snapshots."""
        games, scores = np.zeros(count), np.zeros(count)
        known = min(count, len(self._games))
        games[:known], scores[:known] = self._games[:known], self._scores[:known]
        return np.asarray((scores + 0.5) / (games + 1.0))

    def state(self) -> list[list[float]]:
        """Plain JSON values."""
        return [list(self._scores), list(self._games)]

    def resume(self, state: Sequence[Sequence[float]]) -> None:
        """Go on from what `state()` gave."""
        self._scores, self._games = (list(part) for part in state)


class RunningRating:
    """The rating that ML-Agents keeps while its agents meet themselves, and its opponents' by name.

    Read in its Python package, version 1.1.0: trainers/ghost/trainer.py and controller.py. After
    each game the learner's rating moves by the result less its expectation, the opponent's by as
    much the other way (Elo with K = 1). A snapshot begins with the rating that the learner then
    has. Games against the present self change nothing. Scripted players, which ML-Agents does not
    have, begin as the first snapshot does.
    """

    def __init__(self, initial: float) -> None:
        self._initial = initial
        self.learner = initial
        self._opponents: dict[str, float] = {}

    def take(self, snapshot: str) -> None:
        """The learner as it is now is `snapshot` from now on."""
        self._opponents[snapshot] = self.learner

    def add(self, opponent: str, score: float) -> None:
        """Take a game with `opponent` in which the learner had 1, 0.5 or 0 points."""
        other = self._opponents.get(opponent, self._initial)
        change = score - expected(self.learner, other)
        self._opponents[opponent] = other - change
        self.learner += change

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"learner": self.learner, "opponents": dict(self._opponents)}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.learner, self._opponents = state["learner"], dict(state["opponents"])


def expected(own: float, other: float) -> float:
    """Expected score of a rating against another, rounded as in ML-Agents where that is finite."""
    if max(abs(own), abs(other)) > FAR:
        return expected_score(max(min(own - other, FAR), -FAR))
    mine, theirs = 10.0 ** (own / POINTS), 10.0 ** (other / POINTS)
    return float(mine / (mine + theirs))


Weights = Mapping[str, th.Tensor]
POOL_FOLDER = "pool"  # among a run's artifacts
STEPS_NAME = "snapshots.csv"
STEPS_HEAD = "snapshot,step\n"
SUFFIX = ".safetensors"


class Snapshot(NamedTuple):
    """The learner as it was at a step; its weights are never written to."""

    number: int  # in its pool, from 0
    step: int  # environment steps
    weights: Weights

    @property
    def name(self) -> str:
        """What it is called as a player, and as a part of checkpoints."""
        return snapshot_name(self.number)


def snapshot_name(number: int) -> str:
    """What the snapshot of that number is called."""
    return f"snapshot-{number:06d}"


class SnapshotPool:
    """Snapshots by their numbers; a checkpoint keeps each as a part, which is written once."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self.snapshots)

    def weights(self, number: int) -> Weights:
        """Those of the snapshot of that number."""
        return self.snapshots[number].weights

    def take(self, weights: Weights, *, step: int) -> Snapshot:
        """The snapshot with a copy of `weights`, those at `step`; the last one where it is that."""
        if self.snapshots and self.snapshots[-1].step == step:
            return self.snapshots[-1]
        copied = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
        self.snapshots.append(Snapshot(len(self.snapshots), step, copied))
        return self.snapshots[-1]

    def parts(self) -> dict[str, Callable[[], bytes]]:
        """What makes the bytes of each snapshot, by its name."""
        return {one.name: partial(pack, dict(one.weights)) for one in self.snapshots}

    def state(self) -> list[int]:
        """The steps of the snapshots."""
        return [one.step for one in self.snapshots]

    def resume(self, state: Sequence[int], read_part: Callable[[str], bytes]) -> None:
        """Have the snapshots of these steps, whose bytes `read_part` gives."""
        self.snapshots = [
            Snapshot(number, step, unpack(read_part(snapshot_name(number))))
            for number, step in enumerate(state)
        ]

    def cut(self, count: int) -> None:
        """Forget all but the first `count`."""
        del self.snapshots[count:]


def save_pool(pool: SnapshotPool, games: GamesTable, folder: Path) -> list[tuple[str, Path]]:
    """The files in `folder`, each with the artifact folder that it belongs into ("": the top)."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for one in pool.snapshots:
        path = folder / f"{one.name}{SUFFIX}"
        path.write_bytes(save({name: tensor.contiguous() for name, tensor in one.weights.items()}))
        found.append((POOL_FOLDER, path))
    steps = folder / STEPS_NAME
    lines = (f"{one.name},{one.step}\n" for one in pool.snapshots)
    steps.write_text(STEPS_HEAD + "".join(lines), encoding="utf-8")
    table = folder / GAMES_NAME
    table.write_text(games.text(), encoding="utf-8")
    return [*found, (POOL_FOLDER, steps), ("", table)]


def read_steps(text: str) -> list[tuple[str, int]]:
    """Names and steps of the snapshots that `STEPS_NAME` lists. Raises ValueError: it lists none.

    Names are as they are given to snapshots, so that none leads elsewhere.
    """
    head, *lines = text.splitlines(keepends=True)
    if head != STEPS_HEAD:
        raise ValueError(f"{STEPS_NAME} does not begin with {STEPS_HEAD.strip()}")
    found = []
    for number, line in enumerate(lines):
        name, step = line.rstrip("\n").split(",")
        if name != snapshot_name(number):
            raise ValueError(f"{STEPS_NAME} names {name!r} in the place of {snapshot_name(number)}")
        found.append((name, int(step)))
    return found


def read_snapshot(path: Path, train: TrainSettings, spec: WorldSpec) -> Agent:
    """The agent of the snapshot in `path`, which was trained so; reading it runs no code.

    Raises LabError, which says why, where the file is missing or holds no such agent.
    """
    try:
        policy = policy_of(read_bounded(path, MAX_WEIGHTS_BYTES), train, spec)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise _unreadable(path, error) from error
    return Agent(policy, spec, train)


def read_part(path: Path, train: TrainSettings, spec: WorldSpec) -> Agent:
    """The agent of the snapshot that is the part `path` of a checkpoint; raises as above."""
    try:
        weights = unpack(read_bounded(path, MAX_WEIGHTS_BYTES))
        policy = new_policy(train, spec)
        policy.load_state_dict(dict(weights))
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise _unreadable(path, error) from error
    policy.set_training_mode(False)
    return Agent(policy, spec, train)


def _unreadable(path: Path, error: Exception) -> LabError:
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return LabError(f"{path.stem}: {reason}")
