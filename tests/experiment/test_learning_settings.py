"""Schedules, scaling and the device in a curriculum file: read, overridden, refused in place."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, faults

from aimbot_lab.experiment.config.document import load_curriculum, parse_curriculum, with_overrides
from aimbot_lab.experiment.runs.description import describe_run
from aimbot_lab.training.settings import Cosine, Linear

KINDS = "'linear' or 'cosine'"
RATE = "train.learning_rate"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Line 15 of the file, within `train`, and the lines that follow.
WRONG = [
    ("learning_rate: 0", f"15:18: {RATE}: must be greater than 0 (got 0)"),
    ("learning_rate: fast", f"15:18: {RATE}: must be a number or a schedule (got 'fast')"),
    ("learning_rate: true", f"15:18: {RATE}: must be a number or a schedule (got true)"),
    ("learning_rate: [1, 2]", f"15:18: {RATE}: must be a number or a schedule (got a list)"),
    ("learning_rate:", f"15:17: {RATE}: must be a number or a schedule (got nothing)"),
    ("learning_rate: .nan", f"15:18: {RATE}: must be a finite number (got nan)"),
    ("learning_rate: {}", f"15:18: {RATE}.schedule: is missing"),
    (
        "learning_rate: {schedule: line, start: 1, end: 0}",
        f"15:29: {RATE}.schedule: must be {KINDS} (got 'line')",
    ),
    (
        "learning_rate: {schedule: linear, from: 1, end: 0}",
        f"15:18: {RATE}.start: is missing",
        f"15:37: {RATE}.from: unknown key (valid keys: schedule, start, end, end_fraction)",
    ),
    (
        "learning_rate: {schedule: linear, start: 1e-3}",
        f"15:18: {RATE}.end: is missing",
    ),
    (
        "learning_rate: {schedule: cosine, start: -1, end: x}",
        f"15:44: {RATE}.start: must be at least 0 (got -1)",
        f"15:53: {RATE}.end: must be a number (got 'x')",
    ),
    (
        "learning_rate: {schedule: linear, start: 0, end: 0}",
        f"15:44: {RATE}.start: must be greater than 0 where end is 0",
    ),
    (
        "learning_rate: {schedule: linear, start: 1, end: 0, end_fraction: 1.5}",
        f"15:69: {RATE}.end_fraction: must be at most 1 (got 1.5)",
    ),
    ("ent_coef: -1", "15:13: train.ent_coef: must be at least 0 (got -1)"),
    (
        "clip_range: {schedule: step, start: 1, end: 1}",
        f"15:26: train.clip_range.schedule: must be {KINDS} (got 'step')",
    ),
    ("target_kl: 0", "15:14: train.target_kl: must be greater than 0 (got 0)"),
    ("reward_scale: 0", "15:17: train.reward_scale: must be greater than 0 (got 0)"),
    (
        "reward_scale: runing",
        "15:17: train.reward_scale: must be a number or 'running' (got 'runing')",
    ),
    (
        "reward_scale: {a: 1}",
        "15:17: train.reward_scale: must be a number or 'running' (got a mapping)",
    ),
    ("device: gpu", "15:11: train.device: must be 'auto', 'cpu' or 'cuda' (got 'gpu')"),
    (
        "network: {scaling: mean}",
        "15:22: train.network.scaling: must be 'none', 'ranges' or 'running' (got 'mean')",
    ),
    ("torch_threads: 0", "15:18: train.torch_threads: must be at least 1 (got 0)"),
]


@pytest.mark.parametrize(("line", "expected"), [(line, rest) for line, *rest in WRONG], ids=str)
def test_a_wrong_value_is_told_in_its_place(line: str, expected: list[str]) -> None:
    assert faults(f"{GOOD}  {line}\n") == [f"c.yaml:{one}" for one in expected]


def test_a_schedule_for_an_algorithm_without_the_setting_does_nothing_and_is_refused() -> None:
    text = f"{GOOD}  algo: trpo\n  clip_range: {{schedule: linear, start: 1, end: 0}}\n"
    assert faults(text) == [
        "c.yaml:16:15: train.clip_range: does nothing with trpo: leave it out",
    ]


def test_all_of_it_is_read_and_survives_being_resolved() -> None:
    Path("c.yaml").write_text(
        GOOD
        + """\
  learning_rate: {schedule: linear, start: 1e-3, end: 1e-4, end_fraction: 0.2}
  ent_coef: {schedule: cosine, start: 0.03, end: 0}
  reward_scale: running
  target_kl: 0.02
  device: auto
  network: {scaling: running}
