"""The fused engine with encoders, targets and memories, beside torch's autograd."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from guessing import (
    apart,
    autograds,
    differences,
    fused_gradient_of,
    ratios_and_values_moved,
    take_sharded_minibatches,
    whole_rollout,
)
from test_unit_targets import ENEMIES, observations, with_junk
from test_unit_targets import VARIANTS as TARGETS
from tiny_training import learn
from units_training import ENCODED, ROWS, STEPS, learned, units_plan, with_rollout

from aimbot_lab.training.fused.policy import shown_to
from aimbot_lab.training.networks.network_parts import unfused_parts
from aimbot_lab.training.networks.settings import (
    PARTS,
    MemorySettings,
    NetworkSettings,
    PictureSettings,
    UnitsSettings,
)
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training

LENGTH = 8
ALL = TARGETS["attention, hybrid, all"]


def remembering(*, layers: tuple[int, ...] = (12,), **memory: Any) -> dict[str, Any]:
    """Everything on, with units that do not fill lanes."""
    settings = MemorySettings(size=7, sequence_length=LENGTH, **memory)
    network = replace(ENCODED, scaling="running", layers=layers, memory=settings)
    return {**ALL, "network": network}


VARIANTS: dict[str, dict[str, Any]] = {
    **TARGETS,
    "scalars alone": {"network": NetworkSettings(layers=(8, 9), scalars=(9,))},
    "tanh, a lone layer of units": {
        "target": "attention",
        "masks": True,
        "network": replace(ENCODED, activation="tanh", units=UnitsSettings(layers=(9,), keys=5)),
    },
    "deep units": {
        "network": replace(ENCODED, scalars=None, units=UnitsSettings(layers=(9, 20, 17)))
    },
    "all": remembering(),
    "all, own": remembering(critic="own"),
    "all, own, no layers, burn-in": remembering(critic="own", layers=(), burn_in=LENGTH),
}


def plan_of(variant: str, **given: Any) -> Any:
    return units_plan(env={"time_limit": 0.7}, engine="fused", **{**VARIANTS[variant], **given})


def test_each_part_that_the_fused_engine_knows_is_in_a_variant_alone_or_with_others() -> None:
    networks = [given["network"] for given in VARIANTS.values() if "network" in given]
    assert {key for network in networks for key in network.parts} == {*PARTS} - {"picture"}
    seeing = TrainSettings(network=NetworkSettings(picture=PictureSettings()))
    assert unfused_parts(seeing) == ("network.picture",)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gradient_is_autograds_far_from_the_rollout(variant: str) -> None:
    """Far enough for ratios to be clipped, and for units to be told apart."""
    model: Any = learned(plan_of(variant, learning_rate=0.02, n_epochs=2)).model
    assert model.engine.name == "fused"
    assert model.rollout_buffer.episode_starts[1:].any()
    found, wanted = fused_gradient_of(model), autograds(model)
    assert all(gradient.any() for gradient in wanted.values())
    assert apart(found, wanted) < 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_before_the_first_step_ratios_are_1_and_values_those_of_the_rollout(variant: str) -> None:
    """By the kernels of an update, in single precision; in the second of two rollouts."""
    model = with_rollout(plan_of(variant, total_steps=2 * ROWS * STEPS))
    moved, squares = ratios_and_values_moved(model)
    assert moved == 0.0
    assert squares < 1e-10


@pytest.mark.parametrize("variant", ["all", "all, own"])
def test_updates_end_where_torchs_do(variant: str) -> None:
    models = []
    for engine in ("torch", "fused"):
        plan = plan_of(variant, n_epochs=2, total_steps=2 * ROWS * STEPS)
        training = Training(replace(plan, train=replace(plan.train, engine=engine)))
        model: Any = training.model
        model.engine.collect = lambda _model, loop, *, steps: loop()  # both act by torch
        if engine == "torch":
            take_sharded_minibatches(model)
        learn(training)
        models.append(model)
    assert max(differences(*models)) < 1e-6


@pytest.mark.parametrize(("variant", "value"), [("all", np.nan), ("attention, bins", 7.0)])
def test_what_stands_in_empty_slots_changes_nothing(variant: str, value: float) -> None:
    model: Any = with_rollout(plan_of(variant))
    seen, masks = observations(ROWS), np.ones((ROWS, 8 if model.policy.masked else 0), np.float32)
    found = []
    for given in (seen, with_junk(seen, value)):
        shown = th.as_tensor(np.concatenate([given, masks], axis=1))
        th.manual_seed(1)
        model.engine.actor.begin(1, ROWS)
        if variant == "all":
            model.policy.rollout.state = None
        found.append([*model.engine.actor.act(shown), th.as_tensor(shown_to(model.policy, shown))])
        rows = model.engine.actor.rollout.rows[0, :, : found[-1][3].shape[1]]
        np.testing.assert_allclose(rows, found[-1][3], atol=2e-6)
    assert all(th.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("variant", ["all", "linear, masks"])
def test_an_empty_slot_has_probability_0_and_is_never_chosen(variant: str) -> None:
    model: Any = with_rollout(plan_of(variant))
    whole_rollout(model)
    task = model.engine._gradient._full
    first, last = model.engine.shape.heads.starts[[3, 4]]
    for thread in task.threads:
        probs, masks = thread.workspace.head.probs, thread.workspace.samples.masks
        empty = masks[first:last] == 0.0
        assert empty.any()
        assert not probs[first:last][empty].any()
        assert (probs[first:last][~empty] > 0.0).all()
    chosen = model.rollout_buffer.actions.reshape(STEPS * ROWS, -1)[:, 3].astype(int)
    seen = model.rollout_buffer.observations.reshape(STEPS * ROWS, -1)[:, ENEMIES.column_of("seen")]
    taken = np.flatnonzero(chosen)
    assert (seen[taken, chosen[taken] - 1] == 1.0).all()


@pytest.mark.parametrize("variant", ["all, own, no layers, burn-in", "attention, bins"])
def test_the_number_of_threads_changes_nothing(variant: str) -> None:
    def state_after(threads: int) -> str:
        plan = plan_of(variant, torch_threads=threads, total_steps=2 * 40 * STEPS, batch_size=640)
        training = Training(replace(plan, env=replace(plan.env, num_envs=40)))
        return learn(training).state_sha256

    before = th.get_num_threads()
    try:
        states = {state_after(threads) for threads in (1, 2)}
    finally:
        th.set_num_threads(before)
    assert len(states) == 1
