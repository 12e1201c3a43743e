"""The action head that chooses a unit to aim at, and what the codec makes of its choice."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from test_unit_encoders import ENEMIES, SPEC, observations
from units_training import ENCODED, learned, units_plan

from aimbot_lab.adapters.spaces import learner_codec
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.training.networks.hybrid_policy import TargetChoice, TargetHead
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.worlds.registry import make_world

VARIANTS: dict[str, dict[str, Any]] = {
    "attention, bins": {"target": "attention"},
    "attention, hybrid, all": {
        "target": "attention",
        "aim": "hybrid",
        "masks": True,
        "objective": "per_branch",
        "dual_clip": 3.0,
        "network": replace(ENCODED, scaling="running", layers=()),
    },
    "linear, masks": {"target": "linear", "masks": True},
    "linear, no encoders": {
        "target": "linear",
        "aim": "hybrid",
        "network": NetworkSettings(layers=(8,)),
    },
    "encoders alone": {},
}


def head(keys: int, *, masked: bool = True, slots: int = 4, masks: int = 0) -> TargetHead:
    th.manual_seed(1)
    target = TargetChoice((3, 2), tuple(range(slots)), keys, masked)
    made = TargetHead(6, target, rest=1, masks=masks)
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
    made = head(0, masked=False)
    given = th.cat([th.randn(3, 6), th.zeros(3, 4)], dim=1)
    assert (made(given)[:, 5:10].softmax(dim=1) > 0).all()


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
    out, wanted = np.zeros((2, 300, 4), np.float32)
    codec.to_world(np.column_stack([branches, target, mouse]), out, seen)
    plain.to_world(np.column_stack([branches, mouse]), wanted)
    np.testing.assert_array_equal(out, wanted)
    assert (target > 0).sum() > 50


def test_the_mouse_is_the_offset_from_the_chosen_unit_within_its_limits() -> None:
    codec = learner_codec(SPEC, "target_hybrid", None)
    seen = np.zeros((4, len(SPEC.observation_names)), np.float32)
    seen[:, ENEMIES.columns[2]] = [1.0, 10.0, 1.0, 1.0, 1.0]
    seen[3, ENEMIES.columns[2]] = [1.0, 1.0, -3.0, 1.0, 1.0]
    out = np.zeros((4, 4), np.float32)
    actions = np.zeros((4, 5), np.float32)
    actions[:, 3], actions[:, 4] = 3, [0.0, 0.5, 4.5, 0.0]
    codec.to_world(actions, out, seen)
    bearing = np.arctan2(1.0, 10.0) / 0.08
    np.testing.assert_allclose(out[:, 3], [bearing, bearing + 0.5, 5.0, -5.0], rtol=1e-6)


def test_a_target_beyond_the_slots_is_refused_by_its_row() -> None:
    codec = learner_codec(SPEC, "target_bins", None)
    actions = np.zeros((3, 5))
    actions[1, 3] = 7
    seen = observations(3)
    with pytest.raises(ActionError, match=r"environment 1: target is 7; allowed is one of 0 to 6"):
        codec.to_world(actions, np.zeros((3, 4), np.float32), seen)


def test_a_chosen_unit_within_reach_is_on_the_guns_line_after_the_turn() -> None:
    plan = units_plan(target="attention", aim="hybrid", env={"num_envs": 64})
    from aimbot_lab.adapters.sb3 import WorldVecEnv
    from aimbot_lab.foundation.world import Scenario

    world: Any = make_world(plan.env)
    world.set_scenario(Scenario({"free": 1.0}))
    env, hits, aimed = WorldVecEnv(world, actions="target_hybrid", seed=1), 0, 0
    seen = env.reset()
    for _ in range(30):
        units = seen[:, ENEMIES.columns]
        bearing = np.arctan2(units[..., 2], units[..., 1])
        near = (units[..., 0] > 0) & (np.abs(bearing) < 0.39)
        slot = near.argmax(axis=1)
        rows = near.any(axis=1) & (units[:, :, 0].sum(axis=1) == 1)
        actions = np.zeros((64, 5), np.float32)
        actions[:, 3] = np.where(rows, slot + 1, 0)
        actions[:, 4] = np.where(rows, 0.0, 3.0)
        seen, _, finished, _ = env.step(actions)
        rows &= ~finished
        middle = SPEC.observation_names.index("ray_9_tag")
        hits += int((seen[rows, middle] == 1.0).sum())
        aimed += int(rows.sum())
    assert aimed > 50
    assert hits == aimed


def test_an_agent_plays_as_its_policy_chose_and_survives_its_files(tmp_path) -> None:
    from aimbot_lab.training.agents.agent_files import load_agent

    training = learned(units_plan(**VARIANTS["attention, hybrid, all"]))
    files = training.save_agents(tmp_path)
    assert files
    saved = load_agent(tmp_path / "last")
    assert saved.train.target == "attention"
    seen = observations(20)
    policy: Any = training.model.policy
    policy.set_training_mode(False)
    actions = saved.agent.act(seen, temperature=0.0)
    masks = np.ones((20, 8), np.float32)
    chosen, _ = policy.predict(np.concatenate([seen, masks], axis=1), deterministic=True)
    wanted = np.zeros_like(actions)
    learner_codec(SPEC, "target_hybrid", None).to_world(chosen, wanted, seen)
    np.testing.assert_array_equal(actions, wanted)
