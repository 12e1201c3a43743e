"""Rollouts from the actors' blocks, corrected where an older policy acted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import obs_as_tensor

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError, LabError, RunFailedError
from aimbot_lab.training.actors.actor import ActorGroup
from aimbot_lab.training.actors.block import (
    COLUMNS,
    ActorPlan,
    ActorsWorld,
    Array,
    Block,
    BlockRequest,
    RunningEpisodes,
    StepEnds,
)
from aimbot_lab.training.actors.supply import FreeRunning, InStep, Patience, answers_of_all
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import tensors_of
from aimbot_lab.training.algorithms.registry import HYBRID_PPO
from aimbot_lab.training.callbacks.lesson_callback import episodes_of_all
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.checks import actor_faults
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.version import code_hash
from aimbot_lab.worlds.registry import spec_of, type_of

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
MAX_RATIO = 2.0
"""rho-bar and c-bar. At 1, where the paper has them, ratios below 1 shorten the traces and none
lengthens them: one update apart by 5 % a step."""


def v_trace(
    rewards: Floats,
    ends: Bools,
    *,
    values: Floats,
    last_values: Floats,
    ratios: Floats,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Advantages [T, N] by V-trace; the targets of the values are the values plus these.

    `rewards` [T, N] hold the discounted value of the end where an episode was cut off, `ends`
    [T, N] are True where one ended, by its rules or cut off. `values` [T, N] and `last_values`
    [N] (after the last step) are those of the present policy, `ratios` [T, N] its probability of
    the action over the older one's.

    (Espeholt et al. 2018, eq. 1, c of remark 2.) With rho = min(MAX_RATIO, ratio) and d_t = r_t +
    gamma V_t+1 - V_t, a_t = rho_t (d_t + gamma lambda a_t+1). That is v_t - V_t, and at lambda 1
    also the advantage of section 4.2, which bears rho. With equal policies it is GAE's.
    """
    rho = np.minimum(ratios, np.float32(MAX_RATIO))
    advantages = np.empty_like(values)
    next_values, later = last_values, np.zeros_like(last_values)
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = np.float32(gamma) * ~ends[t]
        delta = rewards[t] + goes_on * next_values - values[t]
        advantages[t] = rho[t] * (delta + goes_on * np.float32(gae_lambda) * later)
        next_values, later = values[t], advantages[t]
    return advantages


def correct(model: HybridPPO, blocks: Sequence[Block]) -> None:
    """Set the rollout buffer's values, log-probabilities, advantages and returns anew.

    Advantages are those of V-trace, which bear the ratio of the policy that learns to the actor's.
    So PPO's clip has to bound the update alone, and compares with the policy where it begins: the
    decoupled objective of Hilton et al. 2022 (arXiv 2110.00641). Compared with the actor's, part
    of the samples would be out of bounds before the first step. `blocks` are those in the buffer,
    side by side.
    """
    buffer, row = model.rollout_buffer, 0
    for block in blocks:
        assert block.ends is not None
        ends, made = StepEnds(**block.ends), block.columns["log_probs"]
        values, log_probs = _judged(model, block)
        rewards = ends.rewards.copy()
        if ends.cut_steps.size:
            after = _values(model, ends.cut_observations)
            rewards[ends.cut_steps, ends.cut_rows] += np.float32(model.gamma) * after
        log_probs = log_probs.reshape(made.shape)
        apart = log_probs - made
        if apart.ndim > values.ndim:  # by branch
            apart = apart.sum(axis=-1)
        advantages = v_trace(
            rewards,
            ends.ends,
            values=values,
            last_values=_values(model, ends.last_observations),
            ratios=np.exp(apart),
            gamma=model.gamma,
            gae_lambda=model.gae_lambda,
        )
        rows = slice(row, row + values.shape[1])
        buffer.values[:, rows] = values
        buffer.log_probs[:, rows] = log_probs
        buffer.advantages[:, rows] = advantages
        buffer.returns[:, rows] = values + advantages
        row = rows.stop


