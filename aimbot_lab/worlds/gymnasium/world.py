"""Copies of a Gymnasium environment behind the `BatchWorld` protocol."""

import json
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any
from zlib import crc32

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
from aimbot_lab.foundation.errors import (
    NEVER_BLAMED,
    ConfigurationError,
    ForeignCodeError,
    LabError,
    blamed,
)
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import Float, ParameterValue, Sampler
from aimbot_lab.foundation.world import (
    GOALS,
    BoolArray,
    Float32Array,
    Observations,
    Picture,
    Scenario,
    StepBuffers,
    closed_on_failure,
    columns_of,
    step_buffers,
)
from aimbot_lab.worlds.gymnasium.environments import (
    Env,
    attribute,
    check_info,
    checked_scenario,
    drawn_parameters,
    environment_shape,
    new_environment,
    raised_words,
    seed_notice,
    set_attributes,
)
from aimbot_lab.worlds.gymnasium.observations import (
    ObservationReader,
    bounded_columns,
    outside,
)
from aimbot_lab.worlds.gymnasium.process_state import ProcessGuard, keeps_process
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings
from aimbot_lab.worlds.gymnasium.spaces import MisfitError, flat_masks, reward_of
from aimbot_lab.worlds.gymnasium.win_judge import SHOWN, WinJudge, info_entry, info_keys

MAX_REPLAYED = 50_000  # steps of an episode that is kept to be played again
OTHERS_COME = (
    "are others when they are played again, because the environment keeps something from one "
    "episode to the next or draws from what is not seeded"
)
PARAMETERS = TypeAdapter(Mapping[str, Float | Sampler])


@dataclass(slots=True)
class RunningEpisode:
    """What is counted of an episode that runs, and by what it can be played again."""

    order: int  # rank by beginning
    scenario: int  # number of the one that it was drawn from
    values: dict[str, float]  # parameters that it was given
    seen: int = 0  # checksum of its observations
    length: int = 0  # steps
    total: float = 0.0  # sum of its rewards
    actions: bytearray = field(default_factory=bytearray)  # [length, A]; empty where it is too long

    def keep(self, action: bytes) -> None:
        """Keep the action of the last step, unless the episode is too long to be played again."""
        if self.length <= MAX_REPLAYED:
            self.actions += action
        else:
            self.actions.clear()


