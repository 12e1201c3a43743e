"""The fused engine's updates against those by torch's autograd."""

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from fused_gradients import apart, autograds, fused_gradient_of, whole_rollout
from guessing import ROWS, STEPS, differences, learned, new_model

from aimbot_lab.training.fused import engine as fused_gradient
from aimbot_lab.training.networks.remembering_policy import MemoryShape

TOLERANCE = 1e-6  # of weights after two updates of six gradient steps
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("box", {}),
    ("discrete", {}),
    ("multi_discrete", {}),
    ("multi_discrete", {"objective": "per_branch"}),
    ("multi_discrete", {"masked": True}),
    ("hybrid", {}),
    ("hybrid", {"objective": "per_branch", "dual_clip": 1.2}),
    ("hybrid", {"masked": True, "objective": "per_branch"}),
]
VARIANTS: list[dict[str, Any]] = [
    {"clip_range_vf": 0.05, "dual_clip": 1.1, "clip_range": 0.05},
    {"normalize_advantage": False, "vf_coef": 0.0, "ent_coef": 0.1, "target_kl": 0.004},
]
LAYERS: list[list[int]] = [[17, 33, 5], [1, 16]]  # with and without units to make lanes whole
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


@pytest.mark.parametrize(
    ("space", "given"),
    [KINDS[0], KINDS[-1], *(("hybrid", given) for given in VARIANTS)],
    ids=str,
)
def test_several_updates_end_where_torchs_do(space: str, given: Any) -> None:
    theirs, ours = (learned(engine, space, **given) for engine in ("torch", "fused"))
    assert max(differences(theirs, ours)) < TOLERANCE
    recorded, wanted = ours.logger.name_to_value, theirs.logger.name_to_value
    train = {key for key in wanted if key.startswith("train/")}
    assert {key for key in recorded if key.startswith("train/")} == train
    for key in train:
        assert recorded[key] == pytest.approx(wanted[key], rel=1e-3, abs=1e-5), key


@pytest.mark.parametrize("piece", [512, 50])  # one and a rest; more than there are lanes
@pytest.mark.parametrize(("space", "kind"), KINDS, ids=str)
def test_the_gradient_of_a_minibatch_is_autograds(
    space: str, kind: Any, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to its norm within 1e-6, far enough from the rollout for ratios to be clipped."""
    monkeypatch.setattr(fused_gradient, "PIECE", piece)
    model = new_model("fused", space, learning_rate=0.02, **kind)
    model.learn(STEPS * ROWS)  # the buffer is that of the policy before this update
    found, (gradient, _) = fused_gradient_of(model), whole_rollout(model)
    assert apart(found, autograds(model)) < 1e-6
    norm = np.linalg.norm(np.concatenate([part.ravel() for part in found.values()]))
    assert np.linalg.norm(gradient) == pytest.approx(norm)


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_layers_of_any_size_learn_as_torchs_and_what_pads_them_stays_0(layers: list[int]) -> None:
    networks = {"policy_kwargs": {"net_arch": layers}}
    theirs, ours = (learned(engine, "hybrid", **networks) for engine in ("torch", "fused"))
    assert max(differences(theirs, ours)) < TOLERANCE
    weights = ours.engine._weights
    for place in weights.places:
        place.weights[...] = 0.0
    assert not weights.weights.any()


def test_a_model_that_diverged_learns_again_from_sound_weights() -> None:
    model = new_model("fused", "multi_discrete", policy_kwargs={"net_arch": [7]})
    sound = copy.deepcopy(model.policy.state_dict())
    model.engine._weights.weights[:] = np.nan
    model.policy.load_state_dict(sound)
    model.learn(STEPS * ROWS)
    assert all(value.isfinite().all() for value in model.policy.state_dict().values())


def test_adam_without_epsilon_moves_what_has_a_gradient() -> None:
    kwargs = {"net_arch": [7], "optimizer_kwargs": {"eps": 0.0}}
    theirs, ours = (
        learned(engine, "hybrid", policy_kwargs=kwargs, n_epochs=1) for engine in ("torch", "fused")
    )
    assert max(differences(theirs, ours)) < 1e-4


SIZE, LENGTH = 7, 16  # with units to make lanes whole


def with_memory(length: int = LENGTH, **given: Any) -> dict[str, Any]:
    """Arguments of a model with a memory; a piece of samples and a rest in each minibatch."""
    policy = {"net_arch": [16], "memory": MemoryShape(SIZE, length)}
    return {"policy_kwargs": policy, "batch_size": 320, **given}


@pytest.mark.parametrize("length", [1, STEPS])
def test_the_gradient_is_autograds_for_chunks_of_any_length(length: int) -> None:
    """Far enough from the rollout for ratios to be clipped."""
    given = with_memory(length, learning_rate=0.02, objective="per_branch")
    model = learned("fused", "hybrid", masked=True, **given)
    assert model.rollout_buffer.episode_starts[1:].any()
    assert apart(fused_gradient_of(model), autograds(model)) < 1e-6


def test_the_gradient_is_autograds_wherever_an_episode_begins() -> None:
    model = learned("fused", "hybrid", **with_memory(n_epochs=1))
    rollout, whole = copy.deepcopy(model.rollout_buffer), fused_gradient_of(model)
    for reset in (0, 1, LENGTH - 1):
        model.rollout_buffer = buffer = copy.deepcopy(rollout)
        buffer.episode_starts[:] = 0.0
        buffer.episode_starts[reset::LENGTH] = 1.0
        found = fused_gradient_of(model)
        assert apart(found, autograds(model)) < 1e-6
        assert apart(found, whole) > 1e-4


def test_the_states_of_a_rollout_are_those_of_torchs_lstm() -> None:
    model = new_model("fused", "hybrid", **with_memory())
    policy: Any = model.policy
    model.learn(STEPS * ROWS)  # so that no bias is 0
    cell = policy.memory.cell
    lstm = th.nn.LSTM(cell.input_size, SIZE)
    lstm.load_state_dict({f"{name}_l0": weight for name, weight in cell.state_dict().items()})
    random = np.random.default_rng(0)
    seen = random.uniform(-1, 1, (9, ROWS, cell.input_size)).astype(np.float32)
    starts = (random.random((9, ROWS)) < 0.3).astype(np.float32)
    steps = iter(starts)
    model.engine.actor.begin(9, ROWS)
    policy.rollout.begin(lambda: next(steps))
    hidden, cells = policy.rollout.state.transpose(0, 1)[:, None]
    for step in range(9):
        kept = 1.0 - th.as_tensor(starts[step])[None, :, None]
        with th.no_grad():
            output, (hidden, cells) = lstm(
                th.as_tensor(seen[step])[None], (hidden * kept, cells * kept)
            )
        model.engine.actor.act(th.as_tensor(seen[step]))
        th.testing.assert_close(policy.rollout.state[:, 0], output[0], rtol=0, atol=1e-6)
        th.testing.assert_close(policy.rollout.state[:, 1], cells[0], rtol=0, atol=1e-6)


def test_a_memory_that_it_does_not_know_is_refused_by_name_and_auto_leaves_it_to_torch() -> None:
    policy = {**with_memory()["policy_kwargs"], "memory": MemoryShape(1025, LENGTH)}
    with pytest.raises(ValueError, match=r"engine fused: .*more than 1024 units"):
        new_model("fused", "hybrid", **with_memory(policy_kwargs=policy))
    assert new_model("auto", "hybrid", **with_memory(policy_kwargs=policy)).engine.name == "torch"
    assert new_model("auto", "hybrid", **with_memory()).engine.name == "fused"
