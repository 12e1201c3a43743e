"""An ML-Agents trainer file becomes a curriculum; what has no counterpart is listed."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from test_environment_parameters import COURSE

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.conversion.ml_agents import convert
from aimbot_lab.experiment.runs.plan import Forecaster, plan_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.settings import Linear

BEHAVIORS = """\
behaviors:
  Walker:
    trainer_type: ppo
    hyperparameters:
      batch_size: 128
      buffer_size: 2048
      learning_rate: 0.0002
      beta: 0.004
      epsilon: 0.15
      lambd: 0.94
      num_epoch: 5
      learning_rate_schedule: constant
    network_settings: {normalize: false, hidden_units: 256, num_layers: 3}
    reward_signals:
      extrinsic: {gamma: 0.98, strength: 0.5}
      curiosity: {strength: 0.02}
    max_steps: 2.0e6
    time_horizon: 128
    ghost: {}
"""
REST = "env_settings: {seed: 12, num_envs: 8}\ndebug: true\n"
TRAINER = BEHAVIORS + COURSE + REST


pytestmark = pytest.mark.usefixtures("here")


def converted(text: str, **options: Any) -> tuple[str, tuple[str, ...]]:
    Path("t.yaml").write_text(text, encoding="utf-8")
    return convert("t.yaml", **options)


def notes_on(text: str, **options: Any) -> tuple[str, ...]:
    """What was lost or changed on the way."""
    _, notes = converted(text, **options)
    return notes


def curriculum(text: str, **options: Any) -> LoadedCurriculum:
    """What `text` is converted to, read and planned as any curriculum."""
    written, _ = converted(text, **options)
    Path("c.yaml").write_text(written, encoding="utf-8")
    loaded = load_curriculum("c.yaml")
    plan_curriculum(loaded, Forecaster(most_episodes=20))
    return loaded


def settings_of(config: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    return {key: attrgetter(key)(config) for key in wanted}


def test_hyper_parameters_get_our_names_and_what_is_left_out_ml_agents_defaults() -> None:
    wanted = {
        **{"name": "Walker", "seed": 12, "env.num_envs": 16, "train.total_steps": 2_000_000},
        **{"train.gamma": 0.98, "train.reward_scale": 0.5, "train.n_epochs": 5},
        **{"train.learning_rate": 0.0002, "train.gae_lambda": 0.94, "train.clip_range": 0.15},
        **{"train.ent_coef": 0.004, "train.n_steps": 128, "train.batch_size": 128},
        "train.network.layers": (256, 256, 256),
    }
    assert settings_of(curriculum(TRAINER).config, wanted) == wanted
    usual = {
        **{"env.num_envs": 160, "train.total_steps": 500_000, "train.n_epochs": 3},
        **{"train.learning_rate": Linear(start=3e-4, end=1e-10), "train.reward_scale": 1.0},
        **{"train.n_steps": 64, "train.batch_size": 1024, "train.network.layers": (128, 128)},
        "train.network.scaling": "ranges",
    }
    found = curriculum("behaviors: {B: {trainer_type: ppo}}\n").config
    assert settings_of(found, usual) == usual


# default_settings, hyperparameters of the behavior, and which of learning_rate, clip_range and
# ent_coef fall: as ML-Agents 1.1.0 reads them (RunOptions.from_dict).
SCHEDULES = [
    ("null", "{learning_rate_schedule: linear}", ("learning_rate", "clip_range", "ent_coef")),
    ("null", "{learning_rate_schedule: constant, beta_schedule: linear}", ("ent_coef",)),
    ("null", "{beta_schedule: constant}", ("learning_rate", "clip_range")),
    ("{}", "{learning_rate_schedule: constant}", ("clip_range", "ent_coef")),
    (
        "{hyperparameters: {learning_rate_schedule: constant}}",
        "{learning_rate_schedule: linear}",
        ("learning_rate",),
    ),
]


@pytest.mark.parametrize(("defaults", "own", "falling"), SCHEDULES)
def test_clip_range_and_entropy_bonus_follow_the_schedule_of_the_learning_rate(
    defaults: str, own: str, falling: tuple[str, ...]
) -> None:
    kind = "trainer_type: poca"
    given = defaults.replace("{hyper", f"{{{kind}, hyper")
    text = f"default_settings: {given}\nbehaviors: {{B: {{{kind}, hyperparameters: {own}}}}}\n"
    train, names = curriculum(text).config.train, ("learning_rate", "clip_range", "ent_coef")
    assert falling == tuple(name for name in names if isinstance(getattr(train, name), Linear))


def test_values_for_all_behaviors_give_way_to_those_of_one() -> None:
    text = (
        "default_settings: {max_steps: 3000, hyperparameters: {learning_rate: 0.1, num_epoch: 9}}\n"
        "behaviors:\n  A: {max_steps: 1}\n  B: {hyperparameters: {learning_rate: 0.2}}\n"
    )
    train = curriculum(text, behavior="B").config.train
    assert (train.total_steps, train.n_epochs) == (3000, 9)
    assert train.learning_rate == Linear(start=0.2, end=1e-10)
    assert notes_on(text, behavior="B")[1:] == (
        "t.yaml:3:3: behaviors.A: is left out: a curriculum trains one behavior, which --behavior "
        "chooses",
    )


def test_lessons_are_those_of_the_parameter_and_play_what_is_asked_for() -> None:
    lessons = curriculum(TRAINER, targets=["goto", "free"]).config.lessons
    assert [lesson.name for lesson in lessons] == ["Lesson0", "Lesson1", "Lesson1 (2)"]
    assert [dict(lesson.targets) for lesson in lessons] == [{"goto": 1, "free": 1}] * 3
    assert [one.completion_criteria.rule for one in lessons[:2]] == ["ml-agents", "ml-agents"]


def test_losses_are_listed_in_the_order_of_the_file_then_what_does_not_matter() -> None:
    first, *notes, last = notes_on(TRAINER)
    assert first == "t.yaml: names no targets: goto is used; --target chooses others"
    places = ("reward_signals.curiosity: ", "ghost: is not a key of ML-Agents 1.1.0", "require_res")
    assert [part in note for part, note in zip(places, notes, strict=True)] == [True] * 3
    assert notes[1].startswith("t.yaml:19:5: behaviors.Walker.ghost: ")
    assert last == "t.yaml: not needed here, ignored: env_settings.num_envs, debug"


SELF_PLAY = (
    "behaviors:\n  Duelist:\n    hyperparameters: {batch_size: 120, buffer_size: 1920}\n"
    "    time_horizon: 64\n    self_play: {window: 5, team_change: 90000}\n"
)


def test_self_play_becomes_a_curriculum_in_the_world_that_has_it() -> None:
    loaded = curriculum(SELF_PLAY).config
    wanted = {
        **{"env.world": "duel", "self_play.save_steps": 20_000, "self_play.swap_steps": 2_000},
        **{"self_play.window": 5, "self_play.play_against_latest_model_ratio": 0.5},
        **{"self_play.initial_elo": 1200.0, "train.batch_size": 120},
    }
    assert settings_of(loaded, wanted) == wanted
    assert dict(loaded.lessons[0].targets) == {"self": 1}
    rows = loaded.env.num_envs + round(0.5 * loaded.env.num_envs)
    assert rows * loaded.train.n_steps == 1920
    assert notes_on(SELF_PLAY) == (
        "t.yaml: names no targets: self in world duel is used, because of its self-play",
        "t.yaml: not needed here, ignored: self_play.team_change",
    )


@pytest.mark.parametrize(
    ("trainer", "sizes", "length", "ratio"),
    [
        ("ppo", "{batch_size: 2, buffer_size: 997}", 1, 1),
        ("poca", f"{{buffer_size: {2**24}}}", 1000, 0.35),
        ("sac", "{buffer_size: 50000}", 48, 0.35),
    ],
)
def test_no_choice_of_the_converter_is_refused(
    trainer: str, sizes: str, length: int, ratio: float
) -> None:
    written, _ = converted(
        f"behaviors:\n  B:\n    trainer_type: {trainer}\n    hyperparameters: {sizes}\n"
        f"    network_settings: {{hidden_units: 8, memory: {{sequence_length: {length}}}}}\n"
        f"    self_play: {{play_against_latest_model_ratio: {ratio}}}\n"
    )
    assert written


@pytest.mark.parametrize(
    ("buffer", "batch", "horizon", "shape"),
    [
        (10240, 1024, 64, (160, 64, 1024)),
        (1000, 300, 64, (20, 50, 250)),
        (997, 10, 64, (1, 997, 997)),  # a prime number
    ],
)
def test_a_rollout_fills_the_buffer_and_batches_divide_it(
    buffer: int, batch: int, horizon: int, shape: tuple[int, int, int]
) -> None:
    settings = f"{{batch_size: {batch}, buffer_size: {buffer}}}"
    text = f"behaviors: {{B: {{time_horizon: {horizon}, hyperparameters: {settings}}}}}\n"
    config = curriculum(text).config
    assert (config.env.num_envs, config.train.n_steps, config.train.batch_size) == shape
    told = any("it must divide buffer_size" in note for note in notes_on(text))
    assert told == (shape[2] != batch)


REMEMBERING = """\
behaviors:
  B:
    time_horizon: 64
    hyperparameters: {batch_size: 128, buffer_size: 2048}
    network_settings: {hidden_units: 32, num_layers: 1, memory: {memory_size: 96}}
