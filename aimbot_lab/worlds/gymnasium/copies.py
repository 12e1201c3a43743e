"""Copies of a Gymnasium environment in this process, stepped one after the other."""

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from gymnasium import spaces
from numpy import ndarray

from aimbot_lab.foundation.errors import (
    NEVER_BLAMED,
    ConfigurationError,
    ForeignCodeError,
    LabError,
    blamed,
)
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
    new_step_buffers,
)
from aimbot_lab.worlds.gymnasium.environments import (
    attribute,
    check_info,
    checked_scenario,
    environment_shape,
    raised_words,
    seed_notice,
    set_attributes,
)
from aimbot_lab.worlds.gymnasium.observations import ObservationReader, column_ends
from aimbot_lab.worlds.gymnasium.process_state import NOTHING, ProcessGuard, keeps_process
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings
from aimbot_lab.worlds.gymnasium.spaces import MisfitError, check_end, flat_masks, reward_of
from aimbot_lab.worlds.gymnasium.win_judge import SHOWN, WinJudge, info_entry, info_keys
from aimbot_lab.worlds.gymnasium.wrapping import Env, game_of, new_environment, seen_parts, space_of

FEW = 24  # numbers, which Python compares faster than NumPy
LARGEST_REWARD = 3e38  # all of a step added up; single precision ends a little beyond it
MAX_REPLAYED = 50_000  # steps of an episode that is kept to be played again

OTHERS_COME = "are others when they are played again, because the environment "
KEEPS = "keeps something from one episode to the next (env.remake: true makes it anew for each) or "
DRAWS = "draws from what is not seeded"


@dataclass(slots=True)
class RunningEpisode:
    """What is counted of an episode that runs, and by what it can be played again."""

    order: int  # rank by beginning
    scenario: int  # number of the one that it was drawn from
    values: dict[str, float]  # parameters that it was given
    seed: int = 0  # that its environment was reset with
    seen: int = 0  # checksum of its observations
    length: int = 0  # steps
    total: float = 0.0  # sum of its rewards
    actions: bytes = b""  # [length, A] of a snapshot; empty where it is too long


class EndedEpisode(NamedTuple):
    """An episode that ended in a step."""

    row: int
    order: int  # rank by beginning
    scenario: int  # number of the one that it was drawn from
    length: int  # steps
    total: float  # its return
    won: bool


Beginnings = Mapping[int, RunningEpisode]
"""Episodes that begin, by row."""
Following = Callable[[Sequence[int]], Beginnings]
"""Says for rows whose episodes have ended which begin there."""


