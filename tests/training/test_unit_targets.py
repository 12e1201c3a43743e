"""Encoders of units, the head that chooses one to aim at, and what a codec makes of its choice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from units_training import ENCODED, learned, units_plan

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.adapters.spaces import learner_codec
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.networks.encoders import EncodedFeatures, UnitEncoder, pooled_over
from aimbot_lab.training.networks.hybrid_policy import TargetChoice, TargetHead
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.worlds.registry import make_world, spec_of

PLAN = units_plan(target="attention", aim="hybrid")
SPEC = spec_of(PLAN.env)
ENEMIES = next(block for block in SPEC.units if block.kind == "enemies")
VARIANTS: dict[str, dict[str, Any]] = {
    "attention, bins": {"target": "attention"},
    "attention, hybrid, all": {
        **{"target": "attention", "aim": "hybrid", "masks": True, "objective": "per_branch"},
        **{"dual_clip": 3.0, "network": replace(ENCODED, scaling="running", layers=())},
    },
    "linear, masks": {"target": "linear", "masks": True},
    "linear, no encoders": {
        **{"target": "linear", "aim": "hybrid", "network": NetworkSettings(layers=(8,))}
    },
    "encoders alone": {},
}


def observations(rows: int) -> np.ndarray:
    """Random ones within their ranges; the first slots of enemies are taken."""
    random = np.random.default_rng(0)
    low, high = SPEC.observation_low, SPEC.observation_high
    seen = random.uniform(low, high, (rows, len(low))).astype(np.float32)
    rays = next(block for block in SPEC.units if block.kind == "rays")
    seen[:, rays.column_of("tag")] = random.integers(-1, 3, (rows, rays.slots))
    taken = np.arange(ENEMIES.slots) < random.integers(0, ENEMIES.slots + 1, rows)[:, None]
    units = np.where(taken[..., None], seen[:, ENEMIES.columns], 0.0)
    units[..., 0] = taken
    seen[:, ENEMIES.columns] = units
    return seen


def with_junk(seen: np.ndarray, value: float) -> np.ndarray:
    """The same with `value` in the slots of enemies that are empty."""
    junk, empty = seen.copy(), seen[:, ENEMIES.column_of("seen")] == 0.0
    assert empty.any()
    for name in ("ahead", "right", "hits_left", "is_target"):
        columns = junk[:, ENEMIES.column_of(name)]
        columns[empty] = value
        junk[:, ENEMIES.column_of(name)] = columns
    return junk


@pytest.fixture(scope="module")
def policy() -> Any:
    th.manual_seed(0)
    made = new_policy(PLAN.train, SPEC)
    made.set_training_mode(False)
    return made


@pytest.fixture(scope="module")
def features(policy: Any) -> EncodedFeatures:
    return next(part for part in policy.modules() if isinstance(part, EncodedFeatures))


def test_permuting_slots_permutes_keys_and_probabilities_and_leaves_the_pool(
    policy: Any, features: EncodedFeatures
) -> None:
    seen, order = observations(50), np.random.default_rng(1).permutation(ENEMIES.slots)
    other = seen.copy()
    other[:, ENEMIES.columns] = seen[:, ENEMIES.columns[order]]
    found = []
    for given in (th.as_tensor(seen), th.as_tensor(other)):
        pooled, keys = features.encoders["enemies"](*features.units["enemies"](given))
        found.append((pooled, keys, policy.get_distribution(given).branches[3].probs))
    (pooled, keys, probs), (also_pooled, moved, other_probs) = found
    th.testing.assert_close(pooled, also_pooled, rtol=0, atol=1e-6)
    th.testing.assert_close(keys[:, th.as_tensor(order)], moved, rtol=0, atol=1e-6)
    th.testing.assert_close(probs[:, 0], other_probs[:, 0])
    th.testing.assert_close(probs[:, 1:][:, th.as_tensor(order)], other_probs[:, 1:])
    assert float(probs[:, 1:].detach().std()) > 0.0


@pytest.mark.parametrize("value", [7.0, np.nan])
def test_what_stands_in_an_empty_slot_changes_nothing_and_gets_no_gradient(
    policy: Any, value: float
) -> None:
    seen, found = observations(40), []
    for given in (seen, with_junk(seen, value)):
        policy.zero_grad()
        outputs = policy.evaluate_actions(th.as_tensor(given), th.zeros(len(seen), 5))
        sum(one.sum() for one in outputs).backward()
        found.append([one.detach() for one in outputs])
        found[-1] += [weight.grad.clone() for weight in policy.parameters()]
    for one, other in zip(*found, strict=True):
        assert bool(th.isfinite(one).all())
        assert th.equal(one, other)


def test_where_no_unit_is_seen_the_pool_is_0_and_passes_no_gradient_back() -> None:
    encoder = UnitEncoder(3, (6, 4), keys=2, activation=th.nn.Tanh)
    units, seen = th.randn(5, 7, 3), th.rand(5, 7) > 0.5
    seen[2] = False
    pooled, _ = encoder(units, seen)
    assert th.equal(pooled[2], th.zeros(4))
    pooled[2].sum().backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in encoder.parameters())


def test_the_pool_is_the_largest_over_seen_units_and_keys_come_last_by_hand() -> None:
    shown = th.tensor([[[1.0, -2.0], [3.0, -4.0], [9.0, 9.0]]])
    assert pooled_over(shown, th.tensor([[True, True, False]])).tolist() == [[3.0, -2.0]]
    encoder, units = UnitEncoder(3, (4,), keys=2, activation=th.nn.ReLU), th.randn(1, 1, 3)
    whole = encoder.last(units)[0, 0]
    pooled, keys = encoder(units, th.ones(1, 1, dtype=th.bool))
    assert th.equal(pooled[0], whole[:4].relu())
    assert th.equal(keys[0, 0], whole[4:])


def test_an_enemy_is_shown_as_egocentric_features_show_the_target(
    features: EncodedFeatures,
) -> None:
    """Columns of encoded units are not among the plain ones."""
    seen = np.zeros((1, len(SPEC.observation_names)), np.float32)
    seen[0, ENEMIES.columns[0]] = [1.0, 3.0, -4.0, 0.5, 1.0]
    units, there = features.units["enemies"](th.as_tensor(seen))
    assert there.tolist() == [[True] + [False] * 5]
    wanted = [0.0, 1.0, 3 / 47, -4 / 47, 0.6, -0.8, np.exp(-5 / 3)]
    np.testing.assert_allclose(units[0, 0].numpy(), wanted, atol=1e-6)
    assert not units[0, 1:].any()
    assert len(features.kept) == 13 + 5
    assert features.features_dim == 10 + 2 * 8 + 6 * 5


def head(keys: int, *, masked: bool = True) -> TargetHead:
    th.manual_seed(1)
    made = TargetHead(6, TargetChoice((3, 2), tuple(range(4)), keys, masked), rest=1, masks=0)
    for weight in made.parameters():
        th.nn.init.normal_(weight)
    return made


def test_attention_weighs_as_scaled_dot_product_attention_with_scale_1() -> None:
    made = head(5)
    latent, keys = th.randn(7, 6), th.randn(7, 4, 5)
    given = th.cat([latent, keys.flatten(1), th.ones(7, 4)], dim=1)
    found = made(given)[:, 5:10].softmax(dim=1)
    everybody = th.cat([made.nobody.expand(7, 1, 5), keys], dim=1)
    query = made.query(latent).unsqueeze(1)
    weights = th.nn.functional.scaled_dot_product_attention(
        query, everybody, th.eye(5).expand(7, 5, 5), scale=1.0
    )
    th.testing.assert_close(found, weights.squeeze(1))


@pytest.mark.parametrize("keys", [0, 3])
def test_an_unseen_slot_has_probability_0_and_no_gradient(keys: int) -> None:
    made = head(keys)
    seen = th.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    shown = th.randn(2, 4, keys, requires_grad=True)
    given = th.cat([th.randn(2, 6), shown.flatten(1), seen], dim=1)
    chosen = th.distributions.Categorical(logits=made(given)[:, 5:10])
    assert chosen.probs[0, [2, 4]].tolist() == [0.0, 0.0]
    assert chosen.probs[1].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    (chosen.entropy().sum() + chosen.log_prob(th.tensor([1, 0])).sum()).backward()
    if keys:
        assert not shown.grad[0, [1, 3]].any()
        assert not shown.grad[1].any()
        assert shown.grad[0, 0].any()
    assert all(bool(th.isfinite(weight.grad).all()) for weight in made.parameters())


def test_a_linear_head_that_is_not_masked_may_choose_an_empty_slot() -> None:
    given = th.cat([th.randn(3, 6), th.zeros(3, 4)], dim=1)
    assert (head(0, masked=False)(given)[:, 5:10].softmax(dim=1) > 0).all()


@pytest.mark.parametrize("kind", ["target_bins", "target_hybrid"])
def test_nobody_and_an_empty_slot_leave_the_mouse_to_the_bit(kind: Any) -> None:
    codec = learner_codec(SPEC, kind, None)
    plain = learner_codec(SPEC, kind.removeprefix("target_"), None)
    seen, random = observations(300), np.random.default_rng(0)
    mouse = random.integers(0, 11, 300) if kind == "target_bins" else random.normal(0, 2, 300)
    branches = random.integers(0, 2, (300, 3))
    empty = 1 + np.argmin(seen[:, ENEMIES.column_of("seen")], axis=1)
    full = seen[:, ENEMIES.column_of("seen")].all(axis=1)
    target = np.where(random.random(300) < 0.5, 0, np.where(full, 0, empty))
    assert (target > 0).sum() > 50
    out, wanted = np.zeros((2, 300, 4), np.float32)
    codec.to_world(np.column_stack([branches, target, mouse]), out, seen)
    plain.to_world(np.column_stack([branches, mouse]), wanted)
    np.testing.assert_array_equal(out, wanted)


def test_the_mouse_is_the_offset_from_the_chosen_unit_within_its_limits() -> None:
    seen = np.zeros((4, len(SPEC.observation_names)), np.float32)
    seen[:, ENEMIES.columns[2]] = [1.0, 10.0, 1.0, 1.0, 1.0]
    seen[3, ENEMIES.columns[2]] = [1.0, 1.0, -3.0, 1.0, 1.0]
    out, actions = np.zeros((4, 4), np.float32), np.zeros((4, 5), np.float32)
    actions[:, 3], actions[:, 4] = 3, [0.0, 0.5, 4.5, 0.0]
    learner_codec(SPEC, "target_hybrid", None).to_world(actions, out, seen)
    bearing = np.arctan2(1.0, 10.0) / 0.08
    np.testing.assert_allclose(out[:, 3], [bearing, bearing + 0.5, 5.0, -5.0], rtol=1e-6)


def test_a_target_beyond_the_slots_is_refused_by_its_row() -> None:
    codec, actions = learner_codec(SPEC, "target_bins", None), np.zeros((3, 5))
    actions[1, 3] = 7
    with pytest.raises(ActionError, match=r"environment 1: target is 7; allowed is one of 0 to 6"):
        codec.to_world(actions, np.zeros((3, 4), np.float32), observations(3))


def test_a_chosen_unit_within_reach_is_on_the_guns_line_after_the_turn() -> None:
    world: Any = make_world(replace(PLAN.env, num_envs=64))
    world.set_scenario(Scenario({"free": 1.0}))
    env, hits, aimed = WorldVecEnv(world, actions="target_hybrid", seed=1), 0, 0
    seen, middle = env.reset(), SPEC.observation_names.index("ray_9_tag")
    for _ in range(30):
        units = seen[:, ENEMIES.columns]
        bearing = np.arctan2(units[..., 2], units[..., 1])
        near = (units[..., 0] > 0) & (np.abs(bearing) < 0.39)
        rows = near.any(axis=1) & (units[:, :, 0].sum(axis=1) == 1)
        actions = np.zeros((64, 5), np.float32)
        actions[:, 3] = np.where(rows, near.argmax(axis=1) + 1, 0)
        actions[:, 4] = np.where(rows, 0.0, 3.0)
        seen, _, finished, _ = env.step(actions)
        rows &= ~finished
        hits += int((seen[rows, middle] == 1.0).sum())
        aimed += int(rows.sum())
    assert hits == aimed > 50


def test_an_agent_plays_as_its_policy_chose_and_survives_its_files(tmp_path: Path) -> None:
    training = learned(units_plan(**VARIANTS["attention, hybrid, all"]))
    training.save_agents(tmp_path)
    saved, seen = load_agent(tmp_path / "last"), observations(20)
    assert saved.train.target == "attention"
    learner: Any = training.model.policy
    learner.set_training_mode(False)
    actions = saved.agent.act(seen, temperature=0.0)
    masked = np.concatenate([seen, np.ones((20, 8), np.float32)], axis=1)
    chosen, _ = learner.predict(masked, deterministic=True)
    wanted = np.zeros_like(actions)
    learner_codec(SPEC, "target_hybrid", None).to_world(chosen, wanted, seen)
    np.testing.assert_array_equal(actions, wanted)