"""


@pytest.mark.parametrize(
    ("length", "batch", "taken"),
    [(64, 128, (64, 128)), (30, 128, (32, 128)), (64, 32, (64, 64)), (500, 100, (64, 128))],
)
def test_a_memory_has_half_the_size_and_sequences_that_divide_steps_and_minibatches(
    length: int, batch: int, taken: tuple[int, int]
) -> None:
    text = REMEMBERING.replace("96", f"96, sequence_length: {length}")
    text = text.replace("batch_size: 128", f"batch_size: {batch}")
    train = curriculum(text).config.train
    assert (train.algo, train.n_steps, train.network.layers) == ("hybrid_ppo", 64, (32,))
    assert (train.network.memory.sequence_length, train.batch_size) == taken
    assert train.network.memory.size == 48  # which holds both its parts
    notes = notes_on(text)
    assert any("it must divide 64 steps" in note for note in notes) == (length != taken[0])
    assert len(notes) == 1 or (length, batch) != taken


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("learning_rate: 0.0002", "learning_rate: -1", "must be greater than 0 (got -1)"),
        ("_schedule: constant", "_schedule: round", "must be linear or constant (got 'round')"),
        ("buffer_size: 2048", "buffer_size: x", "must be a whole number from 4 to 16777216"),
        ("hidden_units: 256", "hidden_units: 0", "must be a whole number from 1 to 4096 (got 0)"),
        ("value: 9.0", "value: -9", "goto_win_radius.curriculum.0.value: must lie between"),
        ("Walker", '"Walk${x}"', "t.yaml:2:8: a name holds ${, which refers to"),
        (BEHAVIORS, "lessons: []\n", "is a curriculum of aimbot-lab, which needs no conversion"),
        (BEHAVIORS, "behaviors: 5\n", "t.yaml:1:12: behaviors: must be a mapping (got 5)"),
    ],
)
def test_what_cannot_be_converted_is_told_at_its_place(old: str, new: str, said: str) -> None:
    assert old in TRAINER
    with pytest.raises(ConfigurationError) as caught:
        converted(TRAINER.replace(old, new))
    (line,) = caught.value.faults
    assert said in line
    row = TRAINER[: TRAINER.index(old)].count("\n") + 1
    assert line.startswith(f"t.yaml:{row}:")


def test_a_behavior_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match=r"--behavior Walkr: .*nearest valid key: Walker"):
        converted(TRAINER, behavior="Walkr")


def test_the_device_of_torch_is_that_of_the_training() -> None:
    for given, taken in ("cuda:1", "cuda"), ("mps", "cpu"):
        text = f"behaviors: {{B: {{}}}}\ntorch_settings: {{device: {given}}}\n"
        assert curriculum(text).config.train.device == taken
        (told,) = notes_on(text)[1:]
        note = f"device: {taken} replaces {given}: networks are on the CPU or on the "
        assert f"t.yaml:2:26: torch_settings.{note}" in told


def course(*criteria: str) -> str:
    """A file with the behaviors A and B, whose lessons end by these criteria."""
    head = "behaviors: {A: {max_steps: 9}, B: {}}\nenvironment_parameters:\n  gun_range:\n"
    lessons = [
        f"      - {{name: l{n}, value: {n}, completion_criteria: {one}}}\n"
        for n, one in enumerate(criteria, 1)
    ]
    return f"{head}    curriculum:\n{''.join(lessons)}      - {{name: last, value: 9}}\n"


def test_a_required_reset_is_told_once_with_the_lessons_that_ask_for_it() -> None:
    asked = "{behavior: A, threshold: 1, require_reset: true}"
    told = [one for one in notes_on(course(asked)) if "require_reset" in one]
    assert told == [
        "t.yaml:5:94: environment_parameters.gun_range.curriculum.0.completion_criteria."
        "require_reset: has no counterpart: episodes that run go on to their ends, and the next "
        "lesson begins with each row's next one"
    ]
    unasked = asked.replace("true", "false")
    told = [one for one in notes_on(course(unasked, asked, asked)) if "_reset" in one]
    assert len(told) == 1
    assert told[0].startswith("t.yaml:6:94: ")
    assert told[0].endswith("each row's next one (so in 2 lessons)")
    assert not any("require_reset" in one for one in notes_on(course(unasked)))


def test_a_criterion_of_another_behavior_is_told() -> None:
    text = course("{behavior: B, measure: progress, threshold: 0.5}", "{behavior: A}")
    (told,) = [one for one in notes_on(text) if "completion_criteria" in one]
    assert told == (
        "t.yaml:5:62: environment_parameters.gun_range.curriculum.0.completion_criteria.behavior: "
        "A replaces B: a curriculum trains one"
    )
    (told,) = [one for one in notes_on(text, behavior="B") if "completion_criteria" in one]
    assert "curriculum.1.completion_criteria.behavior: B replaces A" in told
