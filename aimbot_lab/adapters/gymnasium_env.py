"""A world as Gymnasium's environments: one row as an `Env`, all seats as a `VectorEnv`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from aimbot_lab.adapters.spaces import ActionKind, ObservationCodec, action_codec
from aimbot_lab.foundation.episodes import EpisodeBatch, result_line
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Picture,
    StepBuffers,
    WorldSpec,
    new_observations,
    seats_of,
    step_buffers,
)

MAX_SEEDS = 2**63
Infos = dict[str, Any]


class WorldEnv(gymnasium.Env[Any, Any]):
    """`world`, which must have one row and a scenario.

    The last step's info says how the episode ended, see `episode_infos`.
    """

    # Declared like this by gymnasium, which reads it from the class.
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        world: BatchWorld,
        *,
        action: ActionKind = "bins",
        aim_bins: Sequence[float] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if seats_of(world) != 1:
            raise ConfigurationError(
                "the world must have one row and one agent "
                f"(got {world.num_envs} and {world.spec.agents})"
            )
        self.world = world
        self.render_mode = checked_render_mode(render_mode, self.metadata)
        self._codec = action_codec(world.spec, action, aim_bins)
        self._seen = ObservationCodec(world.spec)
        self.observation_space: spaces.Space[Any] = self._seen.space
        self.action_space: spaces.Space[Any] = self._codec.space
        width = len(world.spec.branches) + world.spec.continuous
        self._action = np.zeros((1, width), np.float32)
        self._running = False
        self._next: Any = None  # first observation of the episode that waits
        world.keep_endings = render_mode is not None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """The first observation of an episode, and an empty info.

        With `seed`, a first episode that depends on the seed alone. Without one, after an
        episode's end, the episode that follows it in the world: the random stream goes on and
        the agent may keep its place. Without one in the middle of an episode, which is then
        forgotten, or at the very beginning: a first episode from a seed drawn from `np_random`.
        """
        refuse_options(options)
        super().reset(seed=seed)
        if seed is None and self._next is not None:
            observation = self._next
        else:
            start = int(self.np_random.integers(MAX_SEEDS)) if seed is None else seed
            first = new_observations(self.world)
            self.world.reset(start, first)
            observation = self._seen.row(first, 0)
        self._next = None
        self._running = True
        return observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Infos]:
        """(observation, reward, terminated, truncated, info).

        Raises ActionError for an action that does not exist, which leaves the world as it was.
        """
        if not self._running:
            raise ResetNeeded("no episode is running: call reset()")
        self._codec.to_world(action, self._action)
        buffers = step_buffers(self.world)
        episodes = self.world.step(self._action, buffers)
        reward, seen = float(buffers.rewards[0]), self._seen.row(buffers.observations, 0)
        if not episodes:
            return seen, reward, False, False, {}
        self._running = False
        self._next = seen
        cut_off = bool(buffers.truncated[0])
        last = self._seen.row(buffers.final_observations, 0)
        return last, reward, not cut_off, cut_off, episode_infos(episodes, self.world.spec)[0]

    def render(self) -> Picture | None:
        """The row from above; after an episode's end, how it ended. None without a mode."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() needs an environment made with render_mode="rgb_array"')
            return None
        return self.world.draw(0, ending=self._next is not None)