"""
    )
    loaded = load_curriculum("c.yaml")
    train = loaded.config.train
    assert train.learning_rate == Linear(start=1e-3, end=1e-4, end_fraction=0.2)
    assert train.ent_coef == Cosine(start=0.03, end=0.0)
    assert (train.reward_scale, train.device, train.network.scaling) == (
        "running",
        "auto",
        "running",
    )
    Path("r.yaml").write_text(loaded.resolved_text)
    assert load_curriculum("r.yaml").config == loaded.config
    params = describe_run(loaded, None).params
    assert params["train.learning_rate.start"] == "0.001"
    assert params["train.reward_scale"] == "running"


POLES = """
name: poles
env: {world: gymnasium, id: CartPole-v1, num_envs: 8, win: {return_above: 100}}
lessons: [{name: one}]
train: {algo: ALGO, batch_size: 64}
"""
OWN = GOOD.replace("train:\n", "train:\n  algo: ALGO\n")
# A curriculum, its algorithm and what is set: what observations and rewards are scaled by.
SCALED = [
    (POLES, "hybrid_ppo", (), "running", "running"),
    (POLES, "ppo", (), "none", 1.0),
    (POLES, "dqn", ("train.batch_size=64",), "none", 1.0),
    (POLES, "hybrid_ppo", ("train.network.scaling=none",), "none", "running"),
    (POLES, "hybrid_ppo", ("train.reward_scale=2",), "running", 2.0),
    (POLES, "hybrid_ppo", ("train.actors.number=2",), "running", 0.01),
    (OWN, "hybrid_ppo", (), "ranges", 0.01),
    (OWN, "ppo", (), "ranges", 0.01),
]


@pytest.mark.parametrize(("text", "algo", "given", "observations", "rewards"), SCALED)
def test_what_is_left_out_is_scaled_as_suits_the_world(
    text: str, algo: str, given: tuple[str, ...], observations: str, rewards: object
) -> None:
    Path("c.yaml").write_text(text.replace("ALGO", algo))
    loaded = load_curriculum("c.yaml", given)
    train = loaded.config.train
    assert (train.network.scaling, train.reward_scale) == (observations, rewards)
    Path("r.yaml").write_text(loaded.resolved_text)
    assert load_curriculum("r.yaml").config == loaded.config


def test_another_algorithm_gets_its_own_defaults_and_what_was_set_stays() -> None:
    Path("c.yaml").write_text(POLES.replace("ALGO", "hybrid_ppo"))
    left_out, given = (
        load_curriculum("c.yaml", more) for more in ((), ("train.network.scaling=running",))
    )
    for loaded, scaling in ((left_out, "none"), (given, "running")):
        kept = parse_curriculum(loaded.open_text, "kept.yaml")  # as a sweep keeps it
        assert kept.config == loaded.config
        for one in (loaded, kept):
            train = with_overrides(one, ["train.algo=ppo"]).config.train
            assert (train.network.scaling, train.reward_scale) == (scaling, 1.0)
    assert with_overrides(left_out, ["train.actors.number=2"]).config.train.reward_scale == 0.01


def test_a_table_whose_network_an_earlier_version_spelled_out_is_read() -> None:
    loaded = load_curriculum("gorge_table", ["train.network.scaling=ranges"])
    assert loaded.config.train.algo == "q_learning"


def test_the_pages_example_is_right() -> None:
    page = Path(__file__).parents[2] / "aimbot_lab" / "training" / "README.md"
    blocks = page.read_text(encoding="utf-8").split("```yaml\n")[1:]
    example = next(one.split("```")[0] for one in blocks if one.startswith("train:\n  learning"))
    Path("c.yaml").write_text(GOOD.split("train:")[0] + example)
    train = load_curriculum("c.yaml").config.train
    assert train.learning_rate == Linear(start=1e-3, end=1e-4, end_fraction=0.2)
    assert train.network.scaling == "running"


def test_overrides_set_a_schedule_a_part_of_it_and_a_number_again() -> None:
    Path("c.yaml").write_text(
        f"{GOOD}  learning_rate: {{schedule: linear, start: 1, end: 0, end_fraction: 0.1}}\n"
    )
    whole = "train.ent_coef={schedule: cosine, start: 0.1, end: 0}"
    train = load_curriculum("c.yaml", [whole, "train.learning_rate.end=0.5"]).config.train
    assert train.ent_coef == Cosine(start=0.1, end=0.0)
    assert train.learning_rate == Linear(start=1.0, end=0.5, end_fraction=0.1)
    wave = load_curriculum("c.yaml", [f"{RATE}={{schedule: cosine, start: 1, end: 0}}"])
    assert wave.config.train.learning_rate == Cosine(start=1.0, end=0.0)
    assert load_curriculum("c.yaml", [f"{RATE}=0.3"]).config.train.learning_rate == 0.3
    assert faults(GOOD, f"{RATE}={{schedule: linear, start: 1}}") == [
        f"--set {RATE}={{schedule: linear, start: 1}}: {RATE}.end: is missing",
    ]
