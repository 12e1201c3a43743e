"""Actions of a policy that remembers, while a rollout is collected."""

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.training.fused.actor import ActTask, Answer, FusedActor, plain_extractor
from aimbot_lab.training.fused.core.act_from_memory import (
    act_from_memory_packed,
    keep_act_from_memory,
)
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.memory_parts import States
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.memory.policy import shown_to
from aimbot_lab.training.fused.memory.weights import RememberingShape, RememberingWeights
from aimbot_lab.training.fused.memory.workspace import new_memory_threads
from aimbot_lab.training.networks.features import EgocentricFeatures
from aimbot_lab.training.networks.parts.encoded_features import EncodedFeatures
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy

CPU = th.device("cpu")


class RememberingActor(FusedActor):
    """Acts from what every row remembers, which lives in the policy as it does with torch."""

    def __init__(
        self, policy: RememberingPolicy, shape: RememberingShape, weights: RememberingWeights
    ) -> None:
        self._remembering, self._sizes, self._whole = policy, shape, weights.whole
        self._states: States | None = None
        super().__init__(policy, shape.shown, weights)

    def act(self, observations: th.Tensor) -> Answer:
        """What `FusedActor.act` gives; the policy then has the state after the step."""
        memory, rows, units = self._remembering.rollout, len(observations), self._sizes.size
        self._fitting_task()
        states = self._states
        assert states is not None
        states.before[:, :, :units] = memory.before(rows, CPU).numpy()
        states.kept[:] = 1.0 - memory.starts(rows, CPU)[0].numpy()
        answer = super().act(observations)
        memory.state = th.from_numpy(states.after[:, :, :units].copy())
        return answer

    def _kernel(self) -> Packed:
        return Packed(keep_act_from_memory, act_from_memory_packed)

    def _found_eyes(self) -> EgocentricFeatures | None:
        extractor = plain_extractor(self._policy)
        if isinstance(extractor, EncodedFeatures):
            extractor = extractor.plain
        return extractor if type(extractor) is EgocentricFeatures else None

    def _features(self, observations: th.Tensor) -> Floats:
        return shown_to(self._remembering, observations)

    def _calls(self, task: ActTask, sight: Sight) -> tuple[PackedCall, ...]:
        rows, units = task.policy_input.rows.shape[1], self._sizes.lanes
        before, after = np.zeros((2, rows, 2, units), np.float32)
        self._states = States(np.ones(rows, np.float32), before, after)
        sampling = task.noise, task.sampled
        shared = self._whole, sight, task.policy_input, sampling, self._states, task.queue
        flags = task.queue.sync_flags
        threads = new_memory_threads(self._sizes, task.piece, flags, length=1)
        return tuple(self._act.call_with(*shared, thread) for thread in threads)
