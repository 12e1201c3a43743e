"""What an actor sends: steps of its rows, episodes that ended, the state of its world."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import NONE_RUNNING, EpisodeBatch, joined, oldest
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
)
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.callbacks.lesson_callback import NONE, episodes_of_all
from aimbot_lab.training.checkpoint import unpack
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds import kernel_world

Array = npt.NDArray[Any]
Scenarios = tuple[tuple[int, Scenario], ...]
"""Some in the order in which they were set, each with the learner's number."""
COLUMNS = (
    "observations",
    "actions",
    "rewards",
    "episode_starts",
    "values",
    "log_probs",
    "advantages",
    "returns",
)
"""Arrays [T, N, ...] of stable-baselines3's rollout buffer."""


class ActorPlan(NamedTuple):
    """What an actor is made from."""

    env: WorldSettings
    train: TrainSettings
    seed: int
    number: int  # of this actor
    actors: int  # how many there are
    rows: int  # of each
    placed: bool  # whether its world is some rows of one that all have together
    code: str  # hash of the learner's
    life: int = 0  # how often it was lost and begun again

    @property
    def first_row(self) -> int:
        """Number of its first row among all rows."""
        return self.number * self.rows


class BlockRequest(NamedTuple):
    """A block to be played."""

    version: int  # updates that the weights have seen
    weights: bytes | None  # packed; None: those of the last order
    step: int  # from which random numbers of the actions follow: no two blocks of an actor share it
    scenarios: Scenarios  # that came since the last order
    first: int | None  # scenario from which on episodes count


class StepEnds(NamedTuple):
    """What stands behind the steps of a block, to value it anew; arrays by row."""

    rewards: Array  # [T, N] as the world gave them, scaled
    ends: Array  # [T, N] whether an episode ended in the step
    last_observations: Any  # [N, D] after the last step, or by name
    cut_steps: Array  # [K] steps in which an episode was cut off
    cut_rows: Array  # [K] their rows
    cut_observations: Any  # [K, D] the last observations of these episodes, or by name


class Block(NamedTuple):
    """T steps of an actor's N rows, by one version of the weights."""

    actor: int
    version: int
    columns: Mapping[str, Array]  # those of COLUMNS
    shown: Array | None  # [T, N, F] what the networks were shown, where the engine keeps it
    ends: Mapping[str, Any] | None  # `StepEnds`, where advantages are corrected
    episodes: Mapping[str, Any]  # columns of the episodes that ended, by step
    running: int | None  # rank of the oldest episode that ran and counts when it began
    unsettled: int  # episodes that would be lost with the actor now
    notices: tuple[str, ...]  # what a person should know of its world
    lost_episodes: int  # of its world so far, with programs that play them
    unread: tuple[tuple[int, str], ...]  # steps in which a game's report was unread, and why
    logged_errors: int = 0  # by programs that play its world, so far
    save_commands: int = 0  # of these programs, to save the agent, so far


def unpacked_block(data: bytes) -> Block:
    """The block that an actor packed."""
    return Block(**unpack(data))


