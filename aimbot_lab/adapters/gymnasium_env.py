"""One row of a world as a `gymnasium.Env`."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from aimbot_lab.adapters.gymnasium_actions import ActionKind, action_codec
from aimbot_lab.adapters.gymnasium_infos import Infos, episode_infos
from aimbot_lab.adapters.spaces import observation_space
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    Picture,
    new_step_buffers,
    seats_of,
)

MAX_SEEDS = 2**63


class WorldEnv(gymnasium.Env[Float32Array, Any]):
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
        self.observation_space: spaces.Space[Any] = observation_space(world.spec)
        self.action_space: spaces.Space[Any] = self._codec.space
        self._size = len(world.spec.observation_names)
        width = len(world.spec.branches) + world.spec.continuous
        self._action = np.zeros((1, width), np.float32)
        self._running = False
        self._next: Float32Array | None = None  # first observation of the episode that waits
        world.keep_endings = render_mode is not None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, Infos]:
        """The first observation [D] of an episode, and an empty info.

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
            first = np.empty((1, self._size), np.float32)
            self.world.reset(start, first)
            observation = first[0]
        self._next = None
        self._running = True
        return observation, {}

    def step(self, action: Any) -> tuple[Float32Array, float, bool, bool, Infos]:
        """(observation [D], reward, terminated, truncated, info).

        Raises ActionError for an action that does not exist, which leaves the world as it was.
        """
        if not self._running:
            raise ResetNeeded("no episode is running: call reset()")
        self._codec.to_world(action, self._action)
        buffers = new_step_buffers(1, self._size)
        episodes = self.world.step(self._action, buffers)
        reward = float(buffers.rewards[0])
        if not episodes:
            return buffers.observations[0], reward, False, False, {}
        self._running = False
        self._next = buffers.observations[0]
        cut_off = bool(buffers.truncated[0])
        last = buffers.final_observations[0]
        return last, reward, not cut_off, cut_off, episode_infos(episodes, self.world.spec)[0]

    def render(self) -> Picture | None:
        """The row from above; after an episode's end, how it ended. None without a mode."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() needs an environment made with render_mode="rgb_array"')
            return None
        return self.world.draw(0, ending=self._next is not None)


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
