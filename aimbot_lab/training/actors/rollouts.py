"""Rollouts that actors have played, put into the buffer of the model that learns from them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.training.actors.block import COLUMNS, Block, Order
from aimbot_lab.training.actors.group import ActorGroup
from aimbot_lab.training.actors.in_step import InStep
from aimbot_lab.training.actors.placing import actor_plans, check_actors
from aimbot_lab.training.actors.world import ActorsWorld
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.callbacks.agreement import steps_of_all
from aimbot_lab.training.callbacks.taken_steps import TakenStep
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.plan import TrainingPlan
from aimbot_lab.worlds.registry import spec_of


class Supply(Protocol):
    """Where blocks come from."""

    def take(self, order: Order, should_stop: Callable[[], bool]) -> list[Block] | None:
        """As many blocks as there are actors; None where `should_stop` says so."""
        ...

    def close(self) -> None:
        """End all actors."""
        ...


class ActorRollouts:
    """Fills a model's rollouts with blocks of actors in `group`, and has callbacks see each step.

    `world` stands for theirs; what the curriculum asks of it reaches them with their next order.
    Raises ConfigurationError where actors can't play for `plan`.
    """

    def __init__(self, plan: TrainingPlan, group: ActorGroup) -> None:
        check_actors(plan)
        self._plans = actor_plans(plan)
        self.world = ActorsWorld(spec_of(plan.env), len(self._plans) * self._plans[0].rows)
        self._supply: Any = InStep(group, self._plans)
        self.should_stop: Callable[[], bool] = lambda: False
        self.version = 0  # updates so far

    def join(
        self, model: HybridPPO, env: WorldVecEnv, counts_from: Callable[[], int | None]
    ) -> None:
        """Play for `model`, whose environment is `env`.

        `counts_from` gives the scenario from which on episodes count.
        """
        self._env, self._counts_from = env, counts_from
        model.source = self

    @property
    def _is_placed(self) -> bool:
        return self._plans[0].placed

    def rows(self, own: dict[str, Any]) -> list[dict[str, Any]]:
        """What a checkpoint keeps of all rows, by actor; `own` where they can't be kept."""
        if not self._is_placed:
            return [own]
        return [unpack(one) for one in self._supply.states(self.world.take_scenarios())]

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where a checkpoint's `state` was kept; worlds that can't be kept begin anew."""
        if not self._is_placed:
            self._env.resume(state["env"])
            return
        model = {"seen": state["model"]["seen"]}
        packed = pack({"env": state["env"], "model": model})
        self.world.scenario_number = self._supply.resume(packed)

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
        first = self._counts_from()
        blocks = self._supply.take(self._order(model, first), self.should_stop)
        if blocks is None:
            return callback.on_step() and False
        self.version += 1
        fill(model, blocks)
        callback.update_locals(locals())
        if not self._tell(model, callback, blocks, first=first):
            return False
        callback.on_rollout_end()
        return True

    def _order(self, model: HybridPPO, first: int | None) -> Order:
        weights = pack(dict(model.policy.state_dict()))
        scenarios = self.world.take_scenarios()
        return Order(self.version, weights, model.num_timesteps, scenarios, first)

    def _tell(
        self,
        model: HybridPPO,
        callback: BaseCallback,
        blocks: Sequence[Block],
        *,
        first: int | None,
    ) -> bool:
        """Have `callback` see each step, with what ended in it; False where it ends the rollout."""
        ended = {one.step: one for one in ended_steps(blocks, first)}
        for step in range(model.n_steps):
            model.num_timesteps += model.all_rows
            self._env.episodes = ended[step].episodes if step in ended else None
            if not callback.on_step():
                return False
        return True


def ended_steps(blocks: Sequence[Block], first: int | None) -> list[TakenStep]:
    """The steps of `blocks` in which episodes ended, by their place in the blocks."""
    return steps_of_all([one.episodes for one in blocks], [one.running for one in blocks], first)


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
