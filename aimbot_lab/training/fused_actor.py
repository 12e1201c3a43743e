"""Actions of a policy while a rollout is collected."""

from itertools import pairwise

import numpy as np
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.core.net import act_piece
from aimbot_lab.training.core.parts import Chances, Drawn, Floats, Room
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
        return self._answer(self.choose(features, Chances(chances, noise)))

    def choose(self, features: Floats, chances: Chances) -> Drawn:
        """Actions and what belongs to them for features [B, F + M]."""
        widths = self._shape.branches, 1, self._shape.ratios
        drawn = Drawn(*(np.empty((len(features), width), np.float32) for width in widths))

        def act_part(part: int, _: int) -> None:
            span, networks = self._spans[part], self._weights.networks
            own = Chances(*(array[span] for array in chances))
            into = Drawn(*(array[span] for array in drawn))
            act_piece(networks, self._rooms[part], features[span], own, into)

        self._team.run(act_part, len(self._spans))
        return drawn

    def _answer(self, drawn: Drawn) -> Answer:
        """The same in the form that a policy gives it."""
        space, log_probs = self._policy.action_space, drawn.log_probs
        actions = drawn.actions.astype(space.dtype).reshape(-1, *(space.shape or ()))
        whole = log_probs if self._shape.ratios > 1 else log_probs[:, 0]
        return th.from_numpy(actions), th.from_numpy(drawn.values), th.from_numpy(whole)
