"""A run by self-play, watched: its past selves are the training's own, the others are shown."""

from typing import Any

from aimbot_lab.experiment.config.document import parse_curriculum
from aimbot_lab.panel.server.watching.watched_agent import shown_mix

FILE = """\
name: match
env: {world: duel, num_envs: 8}
self_play: {}
lessons:
  - {name: one, targets: {self: 1, greedy: 1}, completion_criteria: {threshold: 0.5}}
  - {name: two, targets: {self: 1}}
train: {algo: hybrid_ppo, n_steps: 16, batch_size: 96}
"""


def status(lesson: int, **weights: float) -> dict[str, Any]:
    levels = {name: {"weights": [1.0, 0, 0, 0, 0]} for name in weights}
    mixed = {"targets": list(weights), "weights": list(weights.values())}
    return {"lesson": lesson, "targets": mixed, "difficulty": levels}


def test_past_selves_are_left_out_of_what_is_shown() -> None:
    config = parse_curriculum(FILE, "file.yaml").config
    mix = shown_mix(config, status(0, self=0.5, greedy=0.5))
    assert mix is not None
    assert dict(mix.targets) == {"greedy": 0.5}
    assert dict(mix.difficulty) == {"greedy": (1.0, 0, 0, 0, 0)}


def test_a_lesson_of_past_selves_alone_is_shown_against_the_scripts() -> None:
    config = parse_curriculum(FILE, "file.yaml").config
    mix = shown_mix(config, status(1, self=1.0))
    assert mix is not None
    assert set(mix.targets) == {"still", "random", "greedy", "aimbot"}
    assert shown_mix(config, None) is None