@dataclass
class ActorCounts:
    """Numbers since the training began, and what is new since they were last asked for."""

    version: int = 0  # updates
    orders: int = 0
    made: int = 0  # blocks
    taken: int = 0
    dropped: int = 0  # blocks that were too old
    restarts: int = 0
    lives: int = 1  # of all actors; none has the random numbers of an earlier one
    lost_episodes: int = 0  # with actors, and in worlds of actors that are lost
    logged_errors: int = 0  # by programs that played worlds of actors that are lost
    save_commands: int = 0  # of these programs
    of_worlds: dict[int, dict[str, int]] = field(default_factory=dict)  # the same now, by actor
    notices: list[str] = field(default_factory=list)
    _ages: list[int] = field(default_factory=list)
    _since: tuple[float, int] = field(default_factory=lambda: (monotonic(), 0))

    def new_life(self) -> int:
        """A number that no actor's life had before."""
        self.lives += 1
        return self.lives - 1

    def lose(self, actor: int, episodes: int) -> None:
        """`actor` is lost with `episodes` unfinished ones."""
        self.restarts += 1
        self.lost_episodes += episodes
        for name, count in self.of_worlds.pop(actor, {}).items():
            setattr(self, name, getattr(self, name) + count)
        self.notices.append(f"actor {actor} was lost and begins again; {episodes} episodes dropped")

    def learn(self, blocks: Sequence[Block]) -> None:
        """`blocks` are learned from, in the next update."""
        self._ages += [self.version - one.version for one in blocks]
        for one in blocks:
            self.notices += one.notices
            self.of_worlds[one.actor] = {name: getattr(one, name) for name in OF_WORLDS}
        self.taken += len(blocks)
        self.version += 1

    @property
    def episodes_dropped(self) -> int:
        """Episodes that were lost with actors, and with programs of their worlds."""
        return self.so_far("lost_episodes")

    def so_far(self, name: str) -> int:
        """The count of that name, of `OF_WORLDS`, with that of the actors' present worlds."""
        before: int = getattr(self, name)
        return before + sum(one[name] for one in list(self.of_worlds.values()))

    def take_metrics(self) -> dict[str, float]:
        """What is tracked, of the time since this was last asked."""
        now, (then, made) = monotonic(), self._since
        ages, self._ages, self._since = self._ages, [], (now, self.made)
        found = {
            names.BLOCKS_PER_SECOND: (self.made - made) / max(now - then, 1e-9),
            names.BLOCKS_DROPPED: float(self.dropped),
            names.ACTOR_RESTARTS: float(self.restarts),
        }
        if ages:
            found[names.BLOCK_AGE] = sum(ages) / len(ages)
        if self.taken:
            found[names.BLOCKS_MADE_TO_TAKEN] = self.made / self.taken
        return found

    def state(self) -> dict[str, int]:
        """The numbers since the training began."""
        kept = {name: getattr(self, name) for name in KEPT}
        return {
            **kept,
            "lost_episodes": self.episodes_dropped,
            "logged_errors": self.so_far("logged_errors"),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave, with new lives."""
        for name in KEPT:
            setattr(self, name, int(state[name]))
        self.lost_episodes, self.of_worlds = int(state["lost_episodes"]), {}
        self.logged_errors = int(state.get("logged_errors", 0))
        self._since = monotonic(), self.made


OF_WORLDS = ("lost_episodes", "logged_errors", "save_commands")
KEPT = ("version", "orders", "made", "taken", "dropped", "restarts", "lives")


ELSEWHERE = "is played by actors"


class ActorsWorld:
    """Numbers scenarios, and keeps those that actors do not know yet."""

    def __init__(self, spec: WorldSpec, rows: int) -> None:
        self.spec, self.num_envs, self.keep_endings = spec, rows, False
        self.scenario_number = 0
        self._scenarios: list[tuple[int, Scenario]] = []  # that are new, by number
        self.counts = ActorCounts()

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that actors draw from where their next block begins."""
        self.scenario_number += 1
        self._scenarios.append((self.scenario_number, scenario))
        return self.scenario_number

    def take_scenarios(self) -> Scenarios:
        """The new ones, which are forgotten."""
        taken, self._scenarios = tuple(self._scenarios), []
        return taken

    def take_notices(self) -> Sequence[str]:
        """What a person should know since this was last asked."""
        taken, self.counts.notices = self.counts.notices, []
        return taken

    @property
    def dropped_episodes(self) -> int:
        """Episodes that were lost with actors, or with programs that play them."""
        return self.counts.episodes_dropped

    @property
    def logged_errors(self) -> int:
        """Errors that programs have logged which play the actors' worlds."""
        return self.counts.so_far("logged_errors")

    @property
    def save_commands(self) -> int:
        """How often these programs have asked for the agent to be saved."""
        return self.counts.so_far("save_commands")

    def take_metrics(self) -> dict[str, float]:
        """What is tracked of the actors, since this was last asked."""
        return self.counts.take_metrics()

    def remember(self, scenario: Scenario) -> None:
        """The one in force, of which actors that begin know nothing, is `scenario`."""
        self._scenarios.append((self.scenario_number, scenario))

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Nothing: actors reset their own worlds."""
        del seed
        observations[:] = 0.0

    def resume_episodes(self, observations: Float32Array) -> BoolArray:
        """Nothing: actors begin new episodes, of which their learner's remarks tell."""
        observations[:] = 0.0
        return np.ones(len(observations), np.bool_)

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Raises MisuseError."""
        del actions, buffers
        raise MisuseError(f"step: the world {ELSEWHERE}")

    def action_masks(self, masks: BoolArray) -> None:
        """Nothing is masked here."""
        masks[:] = True

    def snapshot(self) -> dict[str, np.ndarray]:
        """The number of the scenario in force, and what is counted."""
        kept = {"scenario_number": self.scenario_number, **self.counts.state()}
        return {name: np.array(value) for name, value in kept.items()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on numbering and counting."""
        self.scenario_number = int(snapshot["scenario_number"])
        self.counts.resume(snapshot)

    def joined(self, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
        """The snapshot of the whole from those of the actors' worlds, in the order of rows."""
        return kernel_world.joined(parts)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Raises MisuseError."""
        del row, ending
        raise MisuseError(f"draw: the world {ELSEWHERE}")


COUNT_BITS = 29  # of a rank, for the episodes that an actor begins by one version


def first_rank(version: int, actor: int, actors: int) -> int:
    """Rank of the first episode that `actor`, one of `actors`, begins with weights of `version`."""
    return (version * actors + actor) << COUNT_BITS


class GlobalNumbers:
    """Ranks (version at the beginning, actor, count) and the learner's numbers of scenarios."""

    def __init__(self, actor: int, actors: int) -> None:
        self._actor, self._actors = actor, actors
        self.scenarios: dict[int, int] = {}  # the learner's number by the world's
        self._next = 0  # own rank of the next episode that begins
        self._firsts: list[int] = []  # own rank of the first that began by each of the versions
        self._versions: list[int] = []

    def begin(self, version: int) -> None:
        """What begins from now on does so by `version`."""
        if not self._versions or version > self._versions[-1]:
            self._firsts.append(self._next)
            self._versions.append(version)

    def ranks(self, own: Int64Array) -> Int64Array:
        """Ranks among all of the world's `own` ones."""
        if own.size:
            self._next = max(self._next, int(own.max()) + 1)
        return np.array([self._rank(one) for one in own.tolist()], np.int64)

    def _rank(self, own: int) -> int:
        at = bisect_right(self._firsts, own) - 1
        return first_rank(self._versions[at], self._actor, self._actors) + own - self._firsts[at]

    def of_scenarios(self, own: Int64Array) -> Int64Array:
        """The learner's numbers of the world's `own` ones."""
        return np.array([self.scenarios.get(one, one) for one in own.tolist()], np.int64)


class SettledEpisodes:
    """Gives episodes out only once no older one of the same actor runs any more.

    So an actor that dies takes every episode from its oldest unfinished one on with it: the later
    ones that had ended would be short ones, and in many worlds wins.
    """

    def __init__(self, numbers: GlobalNumbers, rows: int) -> None:
        self.numbers, self._rows = numbers, rows
        self._first: int | None = None
        self._held: EpisodeBatch | None = None
        self._running = NONE_RUNNING, NONE_RUNNING  # ranks and scenarios

    @property
    def running(self) -> int | None:
        """Rank of the oldest episode that runs and counts, as far as it is known."""
        return oldest(*self._running, self._first)

    @property
    def unsettled(self) -> int:
        """Episodes that run, and those that wait for them."""
        return self._rows + (0 if self._held is None else len(self._held.cell))

    def begin(self, version: int, first: int | None) -> None:
        """A block by `version` begins, in which episodes count from the scenario `first` on."""
        self.numbers.begin(version)
        self._first = first

    def add(self, ended: EpisodeBatch) -> EpisodeBatch:
        """What is settled once the episodes `ended` in a step of the world."""
        numbers = self.numbers
        order = numbers.ranks(ended.order)
        scenario = numbers.of_scenarios(ended.scenario)
        self._running = (
            numbers.ranks(ended.running_order),
            numbers.of_scenarios(ended.running_scenario),
        )
        new = ended._replace(order=order, scenario=scenario, unread=(), untold=())
        waiting = new if self._held is None else joined([self._held, new])
        oldest_rank = self.running
        settled = waiting.order < (np.inf if oldest_rank is None else oldest_rank)
        by_beginning = np.argsort(waiting.order, kind="stable")
        is_settled = settled[by_beginning]
        self._held = waiting.some(by_beginning[~is_settled]).beside(None, None)
        return waiting.some(by_beginning[is_settled]).beside(oldest_rank, self._first)


class RunningEpisodes:
    """Puts the episodes of blocks together, so that none overtakes an older one of any actor.

    An actor whose blocks are still to come has one under way, too: at the latest the first that it
    began by the version by which it was heard of last.
    """

    def __init__(self, actors: int, version: int) -> None:
        self._actors = actors
        self._oldest = [first_rank(version, actor, actors) for actor in range(actors)]

    def ended(self, blocks: Sequence[Block], first: int | None, since: int) -> list[EpisodeBatch]:
        """What ended in each step of `blocks` in which episodes did.

        Episodes count from the scenario `first` on, which is in force since the version `since`.
        """
        before, parts = [], []
        for block in blocks:
            least = first_rank(since, block.actor, self._actors)
            running = block.episodes["running"]
            known = np.maximum(np.where(running == NONE, least, running), least)
            parts.append({**block.episodes, "running": known})
            before.append(max(self._oldest[block.actor], least))
            self._oldest[block.actor] = int(known[-1]) if len(known) else before[-1]
        played = {block.actor for block in blocks}
        absent = set(range(self._actors)) - played
        for actor in absent:
            before.append(max(self._oldest[actor], first_rank(since, actor, self._actors)))
        return episodes_of_all(parts, before, first)
