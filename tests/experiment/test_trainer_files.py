"""Trainer files of many kinds become the curricula that they mean, or are refused by place."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.conversion.ml_agents import convert
from aimbot_lab.experiment.conversion.players import export_player
from aimbot_lab.experiment.conversion.trainer_file import KEYS
from aimbot_lab.foundation.errors import ConfigurationError
from tests.experiment import trainer_samples as samples
from tests.experiment.trainer_samples import HEAD, READ, lessons

PAGE = Path(__file__).parents[2] / "aimbot_lab" / "experiment" / "conversion" / "README.md"
OWN = "world unity is used, because the arena has no parameter room"
ANY = object()
UNITY = {"world": "unity", "behavior": "Runner", "win": "none"}
SAMPLER = "sampler_parameters"
BUILD = "env_settings: {env_path: b}\n"


pytestmark = pytest.mark.usefixtures("here")


def converted(text: str, **options: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the text becomes, fit to load, as plain data; and the notes on it."""
    Path("t.yaml").write_text(text, encoding="utf-8")
    written, notes = convert("t.yaml", **options)
    Path("c.yaml").write_text(written, encoding="utf-8")
    load_curriculum("c.yaml")
    return yaml.safe_load(written), notes


def at(data: Any, place: str) -> Any:
    for key in place.split("."):
        data = data[int(key)] if isinstance(data, list) else data.get(key, ANY)
        if data is ANY:
            return None
    return data


