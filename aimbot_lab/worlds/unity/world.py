"""Agents of any number of processes of a build, stepped together."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any
from uuid import UUID

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.argument_checks import (
    MisuseError,
    check_buffers,
    check_writable,
    checked_actions,
    whole_seed,
)
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch, EpisodeResult
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    NEW_EPISODES,
    BoolArray,
    Float32Array,
    Observations,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
)
from aimbot_lab.mlagents.builds import Build
from aimbot_lab.worlds.unity.channels import (
    LOST,
    ChannelReader,
    Processes,
    Result,
    ResultReader,
    Start,
    engine_message,
    launch_of,
    scenario_message,
)
from aimbot_lab.worlds.unity.rows import BuildRows, new_rows
from aimbot_lab.worlds.unity.settings import BuildShape, UnitySettings, world_spec

AWAY = 100  # steps after which an agent whose episode ended is not waited for
NO_RESULT = "no result came with the end of an episode"
SCENARIO: TypeAdapter[Scenario | None] = TypeAdapter(Scenario | None)


class UnityWorld:
    """`settings.num_envs` agents of builds of `shape`, one row each.

    Processes start with the first reset. A build has no snapshot: `restore` begins new episodes. An
    ended episode is reported when the next one of its row begins, or after `AWAY` steps. A row
    whose agent needs no action yet stays as it is, with the reward 0. `start` starts a process by
    its number.
    """

    def __init__(
        self, settings: UnitySettings, shape: BuildShape, *, start: Start | None = None
    ) -> None:
        self.settings, self.num_envs = settings, settings.num_envs
        self.spec = world_spec(shape, settings)
        self.keep_endings = False
        self.dropped_episodes = 0
        self._shape = shape
        count = ceil(self.num_envs / shape.agents)
        start = start or partial(Build, launch_of(settings))
        self._processes = Processes(start, count, settings=settings)
        self._at = new_rows(self.num_envs, self.spec)
        log = UUID(settings.log_channel)
        self._channels = ChannelReader(log, by_lines=settings.win is None)
        self._builds: list[BuildRows] = []
        self._scenario: Scenario | None = None
        self._unsent = False  # whether builds do not know the scenario yet
        self._episodes = EpisodeCounter(self.num_envs, self.spec)
        self._seed: int | None = None
        self._notices: list[str] = []
        if surplus := count * shape.agents - self.num_envs:
            self._notices.append(
                f"{surplus} of {count * shape.agents} agents of {count} processes are not played; "
                f"env.num_envs is {self.num_envs}"
            )

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return self._episodes.scenario

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Builds get it with the next reset or step. Raises ConfigurationError for a target
        or a parameter that there is not.
        """
        check_scenario(scenario, self.spec)
        self._scenario, self._unsent = scenario, True
        self._episodes.scenario += 1
        return self._episodes.scenario

    def reset(self, seed: int, observations: Observations) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B]."""
        self._seed = whole_seed(seed)
        seen = self._at.observations
        check_writable(observations, "observations", shape=seen.shape, dtype=seen.dtype)
        self._episodes.begun = 0
        self._begin(observations)

    def resume_episodes(self, observations: Observations) -> BoolArray:
        """Begin an episode in every row, [B] True; writes `observations` [B]."""
        self._begin(observations)
        self._notices.append(NEW_EPISODES)
        return np.ones(len(observations), np.bool_)

    def _begin(self, observations: Observations) -> None:
        assert self._seed is not None
        running = bool(self._builds)
        if not running:
            links = self._processes.begin(derive_seed(self._seed, "begun", self._episodes.begun))
            self._builds = [self._rows_of(link, number) for number, link in enumerate(links)]
        for number, build in enumerate(self._builds):
            try:
                build.reset(self._news(number, engine=not running))
            except LOST as error:
                self._replace(number, error)
        self._unsent = False
        self._episodes.begin_all()
        observations[:] = self._at.observations

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        Raises ActionError, with the world as it was, for an action that does not exist, and
        ForeignCodeError for a build that was lost too often or says what can't be read.
        """
        if self._seed is None:
            raise MisuseError("step: reset the world first")
        check_buffers(buffers, self._at.observations.shape, self._at.observations.dtype)
        actions = checked_actions(actions, self.num_envs, spec=self.spec)
        self._begin_step()
        for number, build in enumerate(self._builds):
            news = self._news(number) if self._unsent else b""
            build.send(actions[self._rows(number)], news)
        self._unsent = False
        lost: list[int] = []
        for number, build in enumerate(self._builds):
            try:
                build.collect()
            except LOST as error:
                lost += self._drop(number, error)
            except ConfigurationError:
                raise
            except LabError as error:
                which = "" if str(error).startswith("build") else f"build {number}: "
                raise ForeignCodeError(f"{which}{error}") from error
        return self._told(buffers, lost)

    def _begin_step(self) -> None:
        at = self._at
        at.rewards[:], at.carried[:] = at.carried, 0.0
        np.add(at.returns, at.rewards, out=at.returns)
        at.finished[:] = False

    def _told(self, buffers: StepBuffers, lost: list[int]) -> EpisodeBatch:
        """Write `buffers` and give the episodes that ended; `lost` rows have no results."""
        at, results = self._at, dict[int, Result]()
        left = None
        if at.over.any() or at.away.any():
            lost += self._wait_for_agents()
            left = at.away >= AWAY
        for number, build in enumerate(self._builds):
            first = self._rows(number).start
            ended = [row for row in build.results if at.finished[first + row]]
            results |= {first + row: build.results.pop(row) for row in ended}
        buffers.observations[:], buffers.rewards[:] = at.observations, at.rewards
        buffers.finished[:] = at.finished
        np.logical_and(at.finished, at.interrupted, out=buffers.truncated)
        buffers.final_observations[at.finished] = at.final_observations[at.finished]
        batch = self._episodes.ended(at.finished, results, at.returns, untold=lost, left=left)
        at.returns[at.finished] = 0.0
        return batch

    def _wait_for_agents(self) -> list[int]:
        """End the episodes of rows whose agents stay away; the rows where one has come after that.

        Such a row goes on as it was, in an episode that is cut off and counts for nothing.
        """
        at = self._at
        back = at.finished & (at.away >= AWAY)
        at.interrupted[back] = True
        at.away[:] = np.where(at.over, at.away + 1, 0)
        at.finished[at.away == AWAY] = True
        return np.flatnonzero(back).tolist()

    def _drop(self, number: int, error: LabError) -> list[int]:
        """Start process `number` again; the rows whose episodes are lost, which were cut off."""
        at, rows = self._at, self._rows(number)
        part = at.part(rows)
        lost = ~part.over & ~part.finished
        before = [part.over | part.finished, part.final_observations, part.interrupted]
        kept, last = [array.copy() for array in before], part.observations.copy()
        rewards, returns = part.rewards.copy(), part.returns.copy()
        results = dict(self._builds[number].results)
        self._replace(number, error)
        self._builds[number].results = results
        part.final_observations[:] = kept[1]
        part.final_observations[lost] = last[lost]
        np.logical_or(kept[2], lost, out=part.interrupted)
        part.rewards[:], part.returns[:] = rewards, returns
        part.finished[:] = True
        self.dropped_episodes += int(lost.sum())
        self._notices.append(f"{error}; restarted, {int(lost.sum())} episodes dropped")
        return [rows.start + row for row in np.flatnonzero(lost).tolist()]

    def _replace(self, number: int, error: LabError) -> None:
        """Have a new process with first episodes in the place of one that was lost."""
        assert self._seed is not None
        while True:
            link = self._processes.replace(number, error, self._seed)
            self._builds[number] = self._rows_of(link, number)
            try:
                self._builds[number].reset(self._news(number, engine=True))
                return
            except LOST as again:
                error = again

    def _rows_of(self, link: object, number: int) -> BuildRows:
        return BuildRows(
            link,  # type: ignore[arg-type]
            self._shape,
            self._at.part(self._rows(number)),
            spec=self.spec,
            reader=ResultReader(self.spec, self.settings.win, channels=self._channels),
            others=self.settings.others,
            timeout_wait=self.settings.timeout_wait,
            seed=derive_seed(self._seed or 0, "others", number),
        )

    def _rows(self, number: int) -> slice:
        """The rows of process `number`."""
        agents = self._shape.agents
        return slice(number * agents, min((number + 1) * agents, self.num_envs))

    def _news(self, number: int, *, engine: bool = False) -> bytes:
        """What process `number` is sent over side channels."""
        begin = engine_message(self.settings) if engine else b""
        if self._scenario is None:
            return begin
        seed = derive_seed(self._seed or 0, "samplers", number)
        return begin + scenario_message(self._scenario, self.spec, seed=seed)

    @property
    def logged_errors(self) -> int:
        """Errors that builds have logged so far."""
        return self._channels.errors

    @property
    def save_commands(self) -> int:
        """How often builds have asked for the agent to be saved, since this was made."""
        return self._channels.save_commands

    def take_metrics(self) -> dict[str, float]:
        """What builds sent as stats since the last call, as `unity/NAME`."""
        return self._channels.take_stats()

    def take_notices(self) -> list[str]:
        """What a person should know since the last call."""
        taken, self._notices = self._notices + self._channels.take_notices(), []
        return taken

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, sum of branches]: what builds allow."""
        masks[:] = self._at.allowed

    def snapshot(self) -> dict[str, np.ndarray]:
        """Its counters and the scenario in force; a build's own state can't be read."""
        kept = {
            "seed": self._seed,
            "dropped": self.dropped_episodes,
            "errors": self.logged_errors,
            "counted": self._episodes.state(),
            "in_force": SCENARIO.dump_python(self._scenario, mode="json"),
        }
        return {"kept": np.frombuffer(json.dumps(kept).encode(), np.uint8).copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Count on from `snapshot`, in its scenario; `resume_episodes` is due before a step."""
        kept = json.loads(snapshot["kept"].tobytes())
        scenario = SCENARIO.validate_python(kept["in_force"])
        if scenario is not None:
            check_scenario(scenario, self.spec)
        self._scenario, self._seed = scenario, kept["seed"]
        self.dropped_episodes = kept["dropped"]
        self._channels.errors = kept.get("errors", 0)
        self._episodes.resume(kept["counted"])

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Raise LabError: a build shows its pictures itself."""
        del row, ending
        raise LabError("a build draws no pictures for others; env.no_graphics: false shows its own")

    def close(self) -> None:
        """End the processes; a reset starts them anew."""
        self._processes.close()
        self._builds, self._seed = [], None


class EpisodeCounter:
    """Counts the episodes in `rows` rows of a world of `spec`."""

    def __init__(self, rows: int, spec: WorldSpec) -> None:
        self._spec, self.scenario, self.begun = spec, 0, 0
        self._order = np.zeros(rows, np.int64)
        self._scenarios = np.zeros(rows, np.int64)
        self._lengths = np.zeros(rows, np.int64)
        difficulties = list(spec.difficulties.items())
        self._only = Cell(difficulties[0][0], 0) if [n for _, n in difficulties] == [0] else None

    def begin_all(self) -> None:
        """An episode begins in every row."""
        self._begin(np.arange(len(self._order)))

    def _begin(self, rows: np.ndarray) -> None:
        self._order[rows] = self.begun + np.arange(len(rows))
        self._scenarios[rows], self._lengths[rows] = self.scenario, 0
        self.begun += len(rows)

    def ended(
        self,
        finished: BoolArray,
        results: Mapping[int, Result],
        returns: Float32Array,
        *,
        untold: Sequence[int],
        left: BoolArray | None,
    ) -> EpisodeBatch:
        """The episodes of rows that are `finished`, in which others begin.

        Those whose result can't be read are no entries, nor are those of the rows `untold`. No
        episode waits for those of rows that are `left`.
        """
        self._lengths += 1
        over = np.flatnonzero(finished)
        lost = set(untold)
        said = {row: results.get(row, NO_RESULT) for row in over.tolist() if row not in lost}
        found = {row: one for row, one in said.items() if isinstance(one, EpisodeResult)}
        unread = {row: one for row, one in said.items() if isinstance(one, str)}
        rows = np.array(list(found), np.int64)
        batch = EpisodeBatch(
            row=rows,
            agent=np.zeros_like(rows),
            order=self._order[rows],
            scenario=self._scenarios[rows],
            cell=tuple(self._only if one.cell is None else one.cell for one in found.values()),
            outcome=np.array([one.outcome for one in found.values()], np.int8),
            length=self._lengths[rows],
            terms=returns[rows, None].astype(np.float64),
            running_order=self._order,
            running_scenario=self._scenarios
            if left is None
            else np.where(left, -1, self._scenarios),
            columns={name: _column(found, name) for name in self._spec.episode_columns},
            unread=tuple(unread.values()),
            untold=tuple(sorted([*unread, *lost])),
        )
        self._begin(over)
        return batch

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"scenario": self.scenario, "begun": self.begun}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Count on from what `state()` gave."""
        self.scenario, self.begun = state["scenario"], state["begun"]


def _column(found: Mapping[int, EpisodeResult], name: str) -> np.ndarray:
    """[E] what result lines say of `name`; NaN where one does not."""
    values = [one.seconds if name == "seconds" else one.columns.get(name) for one in found.values()]
    return np.array([np.nan if value is None else value for value in values], np.float64)


def check_scenario(scenario: Scenario, spec: WorldSpec) -> None:
    """Raise ConfigurationError for what builds of `spec` have not, and where nothing is drawn."""
    for target, weight in scenario.targets.items():
        if target not in spec.difficulties:
            known = ", ".join(spec.difficulties)
            raise ConfigurationError(f"scenario: no target {target!r}; there are {known}")
        if not (np.isfinite(weight) and weight >= 0):
            raise ConfigurationError(f"scenario: the weight of {target} must not be negative")
    if not any(scenario.targets.values()):
        raise ConfigurationError("scenario: no target has a weight above 0")
    for name in scenario.parameters:
        if spec.parameters and name not in spec.parameters:
            known = ", ".join(spec.parameters)
            raise ConfigurationError(f"scenario: no parameter {name!r}; there are {known}")
