"""What `check` says of encoders and targets that do not fit, and what a plan says of a network."""

from dataclasses import fields
from pathlib import Path

import pytest
from broken_curriculum import GOOD, faults

from aimbot_lab.cli.commands.run import plan_text
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.plan import CurriculumPlan, Forecaster, plan_curriculum
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.checks import UpdateCost, update_cost
from aimbot_lab.training.networks.network_parts import widest_part
from aimbot_lab.training.networks.settings import PARTS, NetworkSettings, PictureSettings
from aimbot_lab.worlds.registry import spec_of

OURS = GOOD.replace("  batch_size: 1024\n", "  batch_size: 1024\n  algo: hybrid_ppo\n")
UNITS = "env.observation.units=true"
CAMERA = "env.observation.camera={width: 20, height: 10}"
ENCODED = "train.network.units={}"
ATTENTION = "train.target=attention"
SHOWN = "set env.observation.units: true"


pytestmark = pytest.mark.usefixtures("here")


def planned(*overrides: str) -> CurriculumPlan:
    Path("c.yaml").write_text(OURS, encoding="utf-8")
    return plan_curriculum(load_curriculum("c.yaml", overrides), Forecaster(most_episodes=20))


BROKEN = [
    (("train.target=linear",), "train.target", f"world arena shows no unit to aim at: {SHOWN}"),
    ((UNITS, ATTENTION), "train.target", "attention needs the keys of train.network.units"),
    (
        (UNITS, ATTENTION, "train.network.units.kinds=[rays]"),
        "train.network.units.kinds",
        "must name enemies, which train.target chooses from",
    ),
    (
        (UNITS, "train.network.units.kinds=[rays, boxes]"),
        "train.network.units.kinds.1",
        "boxes: no such units are shown (there are rays, enemies)",
    ),
    (
        ("train.algo=ppo", ENCODED),
        "train.network.units",
        "has no effect with ppo: leave it out, or use algo: hybrid_ppo",
    ),
    (
        ("train.network.memory={sequence_length: 48}",),
        "train.network.memory.sequence_length",
        "must divide train.n_steps = 128 (got 48; nearest that does: 32)",
    ),
    (
        ("train.network.memory={}", "train.batch_size=8", "train.n_steps=16"),
        "train.batch_size",
        "a multiple of train.network.memory.sequence_length = 16 (got 8; nearest that is: 16)",
    ),
    (
        ("train.network.memory={burn_in: 20}",),
        "train.network.memory.burn_in",
        "a multiple of sequence_length = 16 below n_steps = 128 (got 20; nearest that is: 16)",
    ),
    (
        ("train.algo=recurrent_ppo", "train.network.memory={}"),
        "train.network.memory",
        "has no effect with recurrent_ppo: leave it out, or set train.options.lstm_hidden_size",
    ),
    (
        ("train.engine=fused", "train.samples.keep=2"),
        "train.engine",
        "fused does not know train.samples.keep: use auto or torch",
    ),
    (
        ("train.samples.keep=64", "env.num_envs=4096", "train.batch_size=4096"),
        "train.samples.keep",
        "must be at most 32 with rollouts of env.num_envs * train.n_steps = 524288 steps (got 64)",
    ),
    (
        ("train.network.picture={}",),
        "train.network.picture",
        "world arena shows no picture: set env.observation.camera",
    ),
    (
        (CAMERA, "train.network.picture.encoder=simple"),
        "train.network.picture.encoder",
        "simple needs a larger picture (it has 20 x 10 pixels)",
    ),
    (
        (CAMERA, "train.network.picture.alone=true", "train.network.scalars=[8]"),
        "train.network.scalars",
        "encodes what network.picture.alone leaves out",
    ),
]


@pytest.mark.parametrize(("overrides", "key", "what"), BROKEN)
def test_a_part_that_does_not_fit_is_refused_at_its_key(
    overrides: tuple[str, ...], key: str, what: str
) -> None:
    lines = faults(OURS, *overrides)
    assert len(lines) == 1, lines
    assert key in lines[0]
    assert what in lines[0]


def test_all_that_is_wrong_with_a_network_is_said_at_once() -> None:
    broken = ("train.engine=fused", "train.samples.keep=2", "train.network.units.kinds=[boxes]")
    lines = faults(OURS, ATTENTION, *broken)
    assert len(lines) == 3
    assert sum("train.engine" in line for line in lines) == 1


