"""Our memory against that of sb3-contrib's RecurrentPPO, with the same weights and sequences."""

from typing import Any

import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates

from aimbot_lab.training.algorithms.ppo_update import entropy_loss, policy_loss, value_loss
from aimbot_lab.training.networks.parts.memory import Chunks, MemoryShape
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy

ROWS, STEPS, SIZE = 5, 12, 8
ACTIONS = {
    "multi_discrete": spaces.MultiDiscrete([3, 4]),
    "box": spaces.Box(-1.0, 1.0, (2,)),
}


def policies(actions: spaces.Space[Any]) -> tuple[RememberingPolicy, RecurrentActorCriticPolicy]:
    """Both kinds of policy with the same weights."""
    seen = spaces.Box(-1.0, 1.0, (4,))
    th.manual_seed(0)
    net: dict[str, Any] = {"net_arch": [16]}
    theirs = RecurrentActorCriticPolicy(seen, actions, lambda _: 0.0, lstm_hidden_size=SIZE, **net)
    memory = MemoryShape(SIZE, STEPS, own_critic=True)
    ours = RememberingPolicy(seen, actions, lambda _: 0.0, memory=memory, **net)
    state = ours.state_dict()
    for name, weight in theirs.state_dict().items():
        for lstm, own in (("lstm_actor", "memory"), ("lstm_critic", "critic_memory")):
            if name.startswith(lstm):
                state[f"{own}.cell.{name.split('.')[1].removesuffix('_l0')}"] = weight
        if name in state:
            state[name] = weight
    ours.load_state_dict(state)
    return ours, theirs


@pytest.mark.parametrize("kind", ACTIONS)
def test_values_probabilities_entropy_loss_and_gradient_equal_those_of_recurrent_ppo(
    kind: str,
) -> None:
    ours, theirs = policies(ACTIONS[kind])
    th.manual_seed(1)
    seen = th.randn(ROWS * STEPS, 4)
    actions = th.stack([th.as_tensor(ACTIONS[kind].sample()) for _ in seen]).float()
    starts = (th.rand(ROWS, STEPS) < 0.2).float()
    states = th.randn(ROWS, 4, SIZE)
    pairs = [states[:, k].unsqueeze(0).contiguous() for k in range(4)]
    chunks = Chunks(states, starts.T)
    found = [
        ours.evaluate_chunks(seen, actions, chunks),
        theirs.evaluate_actions(
            seen, actions, RNNStates((pairs[0], pairs[1]), (pairs[2], pairs[3])), starts.flatten()
        ),
    ]
    advantages, returns, old = th.randn(3, ROWS * STEPS)
    losses, gradients = [], []
    for policy, (values, log_prob, entropy) in zip((ours, theirs), found, strict=True):
        loss = policy_loss(log_prob, log_prob.detach() + 0.1 * old, advantages, clip_range=0.2).loss
        loss = loss + value_loss(values.flatten(), old, returns, None)
        loss = loss + 0.01 * entropy_loss(entropy, log_prob)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
        gradients.append(sum(float(w.grad.square().sum()) for w in policy.parameters()))
    for one, other in zip(*found, strict=True):
        th.testing.assert_close(one.flatten(), other.flatten(), rtol=0, atol=1e-5)
    th.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-5)
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-5)
    th.testing.assert_close(
        ours.memory.cell.weight_hh.grad, theirs.lstm_actor.weight_hh_l0.grad, rtol=0, atol=1e-5
    )
