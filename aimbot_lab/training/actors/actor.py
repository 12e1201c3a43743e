"""An actor: a world and a policy that play blocks as they are ordered."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.episodes import EpisodeBatch, oldest
from aimbot_lab.foundation.named_code import allow
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    close_world,
    closed_on_failure,
    dropped_episodes,
    logged_errors,
    new_notices,
    save_commands,
)
from aimbot_lab.training.actors.block import (
    COLUMNS,
    ActorPlan,
    Array,
    Block,
    BlockRequest,
    Scenarios,
    StepEnds,
)
from aimbot_lab.training.actors.episodes import GlobalNumbers, SettledEpisodes
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.models import new_model, new_vec_env
from aimbot_lab.training.callbacks.agreement import packed_episodes
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.checkpoint.state import (
    SEEN,
    begin_episodes,
    model_state,
    of_rows,
    own_part,
)
from aimbot_lab.training.shards import Shards
from aimbot_lab.worlds.registry import code_of, make_world


class Recorder(BaseCallback):
    """Keeps the episodes that end in each step of `env`, and what stands behind its rewards.

    With `settled` episodes are given out by that; without, as they end, with the world's own ranks.
    """

    def __init__(
        self, env: WorldVecEnv, settled: SettledEpisodes | None, *, keeps_ends: bool
    ) -> None:
        super().__init__()
        self._env, self._settled, self._keeps_ends = env, settled, keeps_ends
        self._first: int | None = None
        self._step = 0
        self.running: int | None = None
        """Rank of the oldest episode that ran and counts where the block began."""
        self.ended: list[EpisodeBatch] = []
        self.unread: list[tuple[int, str]] = []
        self._rewards: list[Array] = []
        self._ends: list[Array] = []
        self._cuts: list[tuple[int, int, Array]] = []

    @property
    def unsettled(self) -> int:
        """Episodes that would be lost now."""
        return 0 if self._settled is None else self._settled.unsettled

    def begin(self, order: BlockRequest) -> None:
        """The block that `order` asks for begins."""
        self._first, self._step = order.first, 0
        self.ended, self.unread = [], []
        self._rewards, self._ends, self._cuts = [], [], []
        if self._settled is None:
            world: Any = self._env.world  # a worlds.snapshots.PartWorld
            order_by_row, scenario_by_row = world.running()
            self.running = oldest(order_by_row, scenario_by_row, order.first)
        else:
            self._settled.begin(order.version, order.first)
            self.running = self._settled.running

    def _on_step(self) -> bool:
        if self._env.episodes:
            self._keep(self._env.episodes)
        if self._keeps_ends:
            self._rewards.append(self.locals["rewards"].copy())  # which values are added to later
            self._ends.append(self.locals["dones"])
            self._keep_cuts(self.locals["dones"], self.locals["infos"])
        self._step += 1
        return True

    def _keep(self, ended: EpisodeBatch) -> None:
        self.unread += [(self._step, why) for why in ended.unread]
        if self._settled is None:
            kept = ended.beside(ended.oldest_running(self._first), self._first)
        else:
            kept = self._settled.add(ended)
        self.ended.append(kept._replace(step=self._step))

    def _keep_cuts(self, dones: Array, infos: list[dict[str, Any]]) -> None:
        for row in np.flatnonzero(dones).tolist():
            if infos[row].get("TimeLimit.truncated"):
                self._cuts.append((self._step, row, infos[row]["terminal_observation"]))

    def ends(self, last_observations: Any) -> Mapping[str, Any] | None:
        """`StepEnds` of the block, which `last_observations` [N] follow; None where not kept."""
        if not self._keeps_ends:
            return None
        return StepEnds(
            rewards=np.stack(self._rewards),
            ends=np.stack(self._ends),
            last_observations=last_observations,
            cut_steps=np.array([step for step, _, _ in self._cuts], np.int64),
            cut_rows=np.array([row for _, row, _ in self._cuts], np.int64),
            cut_observations=_stacked([one for _, _, one in self._cuts], last_observations),
        )._asdict()


def _stacked(rows: Sequence[Any], like: Any) -> Any:
    """What each of `rows` was shown together, as `like` is what several were shown."""
    if isinstance(like, Mapping):
        return {name: _stacked([one[name] for one in rows], part) for name, part in like.items()}
    return np.stack(rows) if rows else np.zeros_like(like[:0])


class Actor:
    """Plays the rows of `plan`; one of its methods is called at a time.

    Placed among the rows of all actors, its world and its random numbers are those that a training
    in one process has for these rows. Else the world is one of its own.
    """

    def __init__(self, plan: ActorPlan) -> None:
        self._plan = plan
        allow(code_of(plan.env))  # a plan comes from the learner, which runs it, too
        made: Any = make_world(plan.env, plan.rows, one_thread=True)
        self._world = made
        with closed_on_failure(self.close):
            self._assemble()

    def _assemble(self) -> None:
        plan = self._plan
        self._numbers: GlobalNumbers | None = None
        if plan.placed:
            self._world.place(plan.first_row, plan.actors * plan.rows)
        else:
            self._numbers = GlobalNumbers(plan.number, plan.actors)
        seed = derive_seed(plan.seed, "world")
        self._env = new_vec_env(self._world, plan.train, seed=seed)
        self._model = self._new_model()
        if not plan.placed:  # the model has seeded the world as that of one process
            self.begin_life(plan.life)
        self._recorder = self._new_recorder()
        self._has_begun = False
        # What the networks are shown depends on running statistics, which the learner's may be
        # ahead of; without a lag they are the same.
        self._in_step = plan.train.actors is not None and not plan.train.actors.lag

    def _new_model(self) -> HybridPPO:
        plan, seed = self._plan, derive_seed(self._plan.seed, "learner")
        shards = Shards(plan.actors, plan.number, 1, plan.rows)
        spec = self._world.spec
        model = new_model(plan.train, self._env, spec=spec, seed=seed, own_shards=shards)
        assert isinstance(model, HybridPPO)
        model.set_logger(Logger(folder=None, output_formats=[]))
        model.ep_info_buffer, model.ep_success_buffer = deque(maxlen=1), deque(maxlen=1)
        return model

    def _new_recorder(self) -> Recorder:
        plan, actors = self._plan, self._plan.train.actors
        settled = None if self._numbers is None else SettledEpisodes(self._numbers, plan.rows)
        corrects = actors is not None and actors.correction != "none"
        recorder = Recorder(self._env, settled, keeps_ends=corrects)
        recorder.init_callback(self._model)
        return recorder

    def close(self) -> None:
        """End its world."""
        close_world(self._world)

    def get_ready(self) -> None:
        """Answer once the actor is made."""

    def begin_life(self, life: int) -> None:
        """Before the first block: have random numbers that no other `life` of any actor has."""
        seed = derive_seed(self._plan.seed, "actor", self._plan.number, life)
        self._env.seed(seed)
        th.manual_seed(derive_seed(seed, "actions"))

    def resume(self, state: bytes) -> int:
        """The number of the scenario in force, where the packed `state` of all rows had come to."""
        env, model = own_part(self._env, unpack(state), self._plan.first_row)
        self._env.resume(env)
        for name in SEEN:
            setattr(self._model, name, model["seen"][name])
        self._has_begun = True
        return int(self._world.scenario_number)

    def state(self, scenarios: Scenarios) -> bytes:
        """What a checkpoint keeps of these rows, packed, once the new `scenarios` are set."""
        self._begin(scenarios)
        return pack(of_rows(self._env, model_state(self._model)))

    def block(self, order: BlockRequest) -> bytes:
        """The `Block` that `order` asks for, packed."""
        model = self._model
        if order.weights is not None:
            model.policy.load_state_dict(unpack(order.weights))
        self._begin(order.scenarios)
        model.num_timesteps = order.step
        self._recorder.begin(order)
        model.collect_rollouts(self._env, self._recorder, model.rollout_buffer, model.n_steps)
        return pack(self._block(order)._asdict())

    def _begin(self, scenarios: Scenarios) -> None:
        """Have what begins from now on drawn from the last of `scenarios`, the first episodes too.

        A world that has not begun begins.
        """
        for number, scenario in scenarios:
            own = self._world.set_scenario(scenario)
            if self._numbers is not None:
                self._numbers.scenarios[own] = number
        if not self._has_begun:
            begin_episodes(self._model, self._env.reset())
            self._has_begun = True

    def _block(self, order: BlockRequest) -> Block:
        model, recorder = self._model, self._recorder
        last: Any = model._last_obs
        return Block(
            actor=self._plan.number,
            version=order.version,
            columns={name: getattr(model.rollout_buffer, name) for name in COLUMNS},
            shown=model.engine.shown() if self._in_step else None,
            ends=recorder.ends(last),
            episodes=packed_episodes(recorder.ended, self._plan.first_row),
            running=recorder.running,
            unsettled=recorder.unsettled,
            notices=tuple(new_notices(self._world)),
            lost_episodes=dropped_episodes(self._world) or 0,
            unread=tuple(recorder.unread),
            logged_errors=logged_errors(self._world) or 0,
            save_commands=save_commands(self._world),
        )