class GymnasiumWorld:
    """`settings.num_envs` copies of an environment, stepped one after the other.

    Episode k that begins after a reset to `seed` begins from a seed that follows from `seed` and k
    alone, not from its player. An environment has no snapshot: the episodes that run in one are
    played again by their actions. The environments are closed with the world, or with this object.
    """

    def __init__(self, settings: GymnasiumSettings) -> None:
        self.settings, self.num_envs = settings, settings.num_envs
        self._envs: list[Env] = []
        weakref.finalize(self, _close_quietly, self._envs)
        self.guard = ProcessGuard(settings.id, self.num_envs)
        with self.guard.kept(), closed_on_failure(self.close):
            for _ in range(self.num_envs):
                self._envs.append(new_environment(settings))
            with blamed(f"env.id: {settings.id} can't be used:", ConfigurationError):
                self.spec = environment_shape(self._envs[0], settings)
                self._reader = ObservationReader(
                    self._envs[0].observation_space, settings.observation
                )
                notice = seed_notice(self._envs[0], settings.id)
        assert self.spec.environment_actions is not None
        self._taken = self.spec.environment_actions
        self.guard.own.clear()  # of one that only seeds as it is made, nothing more is to be kept
        self._notices = [] if notice is None else [notice]
        self._kind, self._told = self.spec.observation_dtype, False  # of a shape that does not fit
        self._bounded = bounded_columns(self.spec)  # () once a number lay beyond its bounds
        self._judge = None if settings.win is None else WinJudge(settings.win)
        self.keep_endings = False
        self._endings: dict[int, Picture] = {}
        self._scenario = 0
        self._parameters: Mapping[str, ParameterValue] = {}
        self._usual: dict[str, Any] = {}  # attributes that were set, as environments are made
        self._seed: int | None = None
        self._begun = 0  # episodes since the reset
        self._order = np.zeros(self.num_envs, np.int64)
        self._scenarios = np.zeros(self.num_envs, np.int64)
        self._running = [RunningEpisode(0, 0, {}) for _ in range(self.num_envs)]
        self._none_ended = self._ended({}, self._order)
        self._masks = np.ones((self.num_envs, sum(self.spec.branches)), np.bool_)

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return self._scenario

    @keeps_process
    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError for another target and for a parameter that there is not.
        """
        checked_scenario(scenario, self._envs[0], self.settings)
        self._parameters = dict(scenario.parameters)
        self._scenario += 1
        return self._scenario

    @keeps_process
    def reset(self, seed: int, observations: Observations) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B]."""
        self._seed, self._begun = whole_seed(seed), 0
        shape = self.num_envs, *self._kind.shape
        check_writable(observations, "observations", shape=shape, dtype=self._kind.base)
        for row in range(self.num_envs):
            observations[row] = self._begin(row)
        self._note_outside("reset", observations)

    @keeps_process
    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        Raises ActionError, with the world as it was, for an action that does not exist.
        """
        if self._seed is None:
            raise MisuseError("step: reset the world first")
        check_buffers(buffers, (self.num_envs, *self._kind.shape), self._kind.base)
        actions = checked_actions(actions, self.num_envs, spec=self.spec)
        buffers.finished[:] = buffers.truncated[:] = False
        infos = {}
        with self._blamed("step"):
            for row, taken in enumerate(self._taken.each(actions)):
                info = self._step_row(row, taken, buffers)
                if info is not None:
                    infos[row] = info
        for episode, action in zip(self._running, actions, strict=True):
            episode.keep(action.tobytes())
        self._refuse_infinite(buffers)
        self._note_outside("step", buffers.observations)
        batch = self._ended(infos, buffers.truncated) if infos else self._none_ended
        for row in infos:
            if self.keep_endings and self.spec.can("draw"):
                self._endings[row] = self.draw(row)
            buffers.observations[row] = self._begin(row)
        return batch

    def take_notices(self) -> list[str]:
        """What a person should know since the last call."""
        taken, self._notices = self._notices, []
        judged = [] if self._judge is None else self._judge.take_notices()
        return taken + self.guard.take_notices() + judged

    @keeps_process
    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, sum of branches]: those of its method, or of its last info."""
        if self.spec.can("masks") and self.settings.masks is None:
            for row, env in enumerate(self._envs):
                with self._called("action_masks", row):
                    given = env.get_wrapper_attr("action_masks")()
                    self._masks[row] = flat_masks(given, self.spec)
        masks[:] = self._masks

    @keeps_process
    def goal_rewards(
        self, achieved: Float32Array, desired: Float32Array, infos: Any
    ) -> Float32Array:
        """Rewards [N] of steps after which goals [N, D] are `achieved` and others `desired`.

        The environment's compute_reward gets them in the shapes and types of its own space.
        Raises ForeignCodeError for what it raises, and for other rewards.
        """
        goals = [self._reader.goals[name] for name in GOALS]
        with self._called("compute_reward", 0):
            own = [
                columns.astype(space.dtype).reshape(len(columns), *(space.shape or ()))
                for columns, space in zip((achieved, desired), goals, strict=True)
            ]
            given = self._envs[0].get_wrapper_attr("compute_reward")(*own, infos)
            rewards = np.asarray(given, np.float32)
            if rewards.shape != (len(achieved),):
                raise MisfitError(f"gave {rewards.shape} rewards for {len(achieved)} goals")
        return rewards

    def snapshot(self) -> dict[str, np.ndarray]:
        """Its counters, the scenario in force, and by what the running episodes are played again.

        An environment's own state can't be read.
        """
        return self._snapshot(self._running)

    def row_start(self, row: int) -> dict[str, np.ndarray] | None:
        """A snapshot of `row` alone where its episode begins; None where it has begun before."""
        running = self._running[row]
        return None if running.length else self._snapshot([running])

    def _snapshot(self, episodes: Sequence[RunningEpisode]) -> dict[str, np.ndarray]:
        running = [asdict(one) for one in episodes]
        actions = np.frombuffer(b"".join(one["actions"] for one in running), np.uint8)
        kept = {
            "seed": self._seed,
            "begun": self._begun,
            "scenario": self._scenario,
            "parameters": PARAMETERS.dump_python(self._parameters, mode="json"),
            "running": [{**one, "actions": len(one["actions"])} for one in running],
            "own_generators": list(self.guard.own),
        }
        text = np.frombuffer(json.dumps(kept).encode(), np.uint8)
        return {"kept": text.copy(), "actions": actions.copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Count on from `snapshot`, in its scenario; `resume_episodes` is due before a step."""
        kept = json.loads(snapshot["kept"].tobytes())
        parameters = PARAMETERS.validate_python(kept["parameters"])
        checked_scenario(Scenario({TARGET: 1.0}, {}, parameters), self._envs[0], self.settings)
        self._seed, self._begun, self._scenario = kept["seed"], kept["begun"], kept["scenario"]
        self._parameters = parameters
        for name in kept.get("own_generators", ()):
            self.guard.own[name] = [None] * self.num_envs  # which the next episodes seed
        actions = iter(snapshot.get("actions", np.zeros(0, np.uint8)).tobytes())
        self._running = [
            RunningEpisode(**{**one, "actions": bytearray(islice(actions, one["actions"]))})
            for one in kept.get("running", ())  # not in those of older versions
        ]

    @keeps_process
    def resume_episodes(self, observations: Observations) -> BoolArray:
        """Play the episodes again that ran in the snapshot; writes `observations` [B].

        [B] True where another began instead: the episode was longer than MAX_REPLAYED, or was not
        the same when it was played again.
        """
        before, buffers = self._running, step_buffers(self)
        self._running = [RunningEpisode(0, 0, {}) for _ in range(self.num_envs)]
        lost = dict.fromkeys(range(self.num_envs), "are not in the checkpoint")
        for row, kept in enumerate(before):
            try:
                observations[row] = self._play_again(row, kept, buffers)
                del lost[row]
            except LabError as error:
                lost[row] = str(error)
        for row in lost:
            observations[row] = self._begin(row)
        if lost:
            self._notices.append(
                f"{self.settings.id}: {len(lost)} of {self.num_envs} episodes that ran "
                f"{', or '.join(sorted(set(lost.values())))}: new ones begin, and the run differs "
                "from one that was not interrupted"
            )
        return np.isin(np.arange(self.num_envs), list(lost))

    def _play_again(self, row: int, kept: RunningEpisode, buffers: StepBuffers) -> Observations:
        """What was seen last in the episode `kept`, which goes on in `row`.

        Raises LabError, which says why, where that can't be.
        """
        if kept.length > MAX_REPLAYED:
            raise LabError(f"are longer than {MAX_REPLAYED:,} steps")
        width = len(self.spec.branches) + self.spec.continuous
        actions = np.frombuffer(kept.actions, np.float32).reshape(-1, width)
        again = replace(kept, seen=0, length=0, total=0.0, actions=bytearray(kept.actions))
        with suppress(LabError):
            seen = self._start(row, again)
            with self._blamed("step"):
                for taken in self._taken.each(actions):
                    self._step_row(row, taken, buffers)
                    seen = buffers.observations[row]
            if not buffers.finished[row] and again == kept:
                return seen
        raise LabError(OTHERS_COME)

    @keeps_process
    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` as the environment renders it; with `ending` as its last episode ended.

        Raises LabError where it renders nothing, MisuseError where no ending was kept.
        """
        row = checked_row(row, self.num_envs)
        if ending:
            if row not in self._endings:
                raise MisuseError("no ending was kept: set keep_endings before the step")
            return self._endings[row]
        with self._called("render", row):
            frame = self._envs[row].render()
        if not isinstance(frame, np.ndarray):
            raise LabError(f"{self.settings.id} renders no picture; env.kwargs.render_mode says so")
        return frame.astype(np.uint8)

    @keeps_process
    def close(self) -> None:
        """Close all environments; there is nothing to play after that. What raises is reported."""
        try:
            with blamed(f"{self.settings.id}: its close raised", ForeignCodeError):
                _close_all(self._envs)
        except ForeignCodeError as error:
            self._notices.append(str(error))

    def _begin(self, row: int) -> Observations:
        """What is seen first of the next episode, which begins in `row`."""
        assert self._seed is not None
        values = drawn_parameters(self._parameters, self._seed, episode=self._begun)
        first = self._start(row, RunningEpisode(self._begun, self._scenario, values))
        self._begun += 1
        return first

    @keeps_process
    def _start(self, row: int, episode: RunningEpisode) -> Observations:
        """What is seen first of `episode`, which begins in `row`."""
        assert self._seed is not None
        env = self._envs[row]
        options: dict[str, Any] | None = None
        if self.settings.via == "options":
            options = dict(episode.values)
        else:
            for name in episode.values:
                self._usual.setdefault(name, attribute(env, name))
            set_attributes(env, {**self._usual, **episode.values})
        seed = derive_seed(self._seed, "episode", episode.order) % 2**31
        if self.guard.own:
            self.guard.seed_own(row, seed)
        with self._called("reset", row):
            observation, info = env.reset(seed=seed, options=options)
            check_info(env, info)
            first = self._seen("reset", observation)
            self._keep_masks(row, info, begins=True)
        self._refuse_infinite_observations(first, "reset")
        episode.seen = crc32(first.data)
        self._running[row] = episode
        self._order[row], self._scenarios[row] = episode.order, episode.scenario
        return first

    def _step_row(self, row: int, action: Any, buffers: StepBuffers) -> Mapping[str, Any] | None:
        """The info of the last step of an episode; None: it goes on."""
        learners = self.guard.hand_over(row)
        try:
            observation, reward, terminated, truncated, info = self._envs[row].step(action)
            over, cut_off = bool(terminated), bool(truncated)
        finally:
            self.guard.take_back(row, learners)
        if type(info) is not dict and not isinstance(info, Mapping):
            raise MisfitError("gave an info that is not a dict")
        buffers.observations[row] = flat = self._seen("step", observation)
        buffers.rewards[row] = gained = reward_of(reward)
        episode = self._running[row]
        episode.length += 1
        episode.total += gained
        episode.seen = crc32(flat.data, episode.seen)
        if not (over or cut_off):
            self._keep_masks(row, info, begins=False)
            return None
        buffers.finished[row] = True
        buffers.truncated[row] = not over
        buffers.final_observations[row] = buffers.observations[row]
        return info

    def _keep_masks(self, row: int, info: Any, *, begins: bool) -> None:
        """Keep the masks that `info` says, where settings name them."""
        if self.settings.masks is None:
            return
        key, there = self.settings.masks.info, info if isinstance(info, Mapping) else {}
        given = info_entry(there, key)
        if given is not None:
            self._masks[row] = flat_masks(given, self.spec)
        elif begins:
            shown = ", ".join(sorted(info_keys(there))[:SHOWN]) or "nothing"
            raise MisfitError(
                f"gave no {key!r} in its info, which env.masks.info names (there is {shown})"
            )

    @contextmanager
    def _called(self, call: str, row: int) -> Iterator[None]:
        """`_blamed`, with the global generators that `row` has of its own, if any."""
        learners = self.guard.hand_over(row)
        try:
            with self._blamed(call):
                yield
        finally:
            self.guard.take_back(row, learners)

    @contextmanager
    def _blamed(self, call: str) -> Iterator[None]:
        """Raise ForeignCodeError, in a line, for what environments raise or give in `call`."""
        try:
            yield
        except MisfitError as error:
            raise ForeignCodeError(f"{self.settings.id}: its {call} {error}") from error
        except NEVER_BLAMED:
            raise
        except BaseException as error:
            words = raised_words(self._envs[0], call, error)
            raise ForeignCodeError(f"{self.settings.id}: its {call} raised {words}") from error

    def _seen(self, call: str, observation: Any) -> Observations:
        """What the world shows of it; that its shape or type is not the space's is said once."""
        seen = self._reader.read(observation, self._kind)
        if self._reader.fault is not None and not self._told:
            self._told = True
            self._notices.append(f"{self.settings.id}: its {call} {self._reader.fault} (told once)")
        return seen

    def _note_outside(self, call: str, observations: Observations) -> None:
        """Say once that a number lies beyond its bounds, which scaling by them counts on."""
        fault = outside(self.spec, self._bounded, observations)
        if fault is not None:
            self._bounded = ()
            self._notices.append(f"{self.settings.id}: its {call} {fault} (told once)")

    def _refuse_infinite(self, buffers: StepBuffers) -> None:
        """Raise ForeignCodeError for NaN and infinity, which learning would spread unseen."""
        if not np.isfinite(buffers.rewards).all():
            reward = buffers.rewards[~np.isfinite(buffers.rewards)][0]
            raise ForeignCodeError(f"{self.settings.id}: its step gave a reward of {reward:g}")
        self._refuse_infinite_observations(buffers.observations, "step")

    def _refuse_infinite_observations(self, observations: Observations, call: str) -> None:
        columns = columns_of(observations)
        finite = np.isfinite(columns)
        if not finite.all():
            column = int(np.argwhere(~finite)[0][-1])
            value, name = columns[~finite].flat[0], self.spec.observation_names[column]
            raise ForeignCodeError(f"{self.settings.id}: its {call} gave {name} as {value:g}")

    def _ended(self, infos: Mapping[int, Any], truncated: Any) -> EpisodeBatch:
        rows = np.array(sorted(infos), np.int64)
        returns = np.array([self._running[row].total for row in rows], np.float64)
        won = [self._is_won(row, infos[row], bool(truncated[row])) for row in rows.tolist()]
        return EpisodeBatch(
            row=rows,
            agent=np.zeros_like(rows),
            order=self._order[rows],
            scenario=self._scenarios[rows],
            cell=(Cell(TARGET, 0),) * len(rows),
            outcome=np.where(won, WIN, LOSS).astype(np.int8),
            length=np.array([self._running[row].length for row in rows], np.int64),
            terms=returns[:, None],
            running_order=self._order,
            running_scenario=self._scenarios,
            columns=dict.fromkeys(self.spec.episode_columns, returns),
        )

    def _is_won(self, row: int, info: Mapping[str, Any], truncated: bool) -> bool:
        ended = self._running[row]
        if self._judge is None:
            return False
        with self._blamed("info"):
            return self._judge.is_won(
                info, truncated=truncated, total=ended.total, length=ended.length
            )


def _close_quietly(envs: list[Env]) -> None:
    with suppress(LabError), ProcessGuard("", 1).kept(), blamed("close:"):
        _close_all(envs)


def _close_all(envs: list[Env]) -> None:
    """Close `envs` and forget them; raise what the first raises that refuses."""
    with ExitStack() as stack:
        while envs:
            stack.callback(envs.pop(0).close)
