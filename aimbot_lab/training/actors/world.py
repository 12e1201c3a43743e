"""The world of all actors as their learner sees it, and what is counted of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
)
from aimbot_lab.training.actors.block import Block, Scenarios
from aimbot_lab.worlds.snapshots import joined


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
        return joined(parts)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Raises MisuseError."""
        del row, ending
        raise MisuseError(f"draw: the world {ELSEWHERE}")
