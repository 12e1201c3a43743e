"""Our memory and LSTM against sb3-contrib's and torch's."""

from typing import Any

import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates

from aimbot_lab.training.algorithms.ppo_update import entropy_loss, policy_loss, value_loss
from aimbot_lab.training.networks.remembering_policy import (
    Chunks,
    Lstm,
    MemoryShape,
    RememberingPolicy,
)

ROWS, STEPS, SIZE = 5, 12, 8
ACTIONS = {"multi_discrete": spaces.MultiDiscrete([3, 4]), "box": spaces.Box(-1.0, 1.0, (2,))}


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
        loss, *_ = policy_loss(log_prob, log_prob.detach() + 0.1 * old, advantages, clip_range=0.2)
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


LSTM_STEPS, LSTM_ROWS, INPUTS, LSTM_SIZE = 6, 4, 3, 5


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    th.set_num_threads(1)


def lstm(dtype: th.dtype = th.float32) -> Lstm:
    th.manual_seed(0)
    return Lstm(INPUTS, LSTM_SIZE).to(dtype)


def reference(made: Lstm) -> th.nn.LSTM:
    """torch.nn.LSTM with the same weights."""
    other = th.nn.LSTM(INPUTS, LSTM_SIZE)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    other.load_state_dict({f"{name}_l0": getattr(made.cell, name) for name in names})
    return other


def by_hand(made: Lstm, inputs: th.Tensor, state: th.Tensor, starts: th.Tensor) -> th.Tensor:
    """Outputs [L, N, H] of torch.nn.LSTM run step by step, zeroed where an episode begins."""
    other, outputs = reference(made), []
    hidden, cell = state[:, 0][None], state[:, 1][None]
    for step in range(len(inputs)):
        keep = (1.0 - starts[step])[None, :, None]
        output, (hidden, cell) = other(inputs[step : step + 1], (hidden * keep, cell * keep))
        outputs.append(output[0])
    return th.stack(outputs)


def test_outputs_and_gradients_equal_torchs_run_step_by_step() -> None:
    made = lstm()
    inputs, state = th.randn(LSTM_STEPS, LSTM_ROWS, INPUTS), th.randn(LSTM_ROWS, 2, LSTM_SIZE)
    starts = (th.rand(LSTM_STEPS, LSTM_ROWS) < 0.3).float()
    weight = th.randn(LSTM_STEPS, LSTM_ROWS, LSTM_SIZE)
    found = []
    for run in (lambda *given: made(*given)[0], lambda *given: by_hand(made, *given)):
        given = inputs.clone().requires_grad_()
        output = run(given, state, starts)
        (output * weight).sum().backward()
        found.append((output.detach(), given.grad))
    for one, other in zip(*found, strict=True):
        th.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_forget_gates_have_bias_1_at_first() -> None:
    cell = lstm().cell
    bias = cell.bias_ih + cell.bias_hh
    assert bias[LSTM_SIZE : 2 * LSTM_SIZE].tolist() == [1.0] * LSTM_SIZE
    assert not (bias[:LSTM_SIZE] == 1.0).any()
