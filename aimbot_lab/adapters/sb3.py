"""A world as stable-baselines3's VecEnv, and the scale of its rewards."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from aimbot_lab.adapters.gymnasium_env import checked_render_mode
from aimbot_lab.adapters.spaces import (
    LearnerActions,
    ObservationCodec,
    TargetCodec,
    learner_codec,
)
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Observations,
    Picture,
    StepBuffers,
    close_world,
    columns_of,
    seats_of,
    step_buffers,
)

EPSILON = 1e-8  # variance added
LARGEST = 10.0  # size beyond which a scaled reward is cut


class RewardScale(Protocol):
    """What turns a step's rewards into the learner's."""

    def restart(self, rows: BoolArray) -> None:
        """Episodes begin in `rows` [B]."""
        ...

    def scaled(self, rewards: Float32Array, finished: BoolArray) -> Float32Array:
        """Fresh rewards [B] of a step's raw ones [B]; `finished` [B] ended an episode."""
        ...

    def state(self) -> dict[str, Any]:
        """What later rewards depend on: numbers and arrays by name."""
        ...

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        ...


class ConstantRewardScale:
    """Every reward times the same number."""

    def __init__(self, factor: float) -> None:
        self._factor, self._is_one = np.float32(factor), factor == 1

    def restart(self, _: BoolArray) -> None:
        """Nothing is remembered."""

    def scaled(self, rewards: Float32Array, _: BoolArray) -> Float32Array:
        """Fresh rewards [B]."""
        if self._is_one:
            return rewards.copy()
        with np.errstate(over="ignore"):  # the report of the losses shows it
            return rewards * self._factor

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on."""


class RunningRewardScale:
    """Rewards over the standard deviation of all discounted returns so far, cut at ten.

    A row's return is the discounted sum of its episode's rewards up to now, as in
    stable-baselines3's VecNormalize; the statistics are brought up to date at every step, before
    its rewards are scaled.
    """

    def __init__(self, num_envs: int, *, gamma: float) -> None:
        self._gamma = gamma
        self._returns = np.zeros(num_envs)  # [B]
        self._mean, self._variance, self._count = 0.0, 1.0, 1e-4

    def restart(self, rows: BoolArray) -> None:
        """Forget the returns of the episodes that run in `rows` [B], not the statistics."""
        self._returns[rows] = 0.0

    def scaled(self, rewards: Float32Array, finished: BoolArray) -> Float32Array:
        """Fresh rewards [B]."""
        self._returns = returns = self._returns * self._gamma + rewards
        if len(returns) == 1:  # which is faster without NumPy
            self._count_in(float(returns[0]), 0.0)
        else:
            self._count_in(float(np.mean(returns)), float(np.var(returns)))
        returns[finished] = 0.0
        scaled = rewards / np.sqrt(self._variance + EPSILON)
        cut: Float32Array = np.minimum(np.maximum(scaled, -LARGEST), LARGEST).astype(np.float32)
        return cut

    def _count_in(self, mean: float, variance: float) -> None:
        """One more batch (Chan, Golub & LeVeque 1979)."""
        seen, apart = len(self._returns), mean - self._mean
        total = self._count + seen
        squares = self._variance * self._count + variance * seen
        squares += apart * apart * self._count * seen / total
        self._mean += apart * seen / total
        self._variance, self._count = squares / total, total

    def state(self) -> dict[str, Any]:
        """`returns` [B], `mean`, `variance` and `count`."""
        return {
            "returns": self._returns.copy(),
            "mean": self._mean,
            "variance": self._variance,
            "count": self._count,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._returns = np.array(state["returns"], np.float64)
        self._mean, self._variance = float(state["mean"]), float(state["variance"])
        self._count = float(state["count"])


def reward_scale(scale: float | Literal["running"], num_envs: int, *, gamma: float) -> RewardScale:
    """What `scale` means for `num_envs` rows whose learner discounts by `gamma`."""
    if scale == "running":
        return RunningRewardScale(num_envs, gamma=gamma)
    return ConstantRewardScale(scale)


Indices = None | int | Iterable[int]
BY_ROW = ("returns", "seen")  # arrays of a state beside the world's; the others are of all rows
RENDERING = {"render_modes": ["rgb_array"]}


class WorldVecEnv(VecEnv):
    """`world` with actions as a learner takes them, reset in the step that finished an episode.

    Each seat of the world is an environment of its own: `num_envs` is N = agents x rows.
    Observations alternate between two buffers, because stable-baselines3 still reads the last
    one after the next step; rewards are a fresh array each step, because it writes into them.
    Without `aim_bins`, eleven values between the limits of the mouse. A finished row's info has
    `episode`, `is_success` (of a world that has wins) and `terminal_observation`.
    `episodes` holds what ended in the last step. With `show_masks` the masks of the world's
    branches are the last columns of every observation, 1 for what makes sense. Pictures have their
    channels first; with `joined` the other columns stay together beside them, as `columns`, and
    with `blocks` there is a Dict without pictures, too."""

    def __init__(
        self,
        world: BatchWorld,
        aim_bins: Sequence[float] | None = None,
        *,
        actions: LearnerActions = "bins",
        show_masks: bool = False,
        joined: bool = False,
        blocks: bool = False,
        seed: int = 0,
        reward_scale: float | RewardScale = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.world = world
        self.render_mode = checked_render_mode(render_mode, RENDERING)
        self.episodes: EpisodeBatch | None = None
        self._codec = learner_codec(world.spec, actions, aim_bins)
        self._show_masks = show_masks
        self._is_plain = not (show_masks or blocks or world.spec.pictures)
        self._aims = isinstance(self._codec, TargetCodec)
        self._seed = seed
        self._resets = 0
        self.reward_scale = (
            ConstantRewardScale(reward_scale)
            if isinstance(reward_scale, float | int)
            else reward_scale
        )
        seats = seats_of(world)
        self._buffers = [step_buffers(world) for _ in range(2)]
        self._turn = 0
        width = len(world.spec.branches) + world.spec.continuous
        self._actions = np.zeros((seats, width), np.float32)
        self._branch_masks = np.ones((seats, sum(world.spec.branches)), np.bool_)
        self._seen = ObservationCodec(
            world.spec, masks=show_masks, channels_first=True, joined=joined, blocks=blocks
        )
        super().__init__(seats, self._seen.space, self._codec.space)

    def reset(self) -> VecEnvObs:
        """First observations [B, D]; takes the seed given to `seed`, else one of its own.

        Raises ConfigurationError where the world has no scenario, and so no target: no episode
        would ever end.
        """
        if self.world.scenario_number == 0:
            raise ConfigurationError(
                "the world has no target, so no episode would ever end: make it with "
                "aimbot_lab.adapters.sb3_envs.make_vec_env(TARGET, num_envs=...), or call "
                f"world.set_scenario first; its targets are {', '.join(self.world.spec.targets)}"
            )
        given = self._seeds[0]
        seed = derive_seed(self._seed, "reset", self._resets) if given is None else given
        self._resets += 1
        observations = self._next_buffers().observations
        self.world.reset(seed, observations)
        self.reward_scale.restart(np.ones(self.num_envs, np.bool_))
        self.episodes = None
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return self._shown(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Take a batch of the action space's `actions` for the next `step_wait`."""
        seen = columns_of(self._buffers[self._turn].observations) if self._aims else None
        self._codec.to_world(actions, self._actions, seen)

    def step_wait(self) -> VecEnvStepReturn:
        """(observations [B, D], scaled rewards [B], finished [B], infos)."""
        buffers = self._next_buffers()
        self.episodes = self.world.step(self._actions, buffers)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self.episodes:
            self._tell_endings(self.episodes, buffers, infos)
        rewards = self.reward_scale.scaled(buffers.rewards, buffers.finished)
        seen = buffers.observations if self._is_plain else self._shown(buffers.observations)
        return seen, rewards, buffers.finished.copy(), infos

    def _tell_endings(
        self, episodes: EpisodeBatch, buffers: StepBuffers, infos: list[dict[str, Any]]
    ) -> None:
        spec, rows, last = self.world.spec, self.world.num_envs, buffers.final_observations
        seats: list[int] = (episodes.row if spec.agents == 1 else episodes.seats(rows)).tolist()
        for seat in (*seats, *episodes.untold):
            infos[seat] = {
                "terminal_observation": last[seat].copy()
                if self._is_plain
                else self._last_shown(last, seat),
                "TimeLimit.truncated": bool(buffers.truncated[seat]),
            }
        results = zip(seats, episodes.returns.tolist(), episodes.length.tolist(), strict=True)
        for seat, total, length in results:
            infos[seat]["episode"] = {"r": total, "l": length}
        if spec.has_wins:
            for seat, won in zip(seats, episodes.won.tolist(), strict=True):
                infos[seat]["is_success"] = won

    def state(self) -> dict[str, Any]:
        """Everything that the next steps depend on, the seed given to `seed` left out."""
        rewards = self.reward_scale.state()
        state = {"resets": self._resets, "world": self.world.snapshot(), "rewards": rewards}
        seen = {"seen": self._buffers[self._turn].observations.copy()} if self._aims else {}
        return {**state, **seen}

    def resume(self, state: Mapping[str, Any]) -> tuple[VecEnvObs, BoolArray] | None:
        """Go on from what `state()` gave, without a reset.

        Of a world that has no snapshots: observations [B, D], and [B] where new episodes began.
        """
        self._resets = state["resets"]
        self._reset_seeds()  # which was for the first reset
        self.world.restore(state["world"])
        self.reward_scale.resume(state["rewards"])
        if self.world.spec.can("snapshot"):
            if self._aims:  # which the next action may aim in
                self._buffers[self._turn].observations[:] = state["seen"]
            return None
        observations = self._next_buffers().observations
        restarting: Any = self.world  # a foundation.world.RestartingWorld
        begun = restarting.resume_episodes(observations)
        self.reward_scale.restart(begun)
        return self._shown(observations), begun

    @property
    def observations(self) -> Observations:
        """[B] as the world gave them last, raw."""
        return self._buffers[self._turn].observations

    @property
    def world_actions(self) -> Float32Array:
        """What the world was last given [B, branches + continuous]; read it before the next."""
        return self._actions

    def action_masks(self) -> BoolArray:
        """Masks [B, choices] of the action space, True where a choice makes sense now."""
        self.world.action_masks(self._branch_masks)
        return self._codec.masks(self._branch_masks)

    def compute_reward(
        self, achieved: Float32Array, desired: Float32Array, infos: Any
    ) -> Float32Array:
        """Scaled rewards [N] for goals [N, D], as stable-baselines3's HerReplayBuffer asks."""
        world: Any = self.world  # with the ability `goals`
        rewards: Float32Array = world.goal_rewards(achieved, desired, infos)
        return self.reward_scale.scaled(rewards, np.zeros(len(rewards), np.bool_))

    def _shown(self, observations: Observations) -> VecEnvObs:
        if not self._show_masks:
            return self._seen.shown(observations)  # type: ignore[no-any-return]
        self.world.action_masks(self._branch_masks)
        return self._seen.shown(observations, self._branch_masks)  # type: ignore[no-any-return]

    def _last_shown(self, observations: Observations, seat: int) -> VecEnvObs:
        """An episode's last observation, after which nothing is chosen and nothing masked."""
        free = np.ones((1, self._branch_masks.shape[1]), np.bool_) if self._show_masks else None
        return self._seen.row(observations, seat, free)  # type: ignore[no-any-return]

    def _next_buffers(self) -> StepBuffers:
        self._turn = 1 - self._turn
        return self._buffers[self._turn]

    def get_images(self) -> Sequence[Picture | None]:
        """Every row from above; None for each without a render mode."""
        if self.render_mode is None:
            return [None] * self.num_envs
        rows = self.world.num_envs
        return [self.world.draw(seat % rows) for seat in range(self.num_envs)]

    def close(self) -> None:
        """Close the world."""
        close_world(self.world)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The batch's attribute, once per asked row."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set the batch's attribute; rows do not have attributes of their own."""
        if len(list(self._get_indices(indices))) != self.num_envs:
            raise ValueError("attributes belong to the whole batch: leave indices out")
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """What the batch's method returns, once per asked row; of `action_masks` that row's."""
        result = getattr(self, method_name)(*method_args, **method_kwargs)
        rows = self._get_indices(indices)
        return [result[row] if method_name == "action_masks" else result for row in rows]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """False for every row: there are no single environments to wrap."""
        return [False for _ in self._get_indices(indices)]


def joined_states(env: WorldVecEnv, states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What `env.state()` would be with all rows, from the `states` of all parts in their order."""
    world: Any = env.world  # a worlds.kernel_world.PartWorld
    rewards = [state["rewards"] for state in states]
    return {
        **_joined(states),
        "world": world.joined([state["world"] for state in states]),
        "rewards": _joined(rewards),
    }


def part_of_state(env: WorldVecEnv, whole: Mapping[str, Any]) -> dict[str, Any]:
    """Of the state of all rows that of those which `env` has."""
    world: Any = env.world
    rows = slice(world.first_row, world.first_row + env.num_envs)
    return {
        **_cut(whole, rows),
        "world": world.part_of(whole["world"]),
        "rewards": _cut(whole["rewards"], rows),
    }


def _joined(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: np.concatenate([state[name] for state in states]) if name in BY_ROW else value
        for name, value in states[0].items()
    }


def _cut(state: Mapping[str, Any], rows: slice) -> dict[str, Any]:
    return {name: value[rows] if name in BY_ROW else value for name, value in state.items()}