def _judged(model: HybridPPO, block: Block) -> tuple[Array, Array]:
    """(values [T, N], log-probabilities) of what `block` shows and does."""
    observations: Any = block.columns["observations"]
    shape = observations.shape[:2]
    if observations.dtype.names is None:
        seen: Any = th.as_tensor(observations, device=model.device).flatten(end_dim=1)
    else:
        seen = tensors_of(observations, model.device)
    actions = th.as_tensor(block.columns["actions"], device=model.device).flatten(end_dim=1)
    if isinstance(model.action_space, spaces.Discrete):
        actions = actions.long().flatten()
    with th.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(seen, actions)
    return values.numpy(force=True).reshape(shape), log_probs.numpy(force=True)


def _values(model: HybridPPO, observations: Any) -> Array:
    """Values [N] of `observations` [N, D], or by name."""
    with th.no_grad():
        found = model.policy.predict_values(obs_as_tensor(observations, model.device))
    values: Array = found.numpy(force=True).reshape(-1)
    return values


MAX_GAIN = 1.39  # the simulator and the policy are 28 % of a training on the arena


class ActorRollouts:
    """Fills a model's rollouts with blocks of actors in `group`, and has callbacks see each step.

    `world` stands for theirs; what the curriculum asks of it reaches them with their next order.
    Making one starts the actors. Raises ConfigurationError where they can't play for `plan`.
    """

    def __init__(self, plan: TrainingPlan, group: ActorGroup) -> None:
        check_actors(plan)
        assert plan.train.actors is not None
        self._settings, self._group, self._plans = plan.train.actors, group, actor_plans(plan)
        self.world = ActorsWorld(spec_of(plan.env), len(self._plans) * self._plans[0].rows)
        self.should_stop: Callable[[], bool] = lambda: False
        self._since = 0, 0  # scenario in force, and the version by which it is
        self._running = RunningEpisodes(len(self._plans), 0)
        self._supply: InStep | FreeRunning = self._new_supply()
        self._start()

    def join(self, model: Any, env: WorldVecEnv, progress: CurriculumProgress) -> None:
        """Play for `model`, whose environment is `env`, what `progress` asks for."""
        self._env, self._progress = env, progress
        model.source = self

    def _new_supply(self) -> InStep | FreeRunning:
        counts, patience = self.world.counts, patience_with(self._plans[0].env)
        if self._settings.lag:
            return FreeRunning(self._group, self._plans, self._settings, counts, patience)
        return InStep(self._group, len(self._plans), counts, patience)

    def _start(self) -> None:
        """Start all actors, and wait until all can play."""
        try:
            for plan in self._plans:
                self._group.start(plan)
            self._ask_all("get_ready", kind=ConfigurationError)
        except BaseException:
            self._group.close()
            raise

    def _ask_all(self, what: str, *given: Any, kind: type[LabError] = RunFailedError) -> None:
        answers_of_all(self._group, range(len(self._plans)), what, *given, kind=kind)

    @property
    def _is_placed(self) -> bool:
        return self._plans[0].placed

    def rows(self, own: dict[str, Any]) -> list[dict[str, Any]]:
        """What a checkpoint keeps of all rows, by actor; `own` where they can't be kept."""
        if not self._is_placed:
            return [own]
        assert isinstance(self._supply, InStep)
        return [unpack(one) for one in self._supply.states(self.world.take_scenarios())]

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where a checkpoint's `state` was kept; worlds that can't be kept begin anew."""
        if self._is_placed:
            model = {"seen": state["model"]["seen"]}
            packed = pack({"env": state["env"], "model": model})
            assert isinstance(self._supply, InStep)
            self.world.scenario_number = self._supply.resume(packed)
            return
        self._env.resume(state["env"])
        self.world.remember(self._progress.scenario)
        version = self.world.counts.version
        self._since, self._running = (0, version), RunningEpisodes(len(self._plans), version)
        self._ask_all("begin_life", self.world.counts.new_life())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should know before it starts, each in a line."""
        found = []
        if self.world.spec.can("parts"):
            found.append(
                "train.actors: this world is played faster than it is learned from, so actors "
                f"bring at most {MAX_GAIN} times the speed; run --processes uses cores better"
            )
        if not self._is_placed:
            found.append(
                "train.actors: their worlds are not kept in checkpoints: a resumed run begins new "
                "episodes"
            )
        return tuple(found)

    def close(self) -> None:
        """End all actors."""
        self._supply.close()

    def collect(self, model: HybridPPO, callback: BaseCallback, *, steps: int) -> bool:
        """Fill the buffer of `model`; False where `callback` ended it, or the wait for blocks."""
        buffer = model.rollout_buffer
        model.policy.set_training_mode(False)
        buffer.reset()
        self._env.episodes = None
        callback.on_rollout_start()
        first = self._progress.counts_from
        blocks = self._supply.take(self._order(model, first), self.should_stop)
        if blocks is None:
            return callback.on_step() and False
        self.world.counts.learn(blocks)
        fill(model, blocks)
        if self._settings.correction == "vtrace":
            correct(model, blocks)
        callback.update_locals(locals())
        if not self._tell(model, callback, self._ended(blocks, first), steps=steps):
            return False
        callback.on_rollout_end()
        return True

    def _order(self, model: HybridPPO, first: int | None) -> BlockRequest:
        version, scenarios = self.world.counts.version, self.world.take_scenarios()
        if first is not None and first > self._since[0]:
            self._since = first, version
        weights = pack(dict(model.policy.state_dict()))
        return BlockRequest(version, weights, model.num_timesteps, scenarios, first)

    def _ended(self, blocks: Sequence[Block], first: int | None) -> Mapping[int, EpisodeBatch]:
        """What ended in each step of `blocks`, by its place in them."""
        if self._is_placed:
            columns = [one.episodes for one in blocks]
            ended = episodes_of_all(columns, [one.running for one in blocks], first)
        else:
            ended = self._running.ended(blocks, first, self._since[1])
        unread = {step: why for one in blocks for step, why in one.unread}
        by_step = {one.step: one for one in ended}
        return by_step | {
            step: by_step[step]._replace(unread=(why,)) for step, why in unread.items()
        }

    def _tell(
        self,
        model: HybridPPO,
        callback: BaseCallback,
        ended: Mapping[int, EpisodeBatch],
        *,
        steps: int,
    ) -> bool:
        """Have `callback` see each step, with what `ended` in it; False where it stops there."""
        for step in range(steps):
            model.num_timesteps += model.all_rows
            self._env.episodes = ended.get(step)
            if not callback.on_step():
                return False
        return True


