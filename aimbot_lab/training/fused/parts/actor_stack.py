"""Several networks of parts that act in one call of a kernel."""

from typing import Any

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.packed import Packed, PackedCall, PackedTable
from aimbot_lab.foundation.kernels.spin_sync import SPIN_LIMIT
from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.training.fused.actor_stack import PIECE, ActorStack, Past, Random, StackTask
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.parts import Floats, Noise
from aimbot_lab.training.fused.parts.core.act_stacked import (
    STEP,
    PartsActors,
    Seen,
    StackedThread,
    act_parts_stacked_packed,
    keep_act_parts_stacked,
    keep_networks,
    keep_workspace,
)
from aimbot_lab.training.fused.parts.core.arrays import States
from aimbot_lab.training.fused.parts.policy import encoded_of, parts_weights, seen_by, shown_to
from aimbot_lab.training.fused.parts.sight import parts_sight
from aimbot_lab.training.fused.parts.weights import PartsWeights
from aimbot_lab.training.fused.parts.workspace import new_parts_workspace
from aimbot_lab.training.fused.stack_workspace import zeros
from aimbot_lab.training.fused.weights import NetShape
from aimbot_lab.training.networks.features import EgocentricFeatures
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy


class PartsStack(ActorStack):
    """`ActorStack` of networks of parts, which may remember.

    What they remember is [B, S, H], as `RememberingPolicy.predict` gives it.
    """

    def _known(self, policy: HybridPolicy) -> NetShape:
        self._sizes, first = parts_weights(policy)
        self._of_places: list[PartsWeights] = [first]
        self._states = States(*(zeros(0), zeros(0, 0, 0), zeros(0, 0, 0)))
        return self._sizes.heads

    def _kernel(self) -> Packed:
        return Packed(keep_act_parts_stacked, act_parts_stacked_packed)

    def _make_room(self) -> None:
        for policy in self._policies[len(self._of_places) :]:
            self._of_places.append(parts_weights(policy)[1])
        self._table = PackedTable(keep_networks, [one.whole for one in self._of_places])

    def _load(self, place: int) -> None:
        self._of_places[place].load()

    def _eyes(self, policy: HybridPolicy) -> EgocentricFeatures | None:
        encoded = encoded_of(policy)
        seen = seen_by(policy) if encoded is None else encoded.plain
        return seen if type(seen) is EgocentricFeatures else None

    def _features(self, policy: HybridPolicy, observations: th.Tensor) -> Floats:
        return shown_to(policy, observations)

    def act(
        self, observations: Floats, masks: BoolArray, *, past: Past, random: Random
    ) -> tuple[Any, Floats | None]:
        """See `ActorStack.act`."""
        states, sizes, rows = self._states, self._sizes, self.rows
        if not sizes.memories:
            return super().act(observations, masks, past=past, random=random)
        memory = past.memory
        if memory is None:
            memory = zeros(len(observations), sizes.states, sizes.size)
        states.before[:, :, : sizes.size] = memory
        states.kept[:] = ~past.begins
        chosen, _ = super().act(observations, masks, past=past, random=random)
        memory[rows] = states.after[rows, :, : sizes.size]
        return chosen, memory

    def _calls(self, task: StackTask, sight: Sight, threads: range) -> tuple[PackedCall, ...]:
        sizes, rows = self._sizes, len(task.actions)
        before, after = np.zeros((2, rows, sizes.states, sizes.lanes), np.float32)
        self._states = States(np.ones(rows, np.float32), before, after)
        seen, drawn = Seen(task.policy_input, self._states), (task.noise, task.actions)
        actors = PartsActors(self._table.places, self._of_places[0].whole)
        eyes = parts_sight(self._policies[0], sight)
        shared = actors, eyes, seen, drawn, task.pieces, task.queue
        self._tables: list[PackedTable] = []
        made = [self._thread(number, sight.columns.size + 5) for number in threads]
        return tuple(self._act.call_with(*shared, thread) for thread in made)

    def _thread(self, number: int, features: int) -> StackedThread:
        """What a thread works with."""
        counts = range(STEP, PIECE + 1, STEP)
        workspaces = [new_parts_workspace(self._sizes, count, length=1, seen=0) for count in counts]
        table = PackedTable(keep_workspace, workspaces)
        self._tables.append(table)
        heads = self._sizes.heads
        noise = Noise(zeros(PIECE, len(heads.choices)), zeros(PIECE, heads.gaussians))
        return StackedThread(
            number, SPIN_LIMIT, table.places, workspaces[0], noise, zeros(features)
        )
