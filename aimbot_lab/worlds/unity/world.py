"""Agents of any number of processes of a build, stepped together."""

import json
from collections.abc import Mapping
from math import ceil
from uuid import UUID

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.argument_checks import FLOAT32, MisuseError, check_writable, whole_seed
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.step_checks import check_buffers, checked_actions
from aimbot_lab.foundation.world import BoolArray, Float32Array, Picture, Scenario, StepBuffers
from aimbot_lab.worlds.unity.build_rows import BuildRows, new_rows
from aimbot_lab.worlds.unity.channels import ChannelReader
from aimbot_lab.worlds.unity.episodes import EpisodeCounter, check_scenario
from aimbot_lab.worlds.unity.parameters import engine_message, scenario_message
from aimbot_lab.worlds.unity.probe import launch_of
from aimbot_lab.worlds.unity.processes import LOST, Processes, Start, starter
from aimbot_lab.worlds.unity.results import Result, ResultReader
from aimbot_lab.worlds.unity.settings import UnitySettings
from aimbot_lab.worlds.unity.shape import BuildShape, world_spec

SCENARIO: TypeAdapter[Scenario | None] = TypeAdapter(Scenario | None)


class UnityWorld:
    """`settings.num_envs` agents of builds of `shape`, one row each.

    Processes start with the first reset. A build has no snapshot: `restore` begins new episodes. An
    ended episode is told when the next one of its row begins; a row whose agent needs no action yet
    stays as it is, with the reward 0. `start` starts a process by its number.
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
        self._processes = Processes(start or starter(launch_of(settings)), count, settings=settings)
        self._at = new_rows(
            self.num_envs, len(self.spec.observation_names), sum(self.spec.branches)
        )
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

        Builds are told of it with the next reset or step. Raises ConfigurationError for a target
        or a parameter that there is not.
        """
        check_scenario(scenario, self.spec)
        self._scenario, self._unsent = scenario, True
        self._episodes.scenario += 1
        return self._episodes.scenario

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B, D]."""
        self._seed = whole_seed(seed)
        shape = (self.num_envs, len(self.spec.observation_names))
        check_writable(observations, "observations", shape=shape, dtype=FLOAT32)
        self._episodes.restart()
        self._begin(observations)

    def begin_anew(self, observations: Float32Array) -> None:
        """Break off what runs and begin an episode in every row; writes `observations` [B, D]."""
        self._begin(observations)

    def _begin(self, observations: Float32Array) -> None:
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
        check_buffers(buffers, (self.num_envs, len(self.spec.observation_names)))
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
                raise ForeignCodeError(f"build {number}: {error}") from error
        return self._told(buffers, lost)

    def _begin_step(self) -> None:
        at = self._at
        at.rewards[:], at.carried[:] = at.carried, 0.0
        np.add(at.returns, at.rewards, out=at.returns)
        at.finished[:] = False

    def _told(self, buffers: StepBuffers, lost: list[int]) -> EpisodeBatch:
        """Write `buffers` and give the episodes that ended; `lost` rows have no results."""
        at, results = self._at, dict[int, Result]()
        for number, build in enumerate(self._builds):
            first = self._rows(number).start
            ended = [row for row in build.results if at.finished[first + row]]
            results |= {first + row: build.results.pop(row) for row in ended}
        buffers.observations[:], buffers.rewards[:] = at.observations, at.rewards
        buffers.finished[:] = at.finished
        np.logical_and(at.finished, at.interrupted, out=buffers.truncated)
        buffers.final_observations[at.finished] = at.final_observations[at.finished]
        batch = self._episodes.ended(at.finished, results, at.returns, untold=lost)
        at.returns[at.finished] = 0.0
        return batch

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
        part.final_observations[:] = np.where(lost[:, None], last, kept[1])
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
            reader=ResultReader(self.spec, self.settings.win, channels=self._channels),
        )

    def _rows(self, number: int) -> slice:
        """The rows of process `number`."""
        agents = self._shape.agents
        return slice(number * agents, min((number + 1) * agents, self.num_envs))

    def _news(self, number: int, *, engine: bool = False) -> bytes:
        """What process `number` is told over side channels."""
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
        """Count on from `snapshot`, in its scenario; `begin_anew` is due before the next step."""
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
