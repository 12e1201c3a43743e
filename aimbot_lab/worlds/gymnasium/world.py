"""Copies of a Gymnasium environment behind the `BatchWorld` protocol."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.argument_checks import (
    MisuseError,
    check_buffers,
    check_writable,
    checked_actions,
    checked_row,
    whole_seed,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import Float, ParameterValue, Sampler
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Observations,
    Picture,
    Scenario,
    StepBuffers,
)
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.worlds.gymnasium.copies import Beginnings, Copies, EndedEpisode, RunningEpisode
from aimbot_lab.worlds.gymnasium.copies_in_processes import CopiesInProcesses
from aimbot_lab.worlds.gymnasium.environments import drawn_parameters
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings

PARAMETERS = TypeAdapter(Mapping[str, Float | Sampler])
CELL = Cell(TARGET, 0)
SEEDS = 64  # of episodes, which are derived at once


class GymnasiumWorld:
    """`settings.num_envs` copies of an environment, in this process or in several.

    Episode k that begins after a reset to `seed` begins from a seed that follows from `seed` and k
    alone, not from its player. An environment has no snapshot: the episodes that run in one are
    played again by their actions. The environments are closed with the world, or with this object.
    """

    def __init__(self, settings: GymnasiumSettings) -> None:
        self.settings: WorldSettings = settings
        self.num_envs = settings.num_envs
        kind = Copies if settings.processes == 1 else CopiesInProcesses
        self._copies: Copies | CopiesInProcesses = kind(settings, self.num_envs)
        self.spec = self._copies.spec
        self._kind = self.spec.observation_dtype
        self._shape = self.num_envs, *self._kind.shape
        self._notices: list[str] = []
        self.keep_endings = False
        self._endings: dict[int, Picture] = {}
        self._scenario = 0
        self._parameters: Mapping[str, ParameterValue] = {}
        self._seed: int | None = None
        self._begun = 0  # episodes since the reset
        self._seeds: dict[tuple[int, int], int] = {}  # of the next episodes
        self._order = np.zeros(self.num_envs, np.int64)
        self._scenarios = np.zeros(self.num_envs, np.int64)
        self._resumed: list[RunningEpisode] | None = None  # that ran in a snapshot
        self._none_ended = self._batch([], ())
        self._fitting: tuple[StepBuffers | None, StepBuffers | None] = None, None  # the last two

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return self._scenario

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError for another target and for a parameter that there is not.
        """
        self._copies.check_scenario(scenario)
        self._parameters = dict(scenario.parameters)
        self._scenario += 1
        return self._scenario

    def reset(self, seed: int, observations: Observations) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B]."""
        self._seed, self._begun, self._resumed = whole_seed(seed), 0, None
        check_writable(observations, "observations", shape=self._shape, dtype=self._kind.base)
        self._copies.start(self._beginnings(range(self.num_envs)), observations)

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        Raises ActionError, with the world as it was, for an action that does not exist.
        """
        if self._seed is None:
            raise MisuseError("step: reset the world first")
        if buffers is not self._fitting[0] and buffers is not self._fitting[1]:
            check_buffers(buffers, self._shape, self._kind.base)
            self._fitting = buffers, self._fitting[0]
        actions = checked_actions(actions, self.num_envs, spec=self._copies.spec)
        ended, lives = self._copies.step(actions, buffers, self._following)
        return self._batch(ended, lives) if ended or lives else self._none_ended

    def take_notices(self) -> list[str]:
        """What a person should know since the last call."""
        taken, self._notices = self._notices, []
        return taken + self._copies.take_notices()

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, sum of branches]: those of its method, or of its last info."""
        self._copies.action_masks(masks)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Its counters, the scenario in force, and by what the running episodes are played again.

        An environment's own state can't be read.
        """
        if self._resumed is not None:
            return self._snapshot(self._resumed)
        return self._snapshot(self._copies.running(range(self.num_envs)))

    def row_start(self, row: int) -> dict[str, np.ndarray] | None:
        """A snapshot of `row` alone where its episode begins; None where it has begun before."""
        running = self._copies.running([row])
        return None if running[0].length else self._snapshot(running)

    def _snapshot(self, episodes: Sequence[RunningEpisode]) -> dict[str, np.ndarray]:
        running = [asdict(one) for one in episodes]
        actions = np.frombuffer(b"".join(one["actions"] for one in running), np.uint8)
        kept = {
            "seed": self._seed,
            "begun": self._begun,
            "scenario": self._scenario,
            "parameters": PARAMETERS.dump_python(self._parameters, mode="json"),
            "running": [{**one, "actions": len(one["actions"])} for one in running],
            "own_generators": self._copies.used_generators(),
        }
        text = np.frombuffer(json.dumps(kept).encode(), np.uint8)
        return {"kept": text.copy(), "actions": actions.copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Count on from `snapshot`, in its scenario; `resume_episodes` is due before a step."""
        kept = json.loads(snapshot["kept"].tobytes())
        parameters = PARAMETERS.validate_python(kept["parameters"])
        self._copies.check_scenario(Scenario({TARGET: 1.0}, {}, parameters))
        self._seed, self._begun, self._scenario = kept["seed"], kept["begun"], kept["scenario"]
        self._parameters = parameters
        self._copies.use_generators(kept.get("own_generators", ()))
        actions = iter(snapshot.get("actions", np.zeros(0, np.uint8)).tobytes())
        self._resumed = []
        for one in kept.get("running", ()):  # not in those of older versions, nor their seeds
            seed = self._episode_seed(one["order"])
            given = {"seed": seed, **one, "actions": bytes(islice(actions, one["actions"]))}
            self._resumed.append(RunningEpisode(**given))

    def resume_episodes(self, observations: Observations) -> BoolArray:
        """Play the episodes again that ran in the snapshot; writes `observations` [B].

        [B] True where another began instead: the episode was longer than MAX_REPLAYED, or was not
        the same when it was played again.
        """
        before, self._resumed = self._resumed or [], None
        lost = dict.fromkeys(range(len(before), self.num_envs), "are not in the checkpoint")
        lost.update(self._copies.play_again(dict(enumerate(before)), observations))
        for row, kept in enumerate(before):
            self._order[row], self._scenarios[row] = kept.order, kept.scenario
        self._copies.start(self._beginnings(list(lost)), observations)
        if lost:
            self._notices.append(
                f"{self._copies.settings.id}: {len(lost)} of {self.num_envs} episodes that ran "
                f"{', or '.join(sorted(set(lost.values())))}: new ones begin, and the run differs "
                "from one that was not interrupted"
            )
        return np.isin(np.arange(self.num_envs), list(lost))

    def goal_rewards(
        self, achieved: Float32Array, desired: Float32Array, infos: Any
    ) -> Float32Array:
        """Rewards [N] of steps after which goals [N, D] are `achieved` and others `desired`.

        Raises ForeignCodeError for what the environment's compute_reward raises.
        """
        return self._copies.goal_rewards(achieved, desired, infos)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` as the environment renders it; with `ending` as its last episode ended.

        Raises LabError where it renders nothing, MisuseError where no ending was kept.
        """
        row = checked_row(row, self.num_envs)
        if not ending:
            return self._copies.draw(row)
        if row not in self._endings:
            raise MisuseError("no ending was kept: set keep_endings before the step")
        return self._endings[row]

    def close(self) -> None:
        """Close all environments; there is nothing to play after that. What raises is reported."""
        self._copies.close()

    def _following(self, rows: Sequence[int]) -> Beginnings:
        if self.keep_endings and self.spec.can("draw"):
            self._endings.update({row: self._copies.draw(row) for row in rows})
        return self._beginnings(rows)

    def _beginnings(self, rows: Sequence[int]) -> Beginnings:
        """The next episodes, which begin in `rows`."""
        assert self._seed is not None
        beginnings = {}
        for row in rows:
            values: dict[str, float] = {}
            if self._parameters:
                values = drawn_parameters(self._parameters, self._seed, episode=self._begun)
            seed = self._episode_seed(self._begun)
            beginnings[row] = RunningEpisode(self._begun, self._scenario, values, seed)
            self._order[row], self._scenarios[row] = self._begun, self._scenario
            self._begun += 1
        return beginnings

    def _episode_seed(self, order: int) -> int:
        assert self._seed is not None
        if (self._seed, order) not in self._seeds:  # many at once take half the time
            orders = range(order, order + SEEDS)
            self._seeds = {
                (self._seed, one): derive_seed(self._seed, "episode", one) % 2**31 for one in orders
            }
        return self._seeds[self._seed, order]

    def _batch(self, ended: Sequence[EndedEpisode], lives: tuple[int, ...]) -> EpisodeBatch:
        counts = np.array([one[:4] for one in ended], np.int64).reshape(-1, 4)
        rows, orders, scenarios, lengths = counts.T
        returns = np.array([one.total for one in ended], np.float64)
        return EpisodeBatch(
            row=rows,
            agent=np.zeros(len(rows), np.int64),
            order=orders,
            scenario=scenarios,
            cell=(CELL,) * len(rows),
            outcome=np.array([WIN if one.won else LOSS for one in ended], np.int8),
            length=lengths,
            terms=returns[:, None],
            running_order=self._order,
            running_scenario=self._scenarios,
            columns=dict.fromkeys(self.spec.episode_columns, returns),
            untold=lives,
        )
