"""An ML-Agents trainer file becomes a curriculum; what has no counterpart is listed."""

from pathlib import Path
from typing import Any

import pytest
from test_environment_parameters import COURSE

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.conversion.ml_agents import Conversion, convert
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


def converted(text: str, **options: Any) -> Conversion:
    Path("t.yaml").write_text(text, encoding="utf-8")
    return convert("t.yaml", **options)


def curriculum(text: str, **options: Any) -> LoadedCurriculum:
    """What `text` is converted to, read and planned as any curriculum."""
    Path("c.yaml").write_text(converted(text, **options).text, encoding="utf-8")
    loaded = load_curriculum("c.yaml")
    plan_curriculum(loaded, Forecaster(most_episodes=20))
    return loaded


def test_hyper_parameters_get_our_names() -> None:
    config = curriculum(TRAINER).config
    train = config.train
    wanted = {
        "total_steps": 2_000_000,
        "gamma": 0.98,
        "reward_scale": 0.5,
        "n_epochs": 5,
        "learning_rate": 0.0002,
        "gae_lambda": 0.94,
        "clip_range": 0.15,
        "ent_coef": 0.004,
        "n_steps": 128,
        "batch_size": 128,
    }
    assert {key: getattr(train, key) for key in wanted} == wanted
    assert train.network.layers == (256, 256, 256)
    assert (config.name, config.seed, config.env.num_envs) == ("Walker", 12, 16)


def test_what_the_file_leaves_out_has_ml_agents_defaults() -> None:
    config = curriculum("behaviors: {B: {trainer_type: ppo}}\n").config
    train = config.train
    assert (train.total_steps, train.n_epochs, train.network.scaling) == (500_000, 3, "ranges")
    assert train.learning_rate == Linear(start=3e-4, end=1e-10)
    assert (train.reward_scale, train.batch_size) == (1.0, 1024)
    assert (config.env.num_envs, train.n_steps) == (160, 64)
    assert train.network.layers == (128, 128)


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
    train = curriculum(text).config.train
    assert falling == tuple(
        name
        for name in ("learning_rate", "clip_range", "ent_coef")
        if isinstance(getattr(train, name), Linear)
    )


def test_values_for_all_behaviors_give_way_to_those_of_one() -> None:
    text = (
        "default_settings: {max_steps: 3000, hyperparameters: {learning_rate: 0.1, num_epoch: 9}}\n"
        "behaviors:\n  A: {max_steps: 1}\n  B: {hyperparameters: {learning_rate: 0.2}}\n"
    )
    train = curriculum(text, behavior="B").config.train
    assert (train.total_steps, train.n_epochs) == (3000, 9)
    assert train.learning_rate == Linear(start=0.2, end=1e-10)
    assert converted(text, behavior="B").notes[1:] == (
        "t.yaml:3:3: behaviors.A: is left out: a curriculum trains one behavior, which --behavior "
        "chooses",
    )


def test_lessons_are_those_of_the_parameter_and_play_what_is_asked_for() -> None:
    lessons = curriculum(TRAINER, targets=["goto", "free"]).config.lessons
    assert [lesson.name for lesson in lessons] == ["Lesson0", "Lesson1", "Lesson1 (2)"]
    assert [dict(lesson.targets) for lesson in lessons] == [{"goto": 1, "free": 1}] * 3
    rules = [one.completion_criteria.rule for one in lessons if one.completion_criteria]
    assert rules == ["ml-agents", "ml-agents"]


def test_losses_are_listed_in_the_order_of_the_file_then_changes_then_what_does_not_matter() -> (
    None
):
    first, *notes, last = converted(TRAINER).notes
    assert first == "t.yaml: names no targets: goto is used; --target chooses others"
    assert [note.split(": ")[1] for note in notes] == [
        "behaviors.Walker.reward_signals.curiosity",
        "behaviors.Walker.ghost",
        "environment_parameters.goto_win_radius.curriculum.1.completion_criteria.require_reset",
    ]
    assert notes[1].startswith(
        "t.yaml:19:5: behaviors.Walker.ghost: is not a key of ML-Agents 1.1.0"
    )
    assert last == "t.yaml: not needed here, ignored: env_settings.num_envs, debug"


SELF_PLAY = (
    "behaviors:\n  Duelist:\n    hyperparameters: {batch_size: 120, buffer_size: 1920}\n"
    "    time_horizon: 64\n    self_play: {window: 5, team_change: 90000}\n"
)


def test_self_play_becomes_a_curriculum_in_the_world_that_has_it() -> None:
    loaded = curriculum(SELF_PLAY).config
    assert loaded.env.world == "duel"
    assert dict(loaded.lessons[0].targets) == {"self": 1}
    given = loaded.self_play
    assert given is not None
    assert (given.save_steps, given.swap_steps, given.window) == (20_000, 2_000, 5)
    assert (given.play_against_latest_model_ratio, given.initial_elo) == (0.5, 1200.0)
    rows = loaded.env.num_envs + round(0.5 * loaded.env.num_envs)
    assert rows * loaded.train.n_steps == 1920
    assert loaded.train.batch_size == 120
    first, *notes = converted(SELF_PLAY).notes
    assert first == "t.yaml: names no targets: self in world duel is used, because of its self-play"
    assert notes == ["t.yaml: not needed here, ignored: self_play.team_change"]


