"""Options, schedules, scaling, costs and self-play in a file, refused in place."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, faults

from aimbot_lab.cli.commands.run import plan_text
from aimbot_lab.experiment.config.document import load_curriculum, parse_curriculum, with_overrides
from aimbot_lab.experiment.runs.plan import plan_curriculum
from aimbot_lab.experiment.runs.result import describe_run
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.checks import update_cost
from aimbot_lab.training.settings import Cosine, Linear, TrainSettings
from aimbot_lab.worlds.registry import seats_in

pytestmark = pytest.mark.usefixtures("here")


def test_a_batch_from_a_replay_buffer_need_not_divide_the_rollout() -> None:
    text = GOOD.replace("1024", "1000")
    assert "batch_size" in faults(text)[0]
    assert read(text + "  algo: dqn\n").batch_size == 1000


FILE = """\
name: match
env: {world: WORLD, num_envs: 8}
lessons:
  - name: one
    targets: TARGETS
train: {algo: ALGO, n_steps: 16, batch_size: BATCH}
"""
USUAL = {"WORLD": "duel", "TARGETS": "{self: 1}", "ALGO": "hybrid_ppo", "BATCH": "96"}


def parsed(section: str = "self_play: {save_steps: 1000}\n", **changes: str):
    text = FILE
    for name, value in {**USUAL, **changes}.items():
        text = text.replace(name, value)
    return parse_curriculum(text + section, "file.yaml")


def test_the_learner_plays_home_and_mirrored_matches_are_rows_of_a_rollout() -> None:
    config = parsed().config
    assert config.env.learner == "home"
    assert seats_in(config.learned_env) == 12
    assert set(config.learned_env.__class__.__mro__) >= {type(config.env)}
    all_mirrored = "self_play: {play_against_latest_model_ratio: 1}\n"
    assert seats_in(parsed(all_mirrored, BATCH="128").config.learned_env) == 16


@pytest.mark.parametrize(
    ("section", "changes", "fault"),
    [
        (
            "",
            {"BATCH": "64"},
            "lessons.0.targets.self: a past self of the learner: needs the section self_play",
        ),
        (
            "",
            {"TARGETS": "{greedy: 1}", "BATCH": "64"},
            "lessons.0.targets.greedy: unknown target without the section self_play (valid keys: ",
        ),
        (
            "self_play: {}\n",
            {"WORLD": "arena", "TARGETS": "{goto: 1}", "BATCH": "128"},
            "self_play: needs env.world: duel (got arena)",
        ),
        (
            "self_play: {play_against_latest_model_ratio: 1}\n",
            {"TARGETS": "{self: 1, greedy: 1, aimbot: 1}", "BATCH": "128"},
            "self_play.play_against_latest_model_ratio: leaves no match for greedy, aimbot of "
            "lessons.0: all 8 are mirrored",
        ),
        (
            "self_play: {}\n",
            {"BATCH": "100"},
            "train.batch_size: must divide (env.num_envs + 4 mirrored) * train.n_steps = 192 "
            "(got 100; nearest that does: 96)",
        ),
        (
            "",
            {
                "TARGETS": "{duel: 1}\n    completion_criteria: "
                "{rule: ml-agents, measure: elo, threshold: 1300}",
                "BATCH": "64",
            },
            "lessons.0.completion_criteria.measure: elo under rule: ml-agents "
            "needs the section self_play",
        ),
        ("self_play: {window: some}\n", {}, "window: must be a whole number or 'all' (got 'some')"),
    ],
)
def test_what_self_play_can_not_do_is_refused_in_one_line(
    section: str, changes: dict[str, str], fault: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parsed(section, **changes)
    assert len(refused.value.faults) == 1
    assert fault in refused.value.faults[0]


RATE = "train.learning_rate"


# What stands from line 15 of the file on, within `train`, and the lines that follow.
WRONG = [
    ("options: {gamma: 0.9}", "15:20: train.options.gamma: is a setting of its own: train.gamma"),
    (
        "algo: trpo\n  clip_range: 0.1",
        "16:15: train.clip_range: has no effect with trpo: leave it out",
    ),
    ("masks: true", "15:10: train.masks: has no effect with ppo: leave it out"),
    ("algo: hybrid_ppo\n  dual_clip: 1", "16:14: train.dual_clip: must be greater than 1 (got 1)"),
    ("learning_rate: 0", f"15:18: {RATE}: must be greater than 0 (got 0)"),
    (
        "learning_rate: fast",
        f"15:18: {RATE}: must be a number or a schedule such as {{schedule: linear, start: 0.001, "
        "end: 0} (got 'fast')",
    ),
    (
        "learning_rate: {schedule: line, start: 1, end: 0}",
        f"15:29: {RATE}.schedule: must be 'linear' or 'cosine' (got 'line')",
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
        "reward_scale: runing",
        "15:17: train.reward_scale: must be a number or 'running' (got 'runing')",
    ),
    ("device: gpu", "15:11: train.device: must be 'auto', 'cpu' or 'cuda' (got 'gpu')"),
]


@pytest.mark.parametrize(("line", "expected"), [(line, rest) for line, *rest in WRONG], ids=str)
def test_a_wrong_value_is_told_in_its_place(line: str, expected: list[str]) -> None:
    assert faults(f"{GOOD}  {line}\n") == [f"c.yaml:{one}" for one in expected]


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
    (POLES, "hybrid_ppo", ("train.network.scaling=none",), "none", "running"),
    (POLES, "hybrid_ppo", ("train.actors.number=2",), "running", 0.01),
    (OWN, "hybrid_ppo", (), "ranges", 0.01),
]


def read(text: str, *overrides: str) -> TrainSettings:
    """The settings of training in `text`, which survive being resolved."""
    Path("c.yaml").write_text(text, encoding="utf-8")
    loaded = load_curriculum("c.yaml", overrides)
    Path("r.yaml").write_text(loaded.resolved_text, encoding="utf-8")
    assert load_curriculum("r.yaml").config == loaded.config
    return loaded.config.train


def test_schedules_and_scales_are_read() -> None:
    train = read(
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
    assert train.learning_rate == Linear(start=1e-3, end=1e-4, end_fraction=0.2)
    assert train.ent_coef == Cosine(start=0.03, end=0.0)
    found = train.reward_scale, train.device, train.network.scaling
    assert found == ("running", "auto", "running")
    params = describe_run(load_curriculum("c.yaml"), None).params
    assert params["train.learning_rate.start"] == "0.001"
    assert params["train.reward_scale"] == "running"


@pytest.mark.parametrize(("text", "algo", "given", "observations", "rewards"), SCALED)
def test_what_is_left_out_is_scaled_as_suits_the_world(
    text: str, algo: str, given: tuple[str, ...], observations: str, rewards: object
) -> None:
    train = read(text.replace("ALGO", algo), *given)
    assert (train.network.scaling, train.reward_scale) == (observations, rewards)


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


def test_overrides_set_a_schedule_a_part_of_it_and_a_number_again() -> None:
    text = f"{GOOD}  learning_rate: {{schedule: linear, start: 1, end: 0, end_fraction: 0.1}}\n"
    train = read(
        text, "train.ent_coef={schedule: cosine, start: 0.1, end: 0}", "train.learning_rate.end=0.5"
    )
    assert train.ent_coef == Cosine(start=0.1, end=0.0)
    assert train.learning_rate == Linear(start=1.0, end=0.5, end_fraction=0.1)
    wave = read(text, f"{RATE}={{schedule: cosine, start: 1, end: 0}}")
    assert wave.learning_rate == Cosine(start=1.0, end=0.0)
    assert read(text, f"{RATE}=0.3").learning_rate == 0.3
    assert faults(GOOD, f"{RATE}={{schedule: linear, start: 1}}") == [
        f"--set {RATE}={{schedule: linear, start: 1}}: {RATE}.end: is missing"
    ]


def test_a_table_whose_network_an_earlier_version_spelled_out_is_read() -> None:
    loaded = load_curriculum("gorge_table", ["train.network.scaling=ranges"])
    assert loaded.config.train.algo == "q_learning"


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("train.n_epochs=1e9", "train.n_epochs: must be at most 10000 (got 1000000000"),
        (
            "train.network.layers=[4096,4096,4096,4096,4096,4096,4096,4096]",
            "train.network.layers: must have at most 33,554,432 weights between them (got 117,",
        ),
        (
            "train={n_epochs: 10_000, batch_size: 1024, network: {layers: [2048, 2048]}}",
            "train.n_epochs: is too much work: an update would take 2.1e+15 multiply-adds, must be",
        ),
        (
            "train.reward_scale=1e30",
            "train.reward_scale: times the largest of env.rewards, 999, must be at most 1e+12, as",
        ),
        ("env.time_limit=1e-300", "env.time_limit: must be at least 0.0001 (got 1e-300)"),
    ],
)
def test_what_no_update_could_compute_is_refused(override: str, what: str) -> None:
    (line,) = faults(GOOD, override)
    assert line.startswith(f"--set {override}: {what}")


def test_the_plan_says_what_an_update_costs() -> None:
    Path("c.yaml").write_text(GOOD, encoding="utf-8")
    cheap = load_curriculum("c.yaml")
    dear = load_curriculum("c.yaml", ["train.network.layers=[2048,2048]", "train.n_epochs=100"])
    costs = [update_cost(one.config.train, one.config.learned_env) for one in (cheap, dear)]
    assert [cost.costly for cost in costs] == [False, True]
    text = " ".join("\n".join(plan_text(plan_curriculum(dear), 80)).split())
    assert "an update takes some 2.1e+13 multiply-adds, about" in text
    seen = load_curriculum("c.yaml", ["env.observation.camera={width: 20, height: 10}"])
    drawn = [str(plan_curriculum(one).cost) for one in (cheap, seen)]
    assert ["convolutions" in one for one in drawn] == [False, True]
    counted = plan_curriculum(cheap).as_json()["update_multiply_adds"]
    assert counted == costs[0].multiply_adds