CASES: list[tuple[str, str, dict[str, Any], tuple[str, ...]]] = [
    (
        "a dump says nothing of nulls",
        READ["dump"],
        {
            "seed": 21,
            "env": {"num_envs": 40},
            "train.n_steps": 128,
            "train.batch_size": 512,
            "train.gamma": 0.985,
            "train.reward_scale": 0.5,
            "train.ent_coef": 0.004,
            "train.clip_range": {"schedule": "linear", "start": 0.25, "end": 0.1},
            "train.network": {"layers": [64, 64, 64], "scaling": "running"},
        },
        ("names no targets: goto", "extrinsic.network_settings, checkpoint_settings.run_id, check"),
    ),
    (
        "parameters of one's own are those of a build",
        READ["own lessons"],
        {
            "env": {**UNITY, "no_graphics": False, "num_envs": 160},
            "lessons.0.parameters": {"room": 4.0},
            "lessons.1": {"name": "far", "parameters": {"room": 2.0}},
            "train.algo": "hybrid_ppo",
            "train.network.scaling": "none",
        },
        (OWN, "env.win is none", "env_path: is missing"),
    ),
    (
        "a build with its engine",
        READ["build"],
        {
            "env": {
                **{**UNITY, "file_name": "Builds\\Game.exe", "env_args": ["--level", "2"]},
                **{"base_port": 6005, "timeout_wait": 90, "width": 320, "time_scale": 30.0},
                "num_envs": 128,
            },
            "train.device": "cuda",
            "train.n_steps": 80,
            "lessons.0.completion_criteria.measure": "progress",
        },
        ("whose build is Builds", "env.win", "env_settings.num_envs: has no", "time_horizon: 80"),
    ),
    (
        "losses stand first and keys of no consequence last",
        f"{HEAD}    keep_checkpoints: 9\n    time_horizon: 100\n    init_path: a.pt\n"
        f"    threaded: true\n{samples.SIGNALS}",
        {
            "train.algo": "hybrid_ppo",
            "train.network.memory": {"size": 32, "sequence_length": 40},
            "train.gamma": 0.97,
            "train.reward_scale": 2.0,
        },
        (
            "names no targets",
            "init_path: has no counterpart: the run begins",
            "curiosity: has no counterpart",
            "rnd: has no counterpart",
            "gail: has no counterpart",
            "behavioral_cloning: has no counterpart",
            "batch_size: 1280 replaces 1024: it must divide buffer_size 10240 and",
            "time_horizon: 80 replaces 100",
            "sequence_length: 40 replaces 32: it must divide 80 steps",
            "not needed here, ignored: keep_checkpoints, threaded",
        ),
    ),
    (
        "curiosity alone, after a byte order mark",
        f"\ufeff{HEAD}    reward_signals: {{curiosity: {{strength: 0.1}}}}\n",
        {"train.gamma": 0.99},
        ("names no", "reward_signals: has no extrinsic: ML-Agents learns without", "curiosity"),
    ),
    (
        "self-play of one's own game",
        f"{READ['self-play']}{lessons('room')}",
        {"env.world": "unity", "self_play": None, "lessons.1.parameters": {"room": 2.0}},
        (
            "because the duel has no parameter room; --world duel converts without it",
            "env.win",
            "env_path",
            "self_play: has no counterpart: world unity has no self-play",
        ),
    ),
    (
        "a parameter of the duel is its lessons'",
        f"{READ['self-play']}{lessons('gun_cooldown', measure='Elo', threshold=1250)}",
        {"env.world": "duel", "lessons.1.parameters": {"gun_cooldown": 2.0}},
        ("in world duel is used, because of its self-play", "batch_size", "buffer_size"),
    ),
    (
        "Elo is elo and keeps its world and its lessons",
        f"{READ['self-play']}{lessons('room', measure='Elo', threshold=1250)}",
        {
            "env.world": "duel",
            "lessons.0.completion_criteria.measure": "elo",
            "lessons.0.completion_criteria.threshold": 1250,
        },
        (
            "in world duel is used, because of its self-play",
            "world duel has no such parameter",
            *("batch_size", "buffer_size"),
        ),
    ),
    (
        "weights of targets and difficulties",
        f"{HEAD}environment_parameters: {{target.free: 3, difficulty.goto.2: 0}}\n",
        {
            "lessons.0.targets": {"goto": 1.0, "free": 3.0},
            "lessons.0.difficulty": {"goto": [1.0, 0.0, 1.0, 1.0, 1.0]},
            "lessons.0.parameters": None,
        },
        ("names no targets",),
    ),
    (
        "SAC of a build",
        f"{samples.SAC}    time_horizon: 1000\n    network_settings: {{memory: {{}}}}\n"
        "env_settings: {env_path: builds/Game}\n",
        {
            "train.algo": "sac",
            "train.batch_size": 128,
            "train.learning_rate": 0.0003,
            "train.n_steps": None,
            "train.options": {
                **{"learning_starts": 200, "tau": 0.01},
                **{"buffer_size": 50_000, "gradient_steps": 1},
            },
        },
        (
            "whose build is builds/Game",
            "env.win",
            "init_entcoef: has no counterpart",
            "time_horizon: has no counterpart: sac has none",
            "memory: has no counterpart: sac has no memory",
        ),
    ),
    (
        "brains of before 0.17",
        samples.BRAINS,
        {
            "name": "Runner",
            "train.learning_rate": {"schedule": "linear", "start": 1e-4, "end": 1e-10},
            "train.ent_coef.start": 4e-3,
            "train.total_steps": 200_000,
            "train.gamma": 0.95,
            "train.batch_size": 100,
            "train.network": {
                **{"layers": [32], "scaling": "running"},
                "memory": {"size": 32, "sequence_length": 10},
            },
        },
        (
            "names no targets",
            "t.yaml:1:1: a trainer file of ML-Agents before 0.17",
            "t.yaml:17:3: Runner.vis_encode_type: has no counterpart",
            "t.yaml:10:20: default.sequence_length: 10 replaces 8",
            "time_horizon: 50",
        ),
    ),
    (
        "a curriculum of before 0.17",
        f"Runner:\n{samples.COURSE.format(name='room')}",
        {
            "env.behavior": "Runner",
            "lessons.0.completion_criteria": {
                **{"measure": "progress", "rule": "ml-agents", "threshold": 0.1},
                **{"min_lesson_length": 7, "signal_smoothing": False},
            },
            "lessons.2": {"name": "Lesson2", "parameters": {"room": 3.0}},
        },
        (OWN, "a curriculum of ML-Agents before 0.17", "env.win", "env_path"),
    ),
    (
        "the form of 0.17",
        samples.OF_0_17,
        {
            "train.total_steps": 40000,
            "lessons.1.parameters.move_speed": 2.0,
            f"lessons.1.parameters.gun_range.{SAMPLER}": {"min_value": 50.0, "max_value": 90.0},
        },
        ("names no targets", "resampling-interval: has no counterpart"),
    ),
    (
        "a brain from before 0.6, without sizes of its memory, and one that names it",
        "Runner: {trainer: ppo, gamma: 0.9, use_recurrent: true}\nOther: Runner\n"
        "Third: {summary_freq: 9, pretraining: {demo_path: d}}\nodd: 5\n"
        "env_settings: {env_path: b}\n",
        {
            "env.behavior": "Runner",
            "train.gamma": 0.9,
            "train.network.memory": {"size": 64, "sequence_length": 64},
        },
        (
            "whose build is b",
            "before 0.17",
            "env.win",
            "t.yaml:2:1: Other: is left out",
            "t.yaml:3:1: Third: is left out",
            "t.yaml:4:1: odd: is not a key of ML-Agents 1.1.0",
        ),
    ),
    (
        "a sampler goes before old lessons of the same parameter, which are told",
        f"{samples.OF_0_17}  move_speed: {{sampler-type: uniform, min_value: 3, max_value: 4}}\n",
        {"lessons.0.name": "all", f"lessons.0.parameters.move_speed.{SAMPLER}.min_value": 3.0},
        (
            "names no targets",
            "t.yaml:11:9: curriculum.Runner.parameters.move_speed: is ignored: move_speed has a",
            "resampling-interval",
        ),
    ),
    (
        "lessons that end by another behavior do not keep those of the trained one from it",
        lessons("room")
        + lessons("hall", first="{sampler_type: uniform, sampler_parameters: {}}")
        .partition("\n")[2]
        .replace("Runner", "Other")
        + HEAD
        + "  Other: {}\n",
        {
            "lessons.0.parameters.room": 4.0,
            "lessons.1.parameters.room": 2.0,
            "lessons.1.parameters.hall.sampler_type": "uniform",
        },
        (
            OWN,
            "env.win",
            "env_path",
            "t.yaml:11:3: environment_parameters.hall: stays at its first value: its lessons end",
            "Other: is left out",
        ),
    ),
    (
        "the last lesson's criterion is told; a lesson's name may be a number",
        lessons("room")
        .replace("name: near", "name: 1")
        .replace(
            "completion_criteria: null",
            "completion_criteria: {measure: reward, behavior: Runner, threshold: 9}",
        )
        + HEAD,
        {"lessons.0.name": "1", "lessons.1.completion_criteria": None},
        (OWN, "env.win", "env_path", "curriculum.1.completion_criteria: is ignored: no lesson"),
    ),
    (
        "a dotted key is none of a section, and no plug-in names what needs numbered states",
        f"{HEAD.replace('ppo', 'q_learning')}    hyperparameters.num_epoch: 9\n"
        "environment_parameters: {target.goto: 0, target.free: 2}\n",
        {"train.algo": "ppo", "train.n_epochs": None, "lessons.0.targets": {"free": 2.0}},
        ("names no targets", "ppo replaces q_learning", "hyperparameters.num_epoch: is not a key"),
    ),
    (
        "a brain with keys of today's sections beside those of old",
        "Runner: {trainer: ppo, hidden_units: 3, network_settings: {normalize: true}}\n",
        {"train.network": {"layers": [3, 3], "scaling": "running"}},
        ("names no targets", "before 0.17"),
    ),
    (
        "spaces, exponents, numbers as text, other alphabets",
        READ["spaced"],
        {
            "name": "Бегун",
            "train.batch_size": 128,
            "train.total_steps": 500_000,
            "train.learning_rate.start": 3e-4,
            "env.num_envs": 32,
        },
        ("names no targets",),
    ),
]