@pytest.mark.parametrize(
    ("trainer", "sizes", "memory", "rivals"),
    [
        (
            "ppo",
            "{batch_size: 2, buffer_size: 997}",
            "{sequence_length: 1}",
            "{play_against_latest_model_ratio: 1}",
        ),
        (
            "poca",
            f"{{buffer_size: {2**24}}}",
            "{sequence_length: 1000}",
            "{play_against_latest_model_ratio: 0.35}",
        ),
        (
            "sac",
            "{buffer_size: 50000}",
            "{sequence_length: 48}",
            "{play_against_latest_model_ratio: 0.35}",
        ),
    ],
)
def test_no_choice_of_the_converter_is_refused(
    trainer: str, sizes: str, memory: str, rivals: str
) -> None:
    assert converted(
        f"behaviors:\n  B:\n    trainer_type: {trainer}\n    hyperparameters: {sizes}\n"
        f"    network_settings: {{hidden_units: 8, memory: {memory}}}\n    self_play: {rivals}\n"
    ).text


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
    told = any("it must divide buffer_size" in note for note in converted(text).notes)
    assert told == (shape[2] != batch)


REMEMBERING = """\
behaviors:
  B:
    time_horizon: 64
    hyperparameters: {batch_size: 128, buffer_size: 2048}
    network_settings: {hidden_units: 32, num_layers: 1, memory: {memory_size: 96}}
"""


def test_a_memory_is_that_of_hybrid_ppo_of_half_the_size_which_holds_both_its_parts() -> None:
    train = curriculum(REMEMBERING).config.train
    assert (train.algo, train.n_steps, train.batch_size) == ("hybrid_ppo", 64, 128)
    assert train.network.layers == (32,)
    assert (train.network.memory.size, train.network.memory.sequence_length) == (48, 64)
    assert len(converted(REMEMBERING).notes) == 1  # that a target is taken


@pytest.mark.parametrize(
    ("length", "batch", "taken"), [(30, 128, (32, 128)), (64, 32, (64, 64)), (500, 100, (64, 128))]
)
def test_sequences_divide_the_steps_and_minibatches_hold_whole_ones(
    length: int, batch: int, taken: tuple[int, int]
) -> None:
    text = REMEMBERING.replace("memory_size: 96", f"sequence_length: {length}")
    text = text.replace("batch_size: 128", f"batch_size: {batch}")
    train = curriculum(text).config.train
    assert (train.network.memory.sequence_length, train.batch_size) == taken
    assert train.network.memory.size == 64
    notes = "\n".join(converted(text).notes)
    assert ("it must divide 64 steps" in notes) == (length != taken[0])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("learning_rate: 0.0002", "learning_rate: -1", "must be greater than 0 (got -1)"),
        ("_schedule: constant", "_schedule: round", "must be linear or constant (got 'round')"),
        ("buffer_size: 2048", "buffer_size: x", "must be a whole number from 4 to 16777216"),
        ("hidden_units: 256", "hidden_units: 0", "must be a whole number from 1 to 4096 (got 0)"),
        ("value: 9.0", "value: -9", "goto_win_radius.curriculum.0.value: must lie between"),
    ],
)
def test_what_cannot_be_converted_is_told_at_its_place(old: str, new: str, said: str) -> None:
    assert old in TRAINER
    with pytest.raises(ConfigurationError) as caught:
        converted(TRAINER.replace(old, new))
    (line,) = caught.value.faults
    assert said in line
    row = next(n for n, text in enumerate(TRAINER.splitlines(), 1) if old in text)
    assert line.startswith(f"t.yaml:{row}:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "lessons: []\nenvironment_parameters: {a: 1}\n",
            "t.yaml:1:1: is a curriculum of aimbot-lab, which needs no conversion",
        ),
        ("behaviors: 5\n", "t.yaml:1:12: behaviors: must be a mapping (got 5)"),
        (TRAINER.replace("Walker", '"Walk${x}"'), "t.yaml:2:8: a name holds ${, which refers to"),
    ],
)
def test_what_is_no_trainer_file_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        converted(text)
    (line,) = caught.value.faults
    assert said in line


def test_a_behavior_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match=r"--behavior Walkr: .*nearest valid key: Walker"):
        converted(TRAINER, behavior="Walkr")


@pytest.mark.parametrize(
    ("given", "taken", "note"),
    [
        (
            "cuda:1",
            "cuda",
            "cuda replaces cuda:1: networks are on the CPU or on the ",
        ),
        ("mps", "cpu", "cpu replaces mps: networks are on the CPU or on the first"),
    ],
)
def test_the_device_of_torch_is_that_of_the_training(given: str, taken: str, note: str) -> None:
    text = f"behaviors: {{B: {{}}}}\ntorch_settings: {{device: {given}}}\n"
    assert curriculum(text).config.train.device == taken
    (told,) = converted(text).notes[1:]
    assert f"t.yaml:2:26: torch_settings.device: {note}" in told


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
    told = [one for one in converted(course(asked)).notes if "require_reset" in one]
    assert told == [
        "t.yaml:5:94: environment_parameters.gun_range.curriculum.0.completion_criteria."
        "require_reset: has no counterpart: episodes that run go on to their ends, and the next "
        "lesson begins with each row's next one"
    ]
    unasked = asked.replace("true", "false")
    told = [one for one in converted(course(unasked, asked, asked)).notes if "_reset" in one]
    assert len(told) == 1
    assert told[0].startswith("t.yaml:6:94: ")
    assert told[0].endswith("each row's next one (so in 2 lessons)")
    assert not any("require_reset" in one for one in converted(course(unasked)).notes)


def test_a_criterion_of_another_behavior_is_told() -> None:
    text = course("{behavior: B, measure: progress, threshold: 0.5}", "{behavior: A}")
    (told,) = [one for one in converted(text).notes if "completion_criteria" in one]
    assert told == (
        "t.yaml:5:62: environment_parameters.gun_range.curriculum.0.completion_criteria.behavior: "
        "A replaces B: a curriculum trains one"
    )
    (told,) = [one for one in converted(text, behavior="B").notes if "completion_criteria" in one]
    assert "curriculum.1.completion_criteria.behavior: B replaces A" in told
