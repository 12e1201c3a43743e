"""The fused engine with a memory: its states, updates and gradients against those by torch."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from fused_gradients import apart, autograds, fused_gradient_of
from guessing import ROWS, STEPS, differences, learned, new_model, take_sharded_minibatches
from recall_world import RecallVecEnv
from tiny_training import Sink
from units_training import units_plan, with_rollout

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import evaluated
from aimbot_lab.training.networks.remembering_policy import MemoryShape, RememberingPolicy
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.training import Training

pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
TOLERANCE = 1e-6  # of weights after three updates of six gradient steps
SIZE, LENGTH = 7, 16  # with units to make lanes whole
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("box", {}),
    ("multi_discrete", {"masked": True}),
    ("hybrid", {"masked": True, "objective": "per_branch", "dual_clip": 1.2}),
]


def memory(length: int = LENGTH, **given: Any) -> dict[str, Any]:
    """Arguments of a model with a memory; a piece of samples and a rest in each minibatch."""
    policy = {"net_arch": [16], "memory": MemoryShape(SIZE, length)}
    return {"policy_kwargs": policy, "batch_size": 320, **given}


@pytest.mark.parametrize(("space", "given"), KINDS, ids=str)
def test_several_updates_end_where_torchs_do(space: str, given: Any) -> None:
    theirs, ours = (learned(engine, space, **memory(**given)) for engine in ("torch", "fused"))
    assert max(differences(theirs, ours)) < TOLERANCE
    recorded, wanted = ours.logger.name_to_value, theirs.logger.name_to_value
    for key in (key for key in wanted if key.startswith("train/")):
        assert recorded[key] == pytest.approx(wanted[key], rel=1e-3, abs=1e-5), key


@pytest.mark.parametrize("length", [1, LENGTH, STEPS])
def test_the_gradient_is_autograds_for_chunks_of_any_length(length: int) -> None:
    """Far enough from the rollout for ratios to be clipped."""
    given = memory(length, learning_rate=0.02, objective="per_branch")
    model = learned("fused", "hybrid", masked=True, **given)
    assert model.rollout_buffer.episode_starts[1:].any()
    assert apart(fused_gradient_of(model), autograds(model)) < 1e-6


@pytest.mark.parametrize("reset", range(LENGTH))
def test_the_gradient_is_autograds_wherever_an_episode_begins(reset: int) -> None:
    model = learned("fused", "hybrid", **memory(n_epochs=1))
    whole = fused_gradient_of(model)
    model.rollout_buffer.episode_starts[:] = 0.0
    model.rollout_buffer.episode_starts[reset::LENGTH] = 1.0
    found = fused_gradient_of(model)
    assert apart(found, autograds(model)) < 1e-6
    assert apart(found, whole) > 1e-4


@pytest.mark.parametrize("space", ["hybrid"])
def test_the_states_of_a_rollout_are_those_of_torchs_lstm(space: str) -> None:
    model = new_model("fused", space, **memory())
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


def test_what_makes_lanes_whole_stays_0() -> None:
    model = learned("fused", "hybrid", **memory())
    engine: Any = model.engine
    for place in engine._weights.places:
        place.weights[...] = 0.0
    assert not engine._weights.weights.any()
    assert not engine._weights.squares[engine._weights.means == 0.0].any()


def arena(**given: Any) -> Any:
    """A training in the arena; with an encoder, whose units do not fill lanes."""
    settings = MemorySettings(size=SIZE, sequence_length=8)
    network = {"layers": (8,), "scalars": (9,), "memory": settings, "scaling": "running"}
    switches = {"aim": "hybrid", "masks": True, "objective": "per_branch", "dual_clip": 3.0}
    return units_plan(
        env={"time_limit": 0.7, **given.pop("env", {})},
        network=NetworkSettings(**{**network, **given.pop("network", {})}),
        engine="fused",
        batch_size=64,
        **{**switches, **given},
    )


@pytest.mark.parametrize("network", [{}, {"scalars": None}], ids=str)
def test_every_sample_is_as_likely_as_in_the_rollout_and_its_gradient_is_autograds(
    network: Any,
) -> None:
    model = with_rollout(arena(network=network, total_steps=2 * 8 * 32))
    for data in model.rollout_buffer.get(64):
        values, log_prob, _ = evaluated(model, data)
        th.testing.assert_close(log_prob, data.old_log_prob, rtol=0, atol=1e-5)
        th.testing.assert_close(values.flatten(), data.old_values, rtol=0, atol=1e-5)
    policy: Any = model.policy
    assert policy.rollout.state.any()
    assert policy.state_drift(model.rollout_buffer, range(model.n_envs)) < 1e-5


def test_the_gradient_through_an_encoder_is_autograds() -> None:
    plan = arena()
    models = []
    for engine in ("torch", "fused"):
        training = Training(replace(plan, train=replace(plan.train, engine=engine)))
        model: Any = training.model
        if engine == "fused":
            model.engine.collect = lambda _model, loop, *, steps: loop()  # acts by torch
        else:
            take_sharded_minibatches(model)
        training.learn(Sink(), SilentObserver(), lambda: False)
        models.append(model)
    assert max(differences(*models)) < TOLERANCE


def test_a_training_repeats_itself_whatever_the_number_of_threads() -> None:
    def state_after(threads: int) -> str:
        plan = arena(torch_threads=threads, env={"num_envs": 150}, total_steps=9600)
        plan = replace(plan, train=replace(plan.train, batch_size=1600))
        training = Training(plan)
        return training.learn(Sink(), SilentObserver(), lambda: False).state_sha256

    before = th.get_num_threads()
    try:
        states = {state_after(threads) for threads in (1, 1, 2, 3)}
    finally:
        th.set_num_threads(before)
    assert len(states) == 1


def test_what_was_shown_is_recalled() -> None:
    th.set_num_threads(1)
    env = RecallVecEnv(32, 3)
    model = HybridPPO(
        RememberingPolicy,
        env,
        policy_kwargs={"net_arch": [16], "memory": MemoryShape(16, 8)},
        engine="fused",
        seed=1,
        device="cpu",
        gamma=0.9,
        n_steps=16,
        batch_size=128,
        n_epochs=4,
        learning_rate=5e-3,
    )
    model.learn(25 * 32 * 16)
    assert np.mean(env.won[-400:]) > 0.95


def test_a_copied_model_learns_by_itself() -> None:
    model = new_model("fused", "hybrid", **memory())
    model.learn(2 * STEPS * ROWS)
    kept = model.policy.state_dict()["memory.cell.weight_hh"].clone()
    twin = copy.deepcopy(model)
    twin.learn(2 * STEPS * ROWS)
    assert not th.equal(twin.policy.state_dict()["memory.cell.weight_hh"], kept)
    assert th.equal(model.policy.state_dict()["memory.cell.weight_hh"], kept)


UNSUITED: list[tuple[dict[str, Any], str]] = [
    ({"memory": MemoryShape(1025, LENGTH)}, "more than 1024 units"),
    ({"net_arch": {"pi": [8], "vf": [16]}}, "same layers"),
]


@pytest.mark.parametrize(("given", "reason"), UNSUITED, ids=str)
def test_a_memory_that_it_does_not_know_is_refused_by_name_and_auto_leaves_it_to_torch(
    given: dict[str, Any], reason: str
) -> None:
    policy = {**memory()["policy_kwargs"], **given}
    with pytest.raises(ValueError, match=rf"engine fused: .*{reason}"):
        new_model("fused", "hybrid", **memory(policy_kwargs=policy))
    assert new_model("auto", "hybrid", **memory(policy_kwargs=policy)).engine.name == "torch"
    assert new_model("auto", "hybrid", **memory()).engine.name == "fused"
