"""Actions of a policy while a rollout is collected."""

from typing import NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.foundation.kernels.thread_pool import ThreadPool
from aimbot_lab.training.fused.core.act import AT_STEP, SEES, act_packed, keep_act
from aimbot_lab.training.fused.core.features import Columns, Ranges, Sight
from aimbot_lab.training.fused.core.parts import (
    Floats,
    Noise,
    PolicyInput,
    Sampled,
    WorkQueue,
)
from aimbot_lab.training.fused.core.row_noise import fill_noise
from aimbot_lab.training.fused.policy import features_of
from aimbot_lab.training.fused.rollout import FusedRollout
from aimbot_lab.training.fused.weights import FusedWeights, NetShape
from aimbot_lab.training.fused.workspace import new_queue, new_thread_workspaces
from aimbot_lab.training.networks.features import EgocentricFeatures
from aimbot_lab.training.networks.hybrid_policy import BesideMasks

Answer = tuple[th.Tensor, th.Tensor, th.Tensor]
PIECE = 64  # rows that a thread takes at a time, some 40 microseconds of work


class ActTask(NamedTuple):
    """Draws an action for each row of a step."""

    policy_input: PolicyInput
    noise: Noise
    sampled: Sampled
    queue: WorkQueue
    calls: tuple[PackedCall, ...]  # `act` as each thread calls it

    @property
    def piece(self) -> int:
        """Rows that a thread takes at a time."""
        rows: int = self.policy_input.rows.shape[1]
        return min(PIECE, rows)

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next step."""
        self.calls[thread_id]()

    def begin_step(self, step: int, *, sees: bool) -> None:
        """Set the next work to `step`; `sees` says whether it writes the inputs of the networks."""
        self.queue.numbers[AT_STEP], self.queue.numbers[SEES] = step, sees
        self.queue.taken[0] = 0


class FusedActor:
    """Does what the policy's `forward` does, and keeps what the networks are shown.

    Random numbers depend on the rollout's key, the row's number and the step alone; choices are
    drawn from them in another way than torch's distributions do it.
    """

    def __init__(self, policy: ActorCriticPolicy, shape: NetShape, weights: FusedWeights) -> None:
        self._policy, self._shape, self._weights = policy, shape, weights
        self.rollout = FusedRollout(shape)
        self._eyes = self._found_eyes()
        self._act = self._kernel()
        self._workers = ThreadPool(1)
        self._task: ActTask | None = None
        self._key = np.zeros(3, np.uint64)  # of the rollout, of its first row, of the step

    def _kernel(self) -> Packed:
        return Packed(keep_act, act_packed)

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._task = workers, None

    def begin(self, steps: int, rows: int, *, seed: int = 0, first_row: int = 0) -> None:
        """A rollout of so many steps and rows begins, by the weights of its first step.

        Its random numbers come from `seed`; its rows have the numbers from `first_row` on.
        """
        self.rollout.begin(steps, rows)
        self._key[:2] = seed, first_row

    def act(self, observations: th.Tensor) -> Answer:
        """(actions [B, ...], values [B, 1], log-probabilities [B] or [B, K]) for [B, D]."""
        if self.rollout.steps == 0:
            self._weights.load()
        task, self._key[2] = self._fitting_task(), self.rollout.steps
        fill_noise(*task.noise, self._key)
        self._look_and_choose(observations, self.rollout.take_step())
        return self._answer(task.sampled)

    def values(self, observations: th.Tensor) -> th.Tensor:
        """Values [B, 1] of the observations [B, D] that follow the rollout's last step."""
        self._look_and_choose(observations, len(self.rollout.rows))
        return th.from_numpy(self._fitting_task().sampled.values.copy())

    def _look_and_choose(self, observations: th.Tensor, step: int) -> None:
        if self._eyes is None:
            self.rollout.show(step, self._features(observations))
        else:
            self._show(self._eyes, observations, self._fitting_task().policy_input)
        self.choose(step)

    def _found_eyes(self) -> EgocentricFeatures | None:
        """What the kernels can see with in place of the policy's extractor."""
        extractor = plain_extractor(self._policy)
        return extractor if type(extractor) is EgocentricFeatures else None

    def _features(self, observations: th.Tensor) -> Floats:
        return features_of(self._policy, observations)

    def compile(self) -> None:
        """Have the kernels compiled, or read from the cache."""
        fill_noise(*self._fitting_task().noise, self._key)
        self.choose(0)

    def choose(self, step: int) -> None:
        """Have the kernel do `step`, with the policy input and the noise that it was given."""
        task = self._fitting_task()
        task.begin_step(step, sees=self._eyes is not None)
        self._workers.run(task)

    def _fitting_task(self) -> ActTask:
        """What acts on the rollout's rows: the last task where it fits."""
        if self._task is None or self._task.policy_input.rows is not self.rollout.after:
            self._task = self._new_task()
        return self._task

    def _new_task(self) -> ActTask:
        rows, shape, sync_flags = self.rollout.rows.shape[1], self._shape, self._workers.sync_flags

        def zeros(width: int) -> Floats:
            return np.zeros((rows, width), np.float32)

        seen = zeros(0 if self._eyes is None else _columns(self._policy))
        scaled = self._eyes is not None and self._eyes.statistics is not None
        own = zeros(self._eyes.sight().columns.size) if self._eyes and scaled else seen
        sight = BLIND if self._eyes is None else self._eyes.sight()
        policy_input = PolicyInput(seen, own, self.rollout.after)
        noise = Noise(zeros(len(shape.choices)), zeros(shape.gaussians))
        sampled = Sampled(zeros(shape.branches), zeros(1), zeros(shape.ratios))
        queue = new_queue(sync_flags)
        calls = self._calls(ActTask(policy_input, noise, sampled, queue, ()), sight)
        return ActTask(policy_input, noise=noise, sampled=sampled, queue=queue, calls=calls)

    def _calls(self, task: ActTask, sight: Sight) -> tuple[PackedCall, ...]:
        """The kernel as each thread calls it for `task`."""
        places = new_thread_workspaces(self._shape, task.piece, task.queue.sync_flags)
        shared = self._weights.networks, sight, *task[:4]
        return tuple(self._act.call_with(*shared, place) for place in places)

    def _show(
        self, eyes: EgocentricFeatures, observations: th.Tensor, policy_input: PolicyInput
    ) -> None:
        """Give the kernel what it needs to see `observations`."""
        policy_input.observations[...] = observations.numpy()
        if policy_input.own is not policy_input.observations:
            policy_input.own[...] = eyes.own_columns(observations[:, : policy_input.own.shape[1]])

    def _answer(self, sampled: Sampled) -> Answer:
        """What was drawn in the form that a policy gives it."""
        space, log_probs = self._policy.action_space, sampled.log_probs
        actions = sampled.actions.astype(space.dtype).reshape(-1, *(space.shape or ()))
        whole = log_probs if self._shape.ratios > 1 else log_probs[:, 0]
        values = sampled.values.copy()
        return th.from_numpy(actions), th.from_numpy(values), th.from_numpy(whole.copy())


_NOTHING = np.zeros(0, np.float32)
BLIND = Sight(
    Columns(*[0] * len(Columns._fields)),
    Ranges(_NOTHING, _NOTHING, np.float32(1.0), np.float32(1.0)),
)


def plain_extractor(policy: ActorCriticPolicy) -> nn.Module:
    """The policy's extractor without the masks that pass it by."""
    extractor: nn.Module = policy.features_extractor
    return extractor.seen if isinstance(extractor, BesideMasks) else extractor


def _columns(policy: ActorCriticPolicy) -> int:
    shape = policy.observation_space.shape
    assert shape is not None
    return shape[0]