def test_keys_without_attention_and_chunks_of_one_step_are_said_and_not_refused() -> None:
    keys = "keys has no effect without train.target: attention"
    assert any(keys in one for one in planned("train.network.units.keys=8").warnings)
    assert not any("keys" in one for one in planned(ENCODED).warnings)
    (warning,) = planned("train.network.memory={sequence_length: 1}").warnings[-1:]
    assert "sequence_length 1: the agent remembers and can't learn to" in warning


VARIANTS = {
    "plain": (),
    "memory": ("train.network.memory={size: 6}", "train.network.layers=[]"),
    "encoders": (UNITS, "train.network.scalars=[9, 7]", ENCODED, "train.network.layers=[]"),
    "attention": (UNITS, ATTENTION, "train.network.units.keys=6", "train.aim=hybrid"),
    "linear": (UNITS, "train.target=linear", "train.masks=true"),
    "picture": (CAMERA, "train.network.picture={size: 7}", "env.stacked_vectors=2"),
    "picture alone": (
        "env.observation.camera={width: 24, height: 20, grey: false}",
        "train.network.picture={encoder: simple, alone: true}",
        "train.network.layers=[]",
    ),
}


def test_each_part_of_a_network_is_declared_and_in_a_variant() -> None:
    plain = {"kind", "layers", "activation", "features", "scaling"}
    assert {field.name for field in fields(NetworkSettings)} == plain | {*PARTS}
    Path("c.yaml").write_text(OURS, encoding="utf-8")
    trained = [load_curriculum("c.yaml", words).config.train for words in VARIANTS.values()]
    assert {part for one in trained for part in one.network.parts} == {*PARTS}
    assert widest_part(NetworkSettings(layers=(), picture=PictureSettings())) == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_plan_counts_the_weights_that_the_network_has(variant: str) -> None:
    plan = planned(*VARIANTS[variant])
    config = plan.curriculum.config
    policy = new_policy(config.train, spec_of(config.env))
    there = sum(weight.numel() for weight in policy.parameters())
    assert sum(part.weights for part in plan.network) == there


def test_an_update_of_encoded_units_costs_as_much_as_each_of_them() -> None:
    encoded = ("train.network.units={layers: [32, 16]}", "train.network.layers=[8]")
    plain, units = (cost_of(*more, *encoded[1:]) for more in ((), encoded[:1]))
    summary = {part.name: part for part in planned(*encoded).network}
    rays = summary["rays (19 units)"]
    assert units.multiply_adds > 18 * rays.weights / summary["scalars"].inputs
    samples = 3 * 128 * 64 * 4  # passes, steps, rows, epochs
    assert units.multiply_adds == pytest.approx(
        samples * sum(part.weights * part.times for part in summary.values()), rel=0.01
    )
    assert units.multiply_adds > 3 * plain.multiply_adds


def test_rollouts_that_are_kept_cost_as_much_as_the_last_and_are_told() -> None:
    kept, plain = (planned(*more) for more in (("train.samples.keep=4",), ()))
    assert kept.cost.multiply_adds == 4 * plain.cost.multiply_adds
    assert kept.as_json()["epoch_samples"] == 4 * plain.as_json()["epoch_samples"]
    assert kept.engine == "torch (the fused engine does not know samples.keep)"
    said = f"samples: an epoch passes over the last 4 rollouts, {kept.epoch_samples:,} steps"
    assert said in "\n".join(plan_text(kept, 100))
    assert not any(text.startswith("samples: ") for text in plan_text(plain, 100))


def cost_of(*overrides: str) -> UpdateCost:
    config = planned(*overrides).curriculum.config
    return update_cost(config.train, config.env)


def test_a_plan_says_which_engine_computes_and_why_not_the_faster_one() -> None:
    own = ("train.network.memory={critic: own, burn_in: 16}", "train.network.layers=[]")
    for given, engine in (
        ((), "fused"),
        (("train.engine=torch",), "torch"),
        (("train.network={memory: {}, scalars: [8]}",), "fused"),
        (own, "fused"),
        (("train.network.units={layers: [2048]}",), "fused where it suits, else torch"),
    ):
        assert planned(*given).engine == engine
    attention = planned(*VARIANTS["attention"])
    assert attention.engine == "fused"
    assert [part["name"] for part in attention.as_json()["network"]] == [
        *("scalars", "rays (19 units)", "enemies (6 units)", "actor", "critic"),
        *("action", "target attention", "value"),
    ]
    assert "network" not in planned("train.algo=ppo").as_json()
