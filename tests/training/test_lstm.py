"""The memory's arithmetic: PyTorch's equations, resets that cut state and gradient."""

import pytest
import torch as th

from aimbot_lab.training.networks.parts.memory import Lstm

STEPS, ROWS, INPUTS, SIZE = 6, 4, 3, 5


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    th.set_num_threads(1)


def lstm(dtype: th.dtype = th.float32) -> Lstm:
    th.manual_seed(0)
    return Lstm(INPUTS, SIZE).to(dtype)


def reference(made: Lstm) -> th.nn.LSTM:
    """torch.nn.LSTM with the same weights."""
    other = th.nn.LSTM(INPUTS, SIZE)
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
    inputs, state = th.randn(STEPS, ROWS, INPUTS), th.randn(ROWS, 2, SIZE)
    starts = (th.rand(STEPS, ROWS) < 0.3).float()
    weight = th.randn(STEPS, ROWS, SIZE)
    found = []
    for run in (lambda *given: made(*given)[0], lambda *given: by_hand(made, *given)):
        given = inputs.clone().requires_grad_()
        output = run(given, state, starts)
        (output * weight).sum().backward()
        found.append((output.detach(), given.grad))
    for one, other in zip(*found, strict=True):
        th.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("reset", range(STEPS))
def test_a_reset_within_a_chunk_makes_two_sequences(reset: int) -> None:
    made = lstm()
    inputs, state = th.randn(STEPS, ROWS, INPUTS), th.randn(ROWS, 2, SIZE)
    starts = th.zeros(STEPS, ROWS)
    starts[reset] = 1.0
    whole, after = made(inputs, state, starts)
    nothing, none = th.zeros_like(state), th.zeros(STEPS, ROWS)
    last, end = made(inputs[reset:], nothing, none[reset:])
    th.testing.assert_close(whole[reset:], last, rtol=0, atol=1e-6)
    th.testing.assert_close(after, end, rtol=0, atol=1e-6)
    if reset:
        first, _ = made(inputs[:reset], state, none[:reset])
        th.testing.assert_close(whole[:reset], first, rtol=0, atol=1e-6)


def test_no_gradient_crosses_a_reset() -> None:
    made = lstm()
    inputs = th.randn(STEPS, ROWS, INPUTS, requires_grad=True)
    state = th.randn(ROWS, 2, SIZE, requires_grad=True)
    starts = th.zeros(STEPS, ROWS)
    starts[3] = 1.0
    made(inputs, state, starts)[0][3:].sum().backward()
    assert inputs.grad is not None
    assert state.grad is not None
    assert not inputs.grad[:3].any()
    assert not state.grad.any()
    assert inputs.grad[3:].any()


def test_gradients_of_all_weights_are_finite_differences() -> None:
    made = lstm(th.float64)
    state = th.randn(2, 2, SIZE, dtype=th.float64)
    starts = (th.rand(3, 2) < 0.3).double()
    inputs = th.randn(3, 2, INPUTS, dtype=th.float64)
    weights = list(made.parameters())

    def run(*_: th.Tensor) -> th.Tensor:
        return made(inputs, state, starts)[0]

    assert th.autograd.gradcheck(run, weights)


def test_forget_gates_have_bias_1_at_first() -> None:
    cell = lstm().cell
    bias = cell.bias_ih + cell.bias_hh
    assert bias[SIZE : 2 * SIZE].tolist() == [1.0] * SIZE
    assert not (bias[:SIZE] == 1.0).any()
