"""The fused engine: how it collects, its updates against autograd's, and which policies suit it."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch as th
from guessing import (
    ROWS,
    STEPS,
    apart,
    autograds,
    differences,
    fused_gradient_of,
    learned,
    new_model,
    whole_rollout,
)
from scipy import special, stats
from test_branches import assert_drawn
from tiny_training import learn, plan
from units_training import with_rollout

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.kernels.threads import ThreadPool
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.fused import engine as fused_gradient
from aimbot_lab.training.fused.actor import FusedActor
from aimbot_lab.training.fused.core.arrays import Networks
from aimbot_lab.training.fused.layout import (
    HeadShape,
    NetworkShape,
    net_size,
    net_views,
    new_networks,
)
from aimbot_lab.training.fused.policy import shown_to
from aimbot_lab.training.networks.encoders import EgocentricFeatures
from aimbot_lab.training.networks.remembering_policy import MemoryShape
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec

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
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


def layers(*sizes: int) -> dict[str, Any]:
    """With and without units to make lanes whole."""
    return {"policy_kwargs": {"net_arch": [*sizes]}}


@pytest.mark.parametrize(
    ("space", "given"),
    [
        *(KINDS[0], KINDS[-1]),
        (
            "hybrid",
            {"clip_range_vf": 0.05, "dual_clip": 1.1, "clip_range": 0.05, **layers(17, 33, 5)},
        ),
        (
            "hybrid",
            {
                **{"normalize_advantage": False, "vf_coef": 0.0, "ent_coef": 0.1},
                **{"target_kl": 0.004, **layers(1, 16)},
            },
        ),
    ],
    ids=str,
)
def test_several_updates_end_where_torchs_do_and_what_pads_layers_stays_0(
    space: str, given: Any
) -> None:
    """Two updates of six gradient steps."""
    theirs, ours = (learned(engine, space, **given) for engine in ("torch", "fused"))
    assert max(differences(theirs, ours)) < 1e-6
    recorded, wanted = (
        {key: value for key, value in one.logger.name_to_value.items() if key.startswith("train/")}
        for one in (ours, theirs)
    )
    assert recorded == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    weights = ours.engine._weights
    for copied in weights.copies:
        copied.weights[...] = 0.0
    assert not weights.weights.any()


@pytest.mark.parametrize(
    ("space", "kind", "piece"),
    [*((*kind, 512) for kind in KINDS), *((*kind, 50) for kind in KINDS[-3:])],  # more than lanes
    ids=str,
)
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


def test_a_memory_that_it_does_not_know_is_refused_by_name_and_auto_leaves_it_to_torch() -> None:
    policy = {**with_memory()["policy_kwargs"], "memory": MemoryShape(1025, LENGTH)}
    with pytest.raises(ValueError, match=r"engine fused: .*more than 1024 units"):
        new_model("fused", "hybrid", **with_memory(policy_kwargs=policy))
    assert new_model("auto", "hybrid", **with_memory(policy_kwargs=policy)).engine.name == "torch"
    assert new_model("auto", "hybrid", **with_memory()).engine.name == "fused"


pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


class Weights(NamedTuple):
    """What an actor needs of a FusedWeights."""

    networks: Networks


@pytest.mark.parametrize(("space", "kind"), KINDS, ids=str)
def test_values_and_log_probabilities_are_the_policys(space: str, kind: Any) -> None:
    model = new_model("fused", space, learning_rate=0.0, n_epochs=1, **kind)
    model.learn(STEPS * ROWS)
    for data in model.rollout_buffer.get(None):
        actions = data.actions.long().flatten() if space == "discrete" else data.actions
        values, log_prob, _ = model.policy.evaluate_actions(data.observations, actions)
        np.testing.assert_allclose(data.old_values, values.flatten().detach(), atol=1e-6)
        np.testing.assert_allclose(data.old_log_prob, log_prob.detach(), atol=2e-6)


def shape_of(*, masks: int, ratios: int) -> NetworkShape:
    """A network of one unit on one column, whose action is 3, 3 or 2 choices and a Gaussian."""
    heads = HeadShape(1, (1,), True, (3, 3, 2), 1, masks, ratios, np.array([0, 3, 6, 8]))
    none = {"scalars": (), "kinds": (), "memories": 0, "size": 0, "choices": 0, "target": 0}
    return NetworkShape(heads=heads, plain=1, length=1, warm_up=0, **none)


def drawn(rows: int, logits: np.ndarray, mean: float, log_std: float) -> np.ndarray:
    """Actions [4, rows] of branches of 3, 3 and 2 choices and a Gaussian."""
    shape = shape_of(masks=8, ratios=1)
    net = net_views(shape, np.zeros(net_size(shape), np.float32))
    net.action_bias[:] = [*np.maximum(logits, -50.0), mean]
    net.log_std[0] = log_std
    actor = FusedActor(new_model("torch", "box").policy, shape, Weights(new_networks(shape, net)))
    actor.begin(1, rows)
    actor.rollout.rows[0, :, 1:9] = logits > -50.0
    task = actor._fitting_task()
    th.manual_seed(0)
    task.step.noise.uniform[:] = th.rand(rows, 3).numpy()
    task.step.noise.normal[:] = th.randn(rows, 1).numpy()
    actor.choose(0)
    return task.step.sampled.actions.T


@pytest.mark.parametrize("ratios", [1, 4])
def test_two_threads_write_what_one_would(ratios: int) -> None:
    shape = shape_of(masks=0, ratios=ratios)
    net = net_views(shape, np.zeros(net_size(shape), np.float32))
    net.action_bias[:] = np.linspace(-1.0, 1.0, 9)
    actor = FusedActor(new_model("torch", "box").policy, shape, Weights(new_networks(shape, net)))
    actor.begin(1, 65)  # two pieces
    drawn = {}
    for threads in (1, 2):
        actor.join(ThreadPool(threads))
        task = actor._fitting_task()
        task.step.noise.uniform[:] = np.linspace(0.0, 0.99, 65)[:, None]
        for _ in range(5_000 if threads > 1 else 1):
            actor.choose(0)
            drawn.setdefault(threads, task.step.sampled.log_probs.copy())
            assert (task.step.sampled.log_probs == drawn[1]).all()


def test_samples_match_their_distribution() -> None:
    logits = np.random.default_rng(1).normal(size=8)
    actions = drawn(100_000, logits, mean=0.3, log_std=-0.5)
    tables = [special.softmax(part) for part in np.split(logits, [3, 6])]
    assert_drawn(actions.T, tables, stats.norm(0.3, np.exp(-0.5)))


def test_what_is_masked_is_never_taken_in_a_million_samples() -> None:
    logits = np.float32([0.0, -99.0, -1.0, -99.0, 0.0, -99.0, -99.0, 0.0])
    actions = drawn(1_000_000, logits, mean=0.0, log_std=0.0)
    assert set(actions[0]) == {0.0, 2.0}
    assert set(actions[1]) == {1.0}
    assert set(actions[2]) == {1.0}


@pytest.mark.parametrize(("masks", "scaling"), [(False, "running"), (True, "ranges")])
def test_it_learns_from_what_the_networks_were_shown(masks: bool, scaling: Any) -> None:
    network = NetworkSettings(layers=(16,), scaling=scaling)
    given = plan("hybrid_ppo", masks=masks, network=network, total_steps=2 * 32 * 150)
    model: Any = with_rollout(replace(given, env=replace(given.env, num_envs=150)))
    rollout, buffer = model.engine.actor.rollout, model.rollout_buffer
    assert rollout.steps == len(buffer.observations)
    seen = th.as_tensor(buffer.observations).flatten(end_dim=1)
    features, values = shown_to(model.policy, seen), model.policy.predict_values(seen)
    np.testing.assert_allclose(buffer.values.ravel(), values[:, 0].detach(), atol=1e-5)
    kept = rollout.rows.reshape(len(features), -1)[:, : features.shape[1]]
    np.testing.assert_array_equal(kept, features)


def test_after_a_rollout_collected_in_another_way_it_learns_from_the_buffer() -> None:
    model = learned("fused", "hybrid")
    assert model.engine.actor.rollout.steps == 0
    assert model.policy.act is None


def test_a_training_repeats_itself_whatever_the_number_of_threads() -> None:
    def state_after(**threads: int) -> str:
        given = plan("hybrid_ppo", engine="fused", network={"layers": (64, 64)}, **threads)
        env = replace(given.env, num_envs=150)  # pieces that fill no workspace
        given = replace(given, env=env, train=replace(given.train, total_steps=9600))
        return learn(Training(given)).state_sha256

    before = th.get_num_threads()
    try:
        states = {state_after(torch_threads=threads) for threads in (1, 3)}
    finally:
        th.set_num_threads(before)
    assert len(states) == 1


def test_the_kernel_sees_what_torch_sees() -> None:
    spec = arena_spec(ArenaSettings())
    space = Training(plan("ppo")).env.observation_space
    features = EgocentricFeatures(space, names=spec.observation_names)
    rng = np.random.default_rng(0)
    observations = rng.uniform(space.low, space.high, (500, len(space.low))).astype(np.float32)
    observations[:100, features._columns.diameter] = 0.0  # no FireBase
    observations[50:200, features._columns.rays :] = 0.0  # nothing met
    observations[300, [features._columns.x, features._columns.z]] = observations[
        300, [features._columns.base_x, features._columns.base_z]
    ]
    seen = th.as_tensor(observations)
    scaled = th.addcmul(features.shift, seen, features.scale)
    by_torch, by_kernel = features._by_torch(seen, scaled), features(seen)
    np.testing.assert_allclose(by_kernel, by_torch, rtol=0, atol=5e-7)
    assert (by_kernel[:100, -5:] == 0.0).all()


UNSUITED: list[tuple[dict[str, Any], str]] = [
    ({"net_arch": {"pi": [8], "vf": [16]}}, "same layers"),
    ({"net_arch": {"pi": [2000], "vf": [2000]}}, "more than 1024 units"),
    ({"activation_fn": th.nn.ELU}, "tanh and relu"),
    ({"optimizer_class": th.optim.SGD}, "Adam"),
    ({"share_features_extractor": False}, "share"),
]


@pytest.mark.parametrize(("given", "reason"), UNSUITED, ids=str)
def test_a_policy_that_it_does_not_know_is_refused_and_auto_leaves_it_to_torch(
    given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=rf"engine fused: .*{reason}"):
        new_model("fused", "multi_discrete", policy_kwargs=given)
    assert new_model("auto", "multi_discrete", policy_kwargs=given).engine.name == "torch"
    assert new_model("auto", "multi_discrete").engine.name == "fused"


def test_a_curriculum_that_asks_for_the_impossible_is_told_why() -> None:
    network = {"layers": (1500,)}
    with pytest.raises(ConfigurationError, match="hybrid_ppo refuses this: engine fused: a layer"):
        Training(plan("hybrid_ppo", engine="fused", network=network))


def test_a_saved_or_copied_model_goes_on_learning_by_itself(tmp_path: Path) -> None:
    model = new_model("fused", "hybrid")
    model.learn(2 * STEPS * ROWS)
    kept = model.policy.action_net.weight.detach().clone()
    model.save(tmp_path / "model.zip")
    for twin in (HybridPPO.load(tmp_path / "model.zip", env=model.env), copy.deepcopy(model)):
        assert th.equal(twin.policy.action_net.weight, kept)
        twin.learn(2 * STEPS * ROWS)
        assert not th.equal(twin.policy.action_net.weight, kept)
    assert th.equal(model.policy.action_net.weight, kept)
