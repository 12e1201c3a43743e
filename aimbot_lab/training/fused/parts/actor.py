"""Actions of a network of parts, while a rollout is collected."""

from typing import Any

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.training.fused.actor import ActTask, Answer, FusedActor
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.core.act import act_by_parts_packed, keep_act_by_parts
from aimbot_lab.training.fused.parts.core.arrays import States
from aimbot_lab.training.fused.parts.policy import encoded_of, seen_by, shown_to
from aimbot_lab.training.fused.parts.shape import PartsShape
from aimbot_lab.training.fused.parts.sight import parts_sight
from aimbot_lab.training.fused.parts.weights import PartsWeights
from aimbot_lab.training.fused.parts.workspace import new_parts_threads
from aimbot_lab.training.networks.features import EgocentricFeatures
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy

CPU = th.device("cpu")


class PartsActor(FusedActor):
    """Acts from what every row remembers, which lives in the policy as it does with torch."""

    def __init__(self, policy: HybridPolicy, shape: PartsShape, weights: PartsWeights) -> None:
        self._parts, self._sizes, self._whole = policy, shape, weights.whole
        self._states: States | None = None
        super().__init__(policy, shape.heads, weights)

    def act(self, observations: th.Tensor) -> Answer:
        """What `FusedActor.act` gives; the policy then has the state after the step."""
        if not self._sizes.memories:
            return super().act(observations)
        policy: Any = self._parts
        states = self._remember(policy.rollout.before(len(observations), CPU))
        answer = super().act(observations)
        policy.rollout.state = th.from_numpy(states.after[:, :, : self._sizes.size].copy())
        return answer

    def values(self, observations: th.Tensor) -> th.Tensor:
        """What `FusedActor.values` gives; nothing is remembered."""
        if self._sizes.memories:
            policy: Any = self._parts
            self._remember(policy.rollout.state)
        return super().values(observations)

    def _remember(self, state: th.Tensor) -> States:
        """Have the kernel begin with `state` [B, S, H]; where it finds and leaves states."""
        self._fitting_task()
        states, policy = self._states, self._parts
        assert states is not None
        states.before[:, :, : self._sizes.size] = state.numpy()
        memory: Any = policy.rollout
        states.kept[:] = 1.0 - memory.starts(len(state), CPU)[0].numpy()
        return states

    def _kernel(self) -> Packed:
        return Packed(keep_act_by_parts, act_by_parts_packed)

    def _found_eyes(self) -> EgocentricFeatures | None:
        encoded = encoded_of(self._parts)
        seen = seen_by(self._parts) if encoded is None else encoded.plain
        return seen if type(seen) is EgocentricFeatures else None

    def _features(self, observations: th.Tensor) -> Floats:
        return shown_to(self._parts, observations)

    def _calls(self, task: ActTask, sight: Sight) -> tuple[PackedCall, ...]:
        rows, sizes = task.policy_input.rows.shape[1], self._sizes
        before, after = np.zeros((2, rows, sizes.states, sizes.lanes), np.float32)
        self._states = States(np.ones(rows, np.float32), before, after)
        sampling, seen = (task.noise, task.sampled), sight.columns.size + 5
        eyes = parts_sight(self._parts, sight)
        shared = self._whole, eyes, task.policy_input, sampling, self._states, task.queue
        flags = task.queue.sync_flags
        threads = new_parts_threads(sizes, task.piece, flags, length=1, seen=seen)
        return tuple(self._act.call_with(*shared, thread) for thread in threads)