class Copies:
    """`count` copies of an environment. They are closed when asked to, or with this object."""

    def __init__(self, settings: GymnasiumSettings, count: int) -> None:
        self.settings = settings
        self._envs: list[Env] = []
        self._unclosed: list[str] = []  # what was raised as they were closed
        weakref.finalize(self, _close_quietly, self._envs)
        self.guard = ProcessGuard(settings.id, count)
        with self.guard.kept(), closed_on_failure(self.close):
            for number in range(1, count + 1):
                try:
                    self._envs.append(new_environment(settings))
                except ConfigurationError as error:
                    if number == 1:
                        raise
                    raise ConfigurationError(
                        f"{error}; it is copy {number} of {count} (see env.num_envs, and "
                        "env.num_eval_envs where agents are judged)"
                    ) from error
            first = self._envs[0]
            with blamed(f"env.id: {settings.id} can't be used:", ConfigurationError):
                self.spec = environment_shape(first, settings)
                parts = seen_parts(first, settings.observation)
                self._reader = ObservationReader(space_of(first, "observation_space"), parts)
                notice = seed_notice(first, settings.id)
        assert self.spec.environment_actions is not None
        self._taken = self.spec.environment_actions
        self._games = [game_of(env) for env in self._envs]
        self._steps = [env.step for env in self._envs]
        self._watched_steps = [partial(self._watched_step, row) for row in range(count)]
        self._notices = [] if notice is None else [notice]
        self._kind, self._told = self.spec.observation_dtype, False  # of a shape that does not fit
        self._is_single = self._reader.plain[1] == np.float32
        self._set_ends(bounded=True)
        self._judge = None if settings.win is None else WinJudge(settings.win)
        self._usual: dict[str, Any] = {}  # attributes that were set, as environments are made
        self._masks = np.ones((count, sum(self.spec.branches)), np.bool_)
        self._running = [RunningEpisode(0, 0, {}) for _ in range(count)]  # as they began
        self._used = [False] * count  # whether an episode has begun in each
        self._totals = [0.0] * count  # sums of their rewards
        self._seen = [0] * count  # checksums of their observations
        self._memory: list[tuple[Observations, list[Any]]] = []  # of the last two arrays
        self._since = [0] * count  # steps that were made before each
        self._made = 0  # steps
        self._actions: deque[Float32Array] = deque(maxlen=MAX_REPLAYED)  # [count, A] of the last

    def check_scenario(self, scenario: Scenario) -> None:
        """Raise ConfigurationError for another target, and for parameters that there are not."""
        with self.guard.kept():
            checked_scenario(scenario, self._envs[0], self.settings)

    @keeps_process
    def start(self, beginnings: Beginnings, observations: Observations) -> None:
        """Begin an episode in each of these rows; writes their `observations` [B]."""
        self._start_rows(beginnings, observations)

    def _start_rows(self, beginnings: Beginnings, observations: Observations) -> None:
        self._require_open()
        columns = columns_of(observations)
        for row, episode in beginnings.items():
            self._start(row, episode, observations)
            self._since[row] = self._made
            self._check("reset", columns[row : row + 1])
        needed = self._made - min(self._since)
        for _ in range(len(self._actions) - needed):
            self._actions.popleft()

    def step(
        self, actions: Float32Array, buffers: StepBuffers, following: Following | None
    ) -> tuple[list[EndedEpisode], tuple[int, ...]]:
        """Episodes that ended, and rows that ended for the learner alone; writes `buffers`.

        Where episodes ended, the `following` begin; without these they must be started.
        """
        self._made += 1
        self._actions.append(actions)
        buffers.finished.fill(False)
        buffers.truncated.fill(False)
        before = self.guard.look()
        try:
            ended, lives = self._step_rows(enumerate(self._taken.each(actions)), buffers)
            self._check("step", columns_of(buffers.observations))
            if ended and following is not None:
                self._start_rows(following([one.row for one in ended]), buffers.observations)
        finally:
            self.guard.put_back(before)
        return ended, lives

    def _step_rows(
        self, taken: Iterable[tuple[int, Any]], buffers: StepBuffers
    ) -> tuple[list[EndedEpisode], tuple[int, ...]]:
        """Take these actions in their rows; `step` says the rest."""
        ended: list[EndedEpisode] = []
        lives: list[int] = []
        observations, rewards = buffers.observations, buffers.rewards
        totals, checksums = self._totals, self._seen
        steps = self._watched_steps if self.guard.is_watching else self._steps
        masked, all_finite = self.settings.masks is not None, True
        memory, is_plain = self._memory_of(observations), self._is_single
        try:
            for row, action in taken:
                seen, reward, terminated, truncated, info = steps[row](action)
                if type(info) is not dict and not isinstance(info, Mapping):
                    raise MisfitError("gave an info that is not a dict")
                if is_plain and type(seen) is ndarray:
                    try:
                        memory[row][:] = seen  # of this shape and type; nothing is faster
                    except ValueError:
                        observations[row] = self._read("step", seen)
                else:
                    observations[row] = self._read("step", seen)
                gained = reward if type(reward) is float else reward_of(reward)
                rewards[row] = gained
                totals[row] += gained
                if not -LARGEST_REWARD < gained < LARGEST_REWARD:
                    all_finite = False
                if terminated or truncated:
                    check_end("terminated", terminated)
                    check_end("truncated", truncated)
                    buffers.finished[row] = True
                    buffers.truncated[row] = not terminated
                    buffers.final_observations[row] = observations[row]
                    over = self._over(row, info, buffers)
                    if over is None:
                        lives.append(row)
                    else:
                        ended.append(over)
                elif masked:
                    self._keep_masks(row, info, begins=False)
                checksums[row] = crc32(memory[row], checksums[row])
        except BaseException as error:
            self._blame("step", error)
            raise
        if not all_finite:
            self._refuse_infinite_rewards(rewards)
        return ended, tuple(lives)

    def _memory_of(self, observations: Observations) -> list[Any]:
        """The memory of each row: its columns, or the bytes of a record."""
        for known, rows in self._memory:
            if known is observations:
                return rows
        flat = observations
        if observations.dtype.names is not None:
            flat = np.frombuffer(observations, np.uint8).reshape(len(observations), -1)
        rows = [row.data for row in flat]
        self._memory = [(observations, rows), *self._memory[:1]]
        return rows

    def _watched_step(self, row: int, action: Any) -> Any:
        learners = self.guard.hand_over(row)
        try:
            return self._envs[row].step(action)
        finally:
            self.guard.take_back(row, learners)

    def _over(self, row: int, info: Mapping[str, Any], buffers: StepBuffers) -> EndedEpisode | None:
        """The episode that ended in `row`; None where a life did, and the game goes on."""
        game, total = self._games[row], self._totals[row]
        if game is not None:
            total, begun = game.score, game.begun
            if not game.is_over:
                with self._called("reset", row):
                    observation, _ = self._envs[row].reset()
                    buffers.observations[row] = self._read("reset", observation)
                if game.begun == begun and not game.is_over:
                    return None
                total = game.ended_score if game.begun != begun else game.score
        won, length = False, self._made - self._since[row]
        if self._judge is not None:
            cut_off = bool(buffers.truncated[row])
            with self._blamed("info"):
                won = self._judge.is_won(info, truncated=cut_off, total=total, length=length)
        running = self._running[row]
        return EndedEpisode(row, running.order, running.scenario, length, total, won)

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

    def running(self, rows: Sequence[int]) -> list[RunningEpisode]:
        """The episodes that run in `rows`, with their actions."""
        return [self._running_in(row) for row in rows]

    def _running_in(self, row: int) -> RunningEpisode:
        length, actions = self._made - self._since[row], b""
        if 0 < length <= len(self._actions):
            made = islice(self._actions, len(self._actions) - length, None)
            actions = b"".join(one[row].tobytes() for one in made)
        return replace(
            self._running[row],
            seen=self._seen[row],
            length=length,
            total=self._totals[row],
            actions=actions,
        )

    def used_generators(self) -> list[str]:
        """The global generators that the environments have of their own."""
        return list(self.guard.used)

    def use_generators(self, names: Iterable[str]) -> None:
        """Have them have these of their own, from the next episode in each row on."""
        self.guard.used.update(dict.fromkeys(names))

    def play_again(
        self, episodes: Mapping[int, RunningEpisode], observations: Observations
    ) -> dict[int, str]:
        """Play `episodes` again in their rows; writes the `observations` [B] seen last.

        Why those are lost that were not the same, by row.
        """
        lost = dict[int, str]()
        made = dict[int, Float32Array]()
        with self.guard.kept():
            for row, episode in episodes.items():
                try:
                    made[row] = self._play_again(row, episode, observations)
                except LabError as error:
                    lost[row] = str(error)
        self._keep_made(made)
        return lost

    def _play_again(
        self, row: int, kept: RunningEpisode, observations: Observations
    ) -> Float32Array:
        """The actions [length, A] of `kept`, which goes on in `row`.

        Raises LabError, which says why, where that can't be.
        """
        if kept.length > MAX_REPLAYED:
            raise LabError(f"are longer than {MAX_REPLAYED:,} steps")
        width = len(self.spec.branches) + self.spec.continuous
        actions = np.frombuffer(kept.actions, np.float32).reshape(-1, width)
        buffers = new_step_buffers(len(self._envs), self._kind)
        began = replace(kept, seen=0, length=0, total=0.0, actions=b"")
        with suppress(LabError):
            self._start(row, began, buffers.observations)
            self._since[row], ended = self._made, False
            for action in self._taken.each(actions):
                self._made += 1
                ended |= bool(self._step_rows([(row, action)], buffers)[0])
            found = len(actions), self._totals[row], self._seen[row]
            if not ended and found == (kept.length, kept.total, kept.seen):
                observations[row] = buffers.observations[row]
                return actions
        raise LabError(OTHERS_COME + ("" if self.settings.remake else KEEPS) + DRAWS)

    def _keep_made(self, made: Mapping[int, Float32Array]) -> None:
        """Keep the actions of episodes that were played again, as if they had just been made."""
        longest = max(map(len, made.values()), default=0)
        width = len(self.spec.branches) + self.spec.continuous
        every = np.zeros((longest, len(self._envs), width), np.float32)
        for row, actions in made.items():
            every[longest - len(actions) :, row] = actions
            self._since[row] = longest - len(actions)
        self._made = longest
        self._actions = deque(every, maxlen=MAX_REPLAYED)

    @keeps_process
    def draw(self, row: int) -> Picture:
        """Row `row` as the environment renders it. Raises LabError where it renders nothing."""
        with self._called("render", row):
            given = self._envs[row].render()
            frame = np.asarray(given)
        if frame.ndim == 2:
            frame = frame[:, :, None]
        is_picture = frame.ndim == 3 and frame.shape[2] in (1, 3, 4) and frame.size > 0
        if not is_picture or frame.dtype.kind not in "iu":
            shown = "None" if given is None else f"an array {list(frame.shape)} of {frame.dtype}"
            raise LabError(
                f"{self.settings.id}: its render gave {shown}; it must be [height, width, 3] of "
                "uint8, as by env.kwargs: {render_mode: rgb_array}"
            )
        return (frame.repeat(3, 2) if frame.shape[2] == 1 else frame[:, :, :3]).astype(np.uint8)

    @keeps_process
    def goal_rewards(
        self, achieved: Float32Array, desired: Float32Array, infos: Any
    ) -> Float32Array:
        """Rewards [N] of steps after which goals [N, D] are `achieved` and others `desired`.

        The environment's compute_reward gets them in the shapes and types of its own space, choices
        as [N, 1].
        Raises ForeignCodeError for what it raises, and for other rewards.
        """
        goals = [self._reader.goals[name] for name in GOALS]
        with self._called("compute_reward", 0):
            own = [
                (columns.argmax(axis=1, keepdims=True) + space.start).astype(space.dtype)
                if isinstance(space, spaces.Discrete)
                else columns.astype(space.dtype).reshape(len(columns), *(space.shape or ()))
                for columns, space in zip((achieved, desired), goals, strict=True)
            ]
            given = self._envs[0].get_wrapper_attr("compute_reward")(*own, infos)
            rewards = np.asarray(given, np.float32)
            if rewards.size != len(achieved):
                raise MisfitError(f"gave {rewards.shape} rewards for {len(achieved)} goals")
        return rewards.ravel()

    @keeps_process
    def close(self) -> None:
        """Close all; what raises is reported."""
        self._close(self._envs)

    def _close(self, envs: list[Env]) -> None:
        try:
            with blamed(f"{self.settings.id}: its close raised", ForeignCodeError):
                _close_all(envs)
        except ForeignCodeError as error:
            if str(error) not in self._unclosed:
                self._unclosed.append(str(error))
                self._notices.append(str(error))

    def _remake(self, row: int) -> None:
        """Have an environment in `row` in which nothing is left of another episode."""
        with self.guard.kept(), self._called("making", row):
            self._close([self._envs[row]])
            try:
                env = self._envs[row] = new_environment(self.settings)
            except ConfigurationError as error:  # the first could be made
                raise ForeignCodeError(str(error)) from error
        self._games[row], self._steps[row] = game_of(env), env.step

    def _start(self, row: int, episode: RunningEpisode, observations: Observations) -> None:
        watched = self.guard.is_watching
        if watched:
            self.guard.seed_own(row, episode.seed)
        if self.settings.remake and self._used[row]:
            self._remake(row)
        self._used[row] = True
        env = self._envs[row]
        options: dict[str, Any] | None = None
        if self.settings.via == "options":
            options = dict(episode.values)
        elif self._usual or episode.values:
            for name in episode.values:
                self._usual.setdefault(name, attribute(env, name))
            set_attributes(env, {**self._usual, **episode.values})
        if self._games[row] is not None:  # whose reset would go on with a game that is not over
            env.set_wrapper_attr("was_real_done", True, force=False)
        learners = self.guard.hand_over(row) if watched else NOTHING
        try:
            observation, info = env.reset(seed=episode.seed, options=options)
            if type(info) is not dict:
                check_info(env, info)
            observations[row] = self._read("reset", observation)
            if self.settings.masks is not None:
                self._keep_masks(row, info, begins=True)
        except BaseException as error:
            self._blame("reset", error)
            raise
        finally:
            if watched:
                self.guard.take_back(row, learners)
        self._running[row], self._totals[row] = episode, 0.0
        self._seen[row] = crc32(self._memory_of(observations)[row])

    def _read(self, call: str, observation: Any) -> Observations:
        """What the world shows of it; that its shape or type is not the space's is said once."""
        shape, kind = self._reader.plain
        is_array = type(observation) is ndarray
        if is_array and observation.dtype is kind and observation.shape == shape:
            plain: Observations = observation
            return plain
        seen = self._reader.read(observation, self._kind)
        if self._reader.fault is not None and not self._told:
            self._told = True
            self._notices.append(
                f"{self.settings.id}: its {call} {self._reader.fault} (reported once)"
            )
        return seen

    def _keep_masks(self, row: int, info: Any, *, begins: bool) -> None:
        """Keep the masks that `info` says, where settings name them."""
        assert self.settings.masks is not None
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
        except BaseException as error:
            self._blame(call, error)
            raise

    def _blame(self, call: str, error: BaseException) -> None:
        """Raise ForeignCodeError, in a line, for the `error` of `call`, if that is theirs."""
        if isinstance(error, MisfitError):
            raise ForeignCodeError(f"{self.settings.id}: its {call} {error}") from error
        if not isinstance(error, NEVER_BLAMED):
            self._require_open()
            words = raised_words(self._envs[0], call, error)
            raise ForeignCodeError(f"{self.settings.id}: its {call} raised {words}") from error

    def _require_open(self) -> None:
        """Raise ForeignCodeError where all are closed, as a callback may do that sees them."""
        if not self._envs:
            raise ForeignCodeError(f"{self.settings.id}: it was closed while it was played")

    def _set_ends(self, *, bounded: bool) -> None:
        """Bounds of the columns of all rows; `bounded`: none once a number lay beyond its own."""
        self._ends = column_ends(self.spec, len(self._envs), bounded=bounded)
        self._few = [end.ravel()[:FEW].tolist() for end in self._ends]

    def _check(self, call: str, columns: Float32Array) -> None:
        """Say once that a number lies beyond its bounds, which scaling by them counts on.

        Raises ForeignCodeError for NaN and infinity, which learning would spread unseen.
        """
        if columns.size <= FEW:
            least, most = self._few
            values = columns.ravel().tolist()
            for low, value, high in zip(least, values, most, strict=False):
                if not low <= value <= high:
                    break
            else:
                return
        low, high = self._ends
        if len(columns) < len(low):
            low, high = low[: len(columns)], high[: len(columns)]
        cut = np.fmin(np.fmax(columns, low), high)  # of NaN, `low`
        if cut.tobytes() == columns.tobytes():
            return
        within, finite = cut == columns, np.isfinite(columns)
        if within.all():
            return
        row, column = np.argwhere(~within if finite.all() else ~finite)[0]
        name, value = self.spec.observation_names[column], columns[row, column]
        gave = f"{self.settings.id}: its {call} gave {name} as {value:g}"
        if not finite.all():
            raise ForeignCodeError(gave)
        self._set_ends(bounded=False)
        low, high = self.spec.observation_low[column], self.spec.observation_high[column]
        self._notices.append(f"{gave}; its space says {low:g} to {high:g} (reported once)")

    def _refuse_infinite_rewards(self, rewards: Float32Array) -> None:
        """Raise ForeignCodeError for NaN and infinity, which learning would spread unseen."""
        if not np.isfinite(rewards).all():
            reward = rewards[~np.isfinite(rewards)][0]
            raise ForeignCodeError(f"{self.settings.id}: its step gave a reward of {reward:g}")


def _close_quietly(envs: list[Env]) -> None:
    """Close what was not closed, at any moment: generators can't be compared in all of them."""
    guard = ProcessGuard("", 1)
    before = guard.look()
    try:
        with suppress(LabError), blamed("close:"):
            _close_all(envs)
    finally:
        guard.put_back(before)


def _close_all(envs: list[Env]) -> None:
    """Close `envs` and forget them; raise what the first raises that refuses."""
    with ExitStack() as stack:
        while envs:
            stack.callback(envs.pop(0).close)
