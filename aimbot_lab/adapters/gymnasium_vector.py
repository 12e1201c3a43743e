"""A world as a `gymnasium.vector.VectorEnv` that owns its whole batch."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from aimbot_lab.adapters.gymnasium_actions import ActionKind, action_codec
from aimbot_lab.adapters.gymnasium_env import MAX_SEEDS, checked_render_mode, refuse_options
from aimbot_lab.adapters.gymnasium_infos import Infos, batch_infos
from aimbot_lab.adapters.spaces import observation_space
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Picture,
    StepBuffers,
    seats_of,
)


class WorldVectorEnv(VectorEnv[Float32Array, Any, Any]):
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
        self.single_observation_space = observation_space(world.spec)
        self.single_action_space = self._codec.space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._shape = self.num_envs, len(world.spec.observation_names)
        width = len(world.spec.branches) + world.spec.continuous
        self._actions = np.zeros((self.num_envs, width), np.float32)
        self._final = np.zeros(self._shape, np.float32)
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, Infos]:
        """First observations [B, D] and an empty info: first episodes in all rows.

        They depend on `seed` alone; row 0 is that of a `WorldEnv` with the same seed. Without
        one, on a seed drawn from `np_random`, which goes on where it was; running episodes are
        forgotten.
        """
        refuse_options(options)
        super().reset(seed=seed)
        start = int(self.np_random.integers(MAX_SEEDS)) if seed is None else seed
        observations = np.empty(self._shape, np.float32)
        self.world.reset(start, observations)
        self._running = True
        return observations, {}

    def step(self, actions: Any) -> tuple[Float32Array, Float32Array, BoolArray, BoolArray, Infos]:
        """(observations [B, D], rewards [B], terminated [B], truncated [B], infos).

        Raises ActionError, naming the row, for an action that does not exist; the world stays
        as it was.
        """
        if not self._running:
            raise ResetNeeded("no episode is running: call reset()")
        self._codec.to_world(actions, self._actions)
        buffers = StepBuffers(
            observations=np.empty(self._shape, np.float32),
            rewards=np.empty(self.num_envs, np.float32),
            finished=np.empty(self.num_envs, np.bool_),
            truncated=np.zeros(self.num_envs, np.bool_),
            final_observations=self._final,
        )
        episodes = self.world.step(self._actions, buffers)
        infos = batch_infos(episodes, self._final, spec=self.world.spec) if episodes else {}
        terminated = buffers.finished & ~buffers.truncated
        return buffers.observations, buffers.rewards, terminated, buffers.truncated, infos

    def render(self) -> tuple[Picture, ...] | None:
        """Every row from above. None without a mode."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() needs environments made with render_mode="rgb_array"')
            return None
        return tuple(self.world.draw(row) for row in range(self.world.num_envs))