@pytest.mark.parametrize(("text", "wanted", "notes"), [one[1:] for one in CASES])
def test_a_file_becomes_what_it_means(
    text: str, wanted: dict[str, Any], notes: tuple[str, ...]
) -> None:
    data, found = converted(text)
    assert {place: at(data, place) for place in wanted} == wanted
    assert len(found) == len(notes), found
    for line, part in zip(found, notes, strict=True):
        assert part in line


REFUSED = [
    ("      network_settings: {}\n", "4:23: not valid YAML"),
    ("    trainer_type: ppo\n", "4:5: behaviors.Runner.trainer_type: is given twice"),
    (
        "    network_settings:\n      memory: None\n",
        "5:15: behaviors.Runner.network_settings.memory: must be a mapping (got 'None')",
    ),
    (
        "    init_path: None\n",
        "4:16: behaviors.Runner.init_path: None is a string here; write null",
    ),
    (
        "environment_parameters:\n  a: {sampler_type: uniform, sampler_parameters: {range: 1}}\n",
        "5:51: environment_parameters.a.sampler_parameters.range: unknown key",
    ),
    (
        "    hyperparameters: {num_epoch: many, beta: true}\n",
        "4:34: behaviors.Runner.hyperparameters.num_epoch: must be a whole number",
    ),
    (
        "environment_parameters:\n  a: {sampler-type: uniform, sampler-parameters: {}}\n",
        "5:30: environment_parameters.a.sampler-parameters: unknown key",
    ),
    (
        "    hyperparameters: {batch_size: 0512}\n",
        "4:35: behaviors.Runner.hyperparameters.batch_size: must not begin with 0, which",
    ),
    (
        "    network_settings: {memory: {memory_size: 65}}\n",
        "4:46: behaviors.Runner.network_settings.memory.memory_size: must be even: it",
    ),
    (
        "    network_settings: {num_layers: 33}\n",
        "4:36: behaviors.Runner.network_settings.num_layers: must be a whole number from 1",
    ),
    (
        "    network_settings: {num_layers: 32, hidden_units: 4096}\n",
        "4:23: behaviors.Runner.network_settings: must have at most 33,554,432 weights",
    ),
    (
        "environment_parameters: {target.goto: -1}\n",
        "4:39: environment_parameters.target.goto: must be at least 0",
    ),
    (
        "environment_parameters: {target.goto: 0}\n",
        "4:39: environment_parameters.target.goto: must leave a target with a weight above 0",
    ),
    ("env_settings: {env_path: 5}\n", "4:26: env_settings.env_path: must be a text"),
]
REFUSED_WHOLE = [
    (
        "Runner: {trainer: ppo, use_recurrent: true, network_settings: 5, hidden_units: 3}\n",
        "1:63: Runner.network_settings: must be a mapping (got 5)",
    ),
    (
        lessons("room").replace("behavior: Runner", "behavior: [Runner]") + HEAD,
        "5:58: environment_parameters.room.curriculum.0.completion_criteria.behavior: must be",
    ),
    (
        "Runner: {measure: reward, thresholds: [1], parameters: {a: [1]}}\n",
        "1:60: Runner.parameters.a: must hold 2 values, one more than there are thresholds",
    ),
    (
        "Runner: {measure: reward, thresholds: [], parameters: {a: [1]}, min_lesson_lenght: 5}\n",
        "1:65: Runner.min_lesson_lenght: unknown key (nearest valid key: min_lesson_length)",
    ),
    (
        "Runner: {trainer: ppo, use_recurrent: no}\n",
        "1:39: Runner.use_recurrent: must be true or false (got 'no')",
    ),
    (
        f"{samples.SAC.replace('update: 10', 'update: .nan')}{BUILD}",
        "6:25: behaviors.Runner.hyperparameters.steps_per_update: must be at least 0.001",
    ),
    (
        f"{samples.SAC.replace('init_steps: 200', 'init_steps: -1')}{BUILD}",
        "5:65: behaviors.Runner.hyperparameters.buffer_init_steps: must be at least 0",
    ),
    *((f"{HEAD}{more}", line) for more, line in REFUSED),
]