def fill(model: HybridPPO, blocks: Sequence[Block]) -> None:
    """Put `blocks` side by side into the rollout buffer of `model`."""
    buffer: Any = model.rollout_buffer
    for name in COLUMNS:
        whole = np.concatenate([one.columns[name] for one in blocks], axis=1)
        getattr(buffer, name)[...] = whole
    buffer.pos, buffer.full = buffer.buffer_size, True
    shown = [one.shown for one in blocks if one.shown is not None]
    if shown:
        model.engine.show(np.concatenate(shown, axis=1))


def check_actors(plan: TrainingPlan) -> None:
    """Raise ConfigurationError where no actors can play for `plan`."""
    if plan.train.algo != HYBRID_PPO.name:
        raise ConfigurationError(
            f"train.actors: has no effect with {plan.train.algo}: leave it out"
        )
    if plan.self_play is not None:
        raise ConfigurationError("train.actors: must be left out under self_play")
    faults = actor_faults(plan.env, plan.train)
    lines = [f"{'.'.join(('train', *key))}: {what}" for key, what in faults]
    if lines:
        raise ConfigurationError("\n".join(lines))


def actor_plans(plan: TrainingPlan) -> list[ActorPlan]:
    """Those of all actors: in step, some rows of one world where that can be, else own worlds."""
    actors, rows = plan.train.actors, type_of(plan.env).rows(plan.env)
    assert actors is not None
    placed = actors.lag == 0 and spec_of(plan.env).can("parts")
    return [
        ActorPlan(
            env=plan.env,
            train=plan.train,
            seed=plan.seed,
            number=number,
            actors=actors.number,
            rows=rows // actors.number,
            placed=placed,
            code=code_hash(),
        )
        for number in range(actors.number)
    ]


def patience_with(env: Any) -> Patience:
    """For actors of worlds by the settings `env`, of which some name a `timeout_wait` in s.

    Such a world itself starts its program again that says nothing for so long.
    """
    return Patience(program_seconds=getattr(env, "timeout_wait", 0.0))