class WorldVectorEnv(VectorEnv[Any, Any, Any]):
    """All seats of `world`, which must have a scenario, stepped at once; with one agent, its rows.

    A finished row is reset in the same step: its observation is that of the new episode, the
    last one of the old is in the infos as `final_obs`, how it ended in `final_info` (see
    `episode_infos`). There is no other `autoreset_mode` than this SAME_STEP, because a world
    resets a finished row itself. Every
    array that is handed out belongs to the caller.
    """

    # Declared like this by gymnasium, which reads it from the class.
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        world: BatchWorld,
        *,
        action: ActionKind = "bins",
        aim_bins: Sequence[float] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.world = world
        self.num_envs = seats_of(world)
        self.render_mode = checked_render_mode(render_mode, self.metadata)
        self._codec = action_codec(world.spec, action, aim_bins)
        self._seen = ObservationCodec(world.spec)
        self.single_observation_space = self._seen.space
        self.single_action_space = self._codec.space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        width = len(world.spec.branches) + world.spec.continuous
        self._actions = np.zeros((self.num_envs, width), np.float32)
        self._final = new_observations(world)
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """First observations [B] and an empty info: first episodes in all rows.

        They depend on `seed` alone; row 0 is that of a `WorldEnv` with the same seed. Without
        one, on a seed drawn from `np_random`, which goes on where it was; running episodes are
        forgotten.
        """
        refuse_options(options)
        super().reset(seed=seed)
        start = int(self.np_random.integers(MAX_SEEDS)) if seed is None else seed
        observations = new_observations(self.world)
        self.world.reset(start, observations)
        self._running = True
        return self._seen.shown(observations), {}

    def step(self, actions: Any) -> tuple[Any, Float32Array, BoolArray, BoolArray, Infos]:
        """(observations [B], rewards [B], terminated [B], truncated [B], infos).

        Raises ActionError, naming the row, for an action that does not exist; the world stays
        as it was.
        """
        if not self._running:
            raise ResetNeeded("no episode is running: call reset()")
        self._codec.to_world(actions, self._actions)
        buffers = StepBuffers(
            observations=np.empty_like(self._final),
            rewards=np.empty(self.num_envs, np.float32),
            finished=np.empty(self.num_envs, np.bool_),
            truncated=np.zeros(self.num_envs, np.bool_),
            final_observations=self._final,
        )
        episodes, infos = self.world.step(self._actions, buffers), {}
        if episodes:
            last = partial(self._seen.row, self._final)
            infos = batch_infos(episodes, last, spec=self.world.spec, seats=self.num_envs)
        terminated, seen = buffers.finished & ~buffers.truncated, buffers.observations
        return self._seen.shown(seen), buffers.rewards, terminated, buffers.truncated, infos

    def render(self) -> tuple[Picture, ...] | None:
        """Every row from above. None without a mode."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() needs environments made with render_mode="rgb_array"')
            return None
        return tuple(self.world.draw(row) for row in range(self.world.num_envs))


def checked_render_mode(mode: str | None, metadata: dict[str, Any]) -> str | None:
    """`mode`; raises ConfigurationError where `metadata` does not list it."""
    if mode is not None and mode not in metadata["render_modes"]:
        allowed = ", ".join(metadata["render_modes"])
        raise ConfigurationError(f"render_mode must be {allowed} or None (got {mode!r})")
    return mode


def refuse_options(options: dict[str, Any] | None) -> None:
    """Raise ConfigurationError where `options` for a reset hold anything."""
    if options:
        raise ConfigurationError(f"reset() has no options (got {', '.join(options)})")


def episode_infos(episodes: EpisodeBatch, spec: WorldSpec) -> list[Infos]:
    """One info per ended episode of a world with `spec`.

    `won` and `is_success` (the same under stable-baselines3's name), `outcome` (1 win, 0 draw,
    -1 loss), `target`, `difficulty` (0: none), `episode_return`, `reward_terms` [T] in the order
    of the world's spec, the world's own columns (of the arena `seconds`), and `line`, the result
    line as a game would send it.
    """
    infos: list[Infos] = []
    for place, cell in enumerate(episodes.cell):
        won = bool(episodes.won[place])
        infos.append(
            {
                "won": won,
                "is_success": won,
                "outcome": int(episodes.outcome[place]),
                "target": None if cell is None else cell.target,
                "difficulty": 0 if cell is None else cell.difficulty,
                "episode_return": float(episodes.returns[place]),
                "reward_terms": episodes.terms[place].copy(),
                **{name: float(column[place]) for name, column in episodes.columns.items()},
                "line": result_line(episodes, place, spec.result_columns),
            }
        )
    return infos


def batch_infos(
    episodes: EpisodeBatch, last_of: Callable[[int], Any], *, spec: WorldSpec, seats: int
) -> Infos:
    """`final_obs` and `final_info` of a batch of N `seats` in which `episodes` ended.

    In the form of Gymnasium's own vector environments: every entry has one place per seat
    and, under its name with `_` before it, a mask [N] of the seats that it speaks of. `last_of` a
    seat is its last observation.
    """
    places = episodes.seats(seats // spec.agents)
    ended = np.zeros(seats, np.bool_)
    ended[places] = True
    last = np.full(seats, None, object)
    for seat in places.tolist():
        last[seat] = last_of(seat)
    infos = episode_infos(episodes, spec)
    final: Infos = {}
    for name in infos[0]:
        final[name] = _column([info[name] for info in infos], places, seats)
        final[f"_{name}"] = ended.copy()
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": final,
        "_final_info": ended,
    }


def _column(values: Sequence[Any], rows: npt.NDArray[np.int64], count: int) -> npt.NDArray[Any]:
    """`values` at their `rows` of `count`; 0 elsewhere, None where they are not numbers."""
    found = np.array(values)
    if found.dtype.kind not in "bif":
        column = np.full(count, None, object)
    else:
        column = np.zeros((count, *found.shape[1:]), found.dtype)
    column[rows] = found
    return column
