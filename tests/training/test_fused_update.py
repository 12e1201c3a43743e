"""The fused engine's updates against those by torch's autograd."""

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from fused_gradients import apart, autograds, fused_gradient_of, whole_rollout
from guessing import ROWS, STEPS, differences, learned, new_model

from aimbot_lab.training.fused import engine as fused_gradient
from aimbot_lab.training.fused.engine import FusedGradient

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
    {"policy_kwargs": {"activation_fn": th.nn.ReLU}},
    {"clip_range_vf": 0.05, "dual_clip": 1.1, "clip_range": 0.05},
    {"normalize_advantage": False, "vf_coef": 0.0, "ent_coef": 0.1},
    {"target_kl": 0.004},
]
LAYERS: list[list[int]] = [[17, 33, 5], [1, 16]]  # with and without units to make lanes whole
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


@pytest.mark.parametrize(
    ("space", "given"),
    [KINDS[0], KINDS[-1], *(("hybrid", given) for given in VARIANTS[1:])],
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


def test_the_comparison_sees_a_sample_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = learned("torch", "hybrid")
    gradient_of = FusedGradient.of

    def all_but_one(self: FusedGradient, rows: Any, asked: Any, loss: Any, *, shards: int) -> Any:
        asked = asked.copy()
        asked[0, 0] = asked[0, -1]
        return gradient_of(self, rows, asked, loss, shards=shards)

    monkeypatch.setattr(FusedGradient, "of", all_but_one)
    assert max(differences(theirs, learned("fused", "hybrid"))) > 10 * TOLERANCE


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


def test_the_number_of_threads_changes_nothing() -> None:
    """To the bit: a lone thread does the same pieces in the same order."""
    models = []
    before = th.get_num_threads()
    try:
        for count in (1, 3):
            model = new_model("fused", "hybrid", n_steps=480, batch_size=3500)
            th.set_num_threads(count)
            models.append(model.learn(480 * ROWS))
            assert model.engine.workers.count == th.get_num_threads() == count
    finally:
        th.set_num_threads(before)
    assert max(differences(*models)) == 0.0


def test_weights_that_are_no_numbers_are_refused() -> None:
    model = new_model("fused", "multi_discrete", learning_rate=1e30)
    with pytest.raises(ValueError, match="no longer finite"):
        model.learn(3 * STEPS * ROWS)


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
