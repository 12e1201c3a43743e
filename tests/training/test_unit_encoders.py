"""Encoders of units: whatever order units stand in, and whatever stands where there is none."""

import numpy as np
import pytest
import torch as th
from units_training import ENCODED, units_plan

from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.networks.encoders import EncodedFeatures, UnitEncoder, pooled_over
from aimbot_lab.worlds.registry import spec_of

PLAN = units_plan(target="attention", aim="hybrid")
SPEC = spec_of(PLAN.env)
ENEMIES = next(block for block in SPEC.units if block.kind == "enemies")


def observations(rows: int, *, seed: int = 0) -> np.ndarray:
    """Random ones within their ranges; the first slots of enemies are taken."""
    random = np.random.default_rng(seed)
    low, high = SPEC.observation_low, SPEC.observation_high
    seen = random.uniform(low, high, (rows, len(low))).astype(np.float32)
    rays = next(block for block in SPEC.units if block.kind == "rays")
    seen[:, rays.column_of("tag")] = random.integers(-1, 3, (rows, rays.slots))
    taken = np.arange(ENEMIES.slots) < random.integers(0, ENEMIES.slots + 1, rows)[:, None]
    units = np.where(taken[..., None], seen[:, ENEMIES.columns], 0.0)
    units[..., 0] = taken
    seen[:, ENEMIES.columns] = units
    return seen


def encoder_of(policy) -> EncodedFeatures:
    return next(part for part in policy.modules() if isinstance(part, EncodedFeatures))


@pytest.fixture(scope="module")
def policy():
    th.manual_seed(0)
    made = new_policy(PLAN.train, SPEC)
    made.set_training_mode(False)
    return made


def encoded(policy, seen: np.ndarray):
    part = encoder_of(policy)
    units, there = part.units["enemies"](th.as_tensor(seen))
    return part.encoders["enemies"](units, there)


def permuted(seen: np.ndarray, order: np.ndarray) -> np.ndarray:
    other = seen.copy()
    other[:, ENEMIES.columns] = seen[:, ENEMIES.columns[order]]
    return other


def test_permuting_slots_changes_the_pooled_units_not_at_all(policy) -> None:
    seen = observations(50)
    order = np.random.default_rng(1).permutation(ENEMIES.slots)
    pooled, keys = encoded(policy, seen)
    also_pooled, moved = encoded(policy, permuted(seen, order))
    th.testing.assert_close(pooled, also_pooled, rtol=0, atol=1e-6)
    th.testing.assert_close(keys[:, th.as_tensor(order)], moved, rtol=0, atol=1e-6)


def test_permuting_slots_permutes_the_probabilities_of_the_target(policy) -> None:
    seen = observations(50)
    order = np.random.default_rng(2).permutation(ENEMIES.slots)
    one, other = (
        policy.get_distribution(th.as_tensor(given)).branches[3].probs
        for given in (seen, permuted(seen, order))
    )
    th.testing.assert_close(one[:, 0], other[:, 0])
    th.testing.assert_close(one[:, 1:][:, th.as_tensor(order)], other[:, 1:])
    assert float(one[:, 1:].detach().std()) > 0.0


@pytest.mark.parametrize("value", [7.0, np.nan])
def test_what_stands_in_an_empty_slot_changes_nothing_and_gets_no_gradient(policy, value) -> None:
    seen = observations(40)
    junk = seen.copy()
    empty = seen[:, ENEMIES.column_of("seen")] == 0.0
    for name in ("ahead", "right", "hits_left", "is_target"):
        columns = junk[:, ENEMIES.column_of(name)]
        columns[empty] = value
        junk[:, ENEMIES.column_of(name)] = columns
    assert empty.any()
    found = []
    for given in (seen, junk):
        policy.zero_grad()
        actions = th.zeros(len(seen), 5)
        values, log_prob, entropy = policy.evaluate_actions(th.as_tensor(given), actions)
        (values.sum() + log_prob.sum() + entropy.sum()).backward()
        found.append([*(t.detach() for t in (values, log_prob, entropy))])
        found[-1] += [weight.grad.clone() for weight in policy.parameters()]
    for one, other in zip(*found, strict=True):
        assert bool(th.isfinite(one).all())
        assert th.equal(one, other)


def test_where_no_unit_is_seen_the_pool_is_0_and_passes_no_gradient_back() -> None:
    encoder = UnitEncoder(3, (6, 4), keys=2, activation=th.nn.Tanh)
    units = th.randn(5, 7, 3)
    seen = th.rand(5, 7) > 0.5
    seen[2] = False
    pooled, _ = encoder(units, seen)
    assert th.equal(pooled[2], th.zeros(4))
    pooled[2].sum().backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in encoder.parameters())


def test_the_pool_is_the_largest_over_seen_units_by_hand() -> None:
    shown = th.tensor([[[1.0, -2.0], [3.0, -4.0], [9.0, 9.0]]])
    seen = th.tensor([[True, True, False]])
    assert pooled_over(shown, seen).tolist() == [[3.0, -2.0]]


def test_the_last_layer_is_split_into_representation_then_key() -> None:
    encoder = UnitEncoder(3, (4,), keys=2, activation=th.nn.ReLU)
    units = th.randn(1, 1, 3)
    whole = encoder.last(units)[0, 0]
    pooled, keys = encoder(units, th.ones(1, 1, dtype=th.bool))
    assert th.equal(pooled[0], whole[:4].relu())
    assert th.equal(keys[0, 0], whole[4:])


def test_an_enemy_is_shown_as_egocentric_features_show_the_target(policy) -> None:
    seen = np.zeros((1, len(SPEC.observation_names)), np.float32)
    seen[0, ENEMIES.columns[0]] = [1.0, 3.0, -4.0, 0.5, 1.0]
    units, there = encoder_of(policy).units["enemies"](th.as_tensor(seen))
    assert there.tolist() == [[True] + [False] * 5]
    wanted = [0.0, 1.0, 3 / 47, -4 / 47, 0.6, -0.8, np.exp(-5 / 3)]
    np.testing.assert_allclose(units[0, 0].numpy(), wanted, atol=1e-6)
    assert not units[0, 1:].any()


def test_columns_of_encoded_units_are_not_among_the_plain_ones(policy) -> None:
    part = encoder_of(policy)
    assert len(part.kept) == 13 + 5
    assert part.features_dim == 10 + 2 * 8 + 6 * 5
    assert ENCODED.units is not None