@pytest.mark.parametrize(("text", "line"), REFUSED_WHOLE)
def test_what_has_no_meaning_is_refused_by_place(text: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        converted(text)
    assert caught.value.faults[0].startswith(f"t.yaml:{line}")


def test_a_world_a_build_and_a_target_can_be_chosen() -> None:
    data, notes = converted(READ["own lessons"], world="arena")
    assert data["lessons"][0] == {
        "name": "near",
        "targets": {"goto": 1.0},
        "completion_criteria": at(data, "lessons.0.completion_criteria"),
    }
    assert "environment_parameters.room: world arena has no such parameter" in notes[0]
    data, notes = converted(HEAD, file_name="builds/Game")
    assert data["env"]["file_name"] == "builds/Game"
    assert [line for line in notes if "win" not in line] == []
    data, notes = converted(READ["build"], targets=["attack"])
    assert at(data, "lessons.0.targets") == {"attack": 1.0}
    assert "env" not in {*data["env"]}
    assert any("env_path: has no counterpart: only world unity" in line for line in notes)
    for world, target in ("gorge", "walk"), ("duel", "duel"):
        data, _ = converted(HEAD, world=world)
        assert (data["env"]["world"], at(data, "lessons.0.targets")) == (world, {target: 1.0})
    with pytest.raises(ConfigurationError, match="--world gymnasium: needs settings that no"):
        converted(HEAD, world="gymnasium")


def test_each_brain_of_an_old_curriculum_can_be_chosen() -> None:
    text = "".join(f"{brain}:\n{samples.COURSE.format(name=name)}" for brain, name in ("Ax", "By"))
    data, notes = converted(text, behavior="B")
    assert data["env"]["behavior"] == "B"
    assert [one["parameters"] for one in data["lessons"]] == [
        {"x": 1.0, "y": value} for value in (1.0, 2.0, 3.0)
    ]
    assert "t.yaml:1:1: A: is left out: a curriculum trains one" in "".join(notes)


def test_a_player_of_ours_is_trained_on_what_it_plays(here: Path) -> None:
    export_player(here / "build")
    text = f"{HEAD}environment_parameters: {{difficulty.goto.1: 0, move_speed: 6}}\n"
    first = load_curriculum("goto").config.lessons[0]
    data, _ = converted(text, file_name="build/AimbotLab")
    (lesson,) = data["lessons"]
    assert lesson["targets"] == dict(first.targets)
    assert lesson["difficulty"] == {"goto": [0.0, *first.difficulty["goto"][1:]]}
    assert lesson["parameters"] == {"move_speed": 6.0}
    arguments = "env_settings: {env_path: build/AimbotLab, env_args: [--curriculum, attack]}\n"
    data, _ = converted(f"{HEAD}{arguments}")
    assert at(data, "lessons.0.targets") == {"attack": 1.0}


def test_the_page_has_every_key_with_what_becomes_of_it() -> None:
    rows = [
        f"| `{place}` | {'' if key.usual is None else f'`{key.usual}`'} | "
        f"{f'`{key.ours}`' if key.ours else key.fate} | {key.text} |"
        for place, key in KEYS.items()
    ]
    text = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in text] == []
