"""Actions of a policy while a rollout is collected."""

from itertools import pairwise

import numpy as np
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.core.net import act_piece
from aimbot_lab.training.core.parts import Floats, Room
from aimbot_lab.training.fused_policy import features_of
from aimbot_lab.training.fused_rollout import FusedRollout
from aimbot_lab.training.fused_room import new_room
from aimbot_lab.training.fused_weights import FusedWeights, NetShape, net_size
from aimbot_lab.training.team import MOST_THREADS, Team

Answer = tuple[th.Tensor, th.Tensor, th.Tensor]
PIECE = 10_000_000  # multiplications that are worth a thread of their own, a quarter millisecond


class FusedActor:
    """Does what the policy's `forward` does, and keeps what the networks are shown.

    Random numbers are torch's, from its global generator; choices are drawn from them in
    another way than torch's distributions do it.
    """

    def __init__(
        self, policy: ActorCriticPolicy, shape: NetShape, weights: FusedWeights, *, team: Team
    ) -> None:
        self._policy, self._shape, self._weights, self._team = policy, shape, weights, team
        self.rollout = FusedRollout(shape)
        self._spans: list[slice] = []
        self._rooms: list[Room] = []

    def begin(self, steps: int, rows: int) -> None:
        """A rollout of so many steps and rows begins, by the weights of its first step."""
        self.rollout.begin(steps, rows)
        worth = rows * net_size(self._shape) // PIECE
        pieces = max(1, min(worth, rows, MOST_THREADS))
        edges = [rows * piece // pieces for piece in range(pieces + 1)]
        spans = [slice(*edge) for edge in pairwise(edges)]
        if spans != self._spans:
            self._spans = spans
            self._rooms = [new_room(self._shape, span.stop - span.start) for span in spans]

    def act(self, observations: th.Tensor) -> Answer:
        """(actions [B, ...], values [B, 1], log-probabilities [B] or [B, K]) for [B, D]."""
        if self.rollout.steps == 0:
            self._weights.load()
        features = features_of(self._policy, observations)
        self.rollout.show(features)
        rows, shape = len(features), self._shape
        chances = th.rand(rows, len(shape.choices)).numpy()
        noise = th.randn(rows, shape.gaussians).numpy()
        return self.choose(features, chances=chances, noise=noise)

    def choose(self, features: Floats, *, chances: Floats, noise: Floats) -> Answer:
        """What `act` gives for features [B, F + M]; see the kernel for what is random."""

        def act_part(part: int, _: int) -> None:
            span, room = self._spans[part], self._rooms[part]
            random = chances[span], noise[span]
            act_piece(self._weights.networks, room, features[span], *random)

        self._team.run(act_part, len(self._spans))
        return self._answer()

    def _answer(self) -> Answer:
        """What the rooms hold, in the form that a policy gives it."""
        space, rooms = self._policy.action_space, self._rooms
        actions = np.concatenate([room.samples.actions for room in rooms], axis=1)
        log_probs = np.concatenate([room.head.log_probs for room in rooms], axis=1)
        values = np.concatenate([room.head.values for room in rooms])  # [B, 1]
        whole = log_probs.T if self._shape.ratios > 1 else log_probs.sum(axis=0)
        return (
            th.from_numpy(actions.T.astype(space.dtype).reshape(-1, *(space.shape or ()))),
            th.from_numpy(values),
            th.from_numpy(np.ascontiguousarray(whole)),
        )
