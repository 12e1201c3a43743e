"""A good curriculum: what is read, overridden, resolved, and written out again."""

from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.experiment.config import checks
from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum, with_overrides
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.settings import ArenaSettings

LESSONS = """
lessons:
  - name: first
    targets: {goto: 1.0}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: &done {threshold: 0.9, min_lesson_length: 7}
  - name: last
    targets: {goto: 1.0}
    completion_criteria: {<<: *done, scope: every_cell}
"""


def loaded(folder: Path, text: str, *overrides: str) -> LoadedCurriculum:
    path = folder / "c.yaml"
    path.write_bytes(text.encode("utf-8"))
    return load_curriculum(path, overrides)


def test_what_is_left_out_keeps_its_default(tmp_path: Path) -> None:
    config = loaded(tmp_path, f"name: g{LESSONS}").config
    assert config.env == ArenaSettings()
    assert config.seed == 1
    assert config.lessons[0].parameters == {}


def test_anchors_and_merges_are_followed(tmp_path: Path) -> None:
    criteria = loaded(tmp_path, f"name: g{LESSONS}").config.lessons[1].completion_criteria
    assert criteria is not None
    assert (criteria.threshold, criteria.min_lesson_length, criteria.scope) == (
        0.9,
        7,
        "every_cell",
    )


def test_scalars_are_those_of_yaml_1_2_with_underscores(tmp_path: Path) -> None:
    text = f"name: no{LESSONS}train: {{total_steps: 5_000_000, learning_rate: 1e-4, gamma: .9}}"
    config = loaded(tmp_path, text).config
    assert config.name == "no"
    assert config.train.total_steps == 5_000_000
    assert (config.train.learning_rate, config.train.gamma) == (1e-4, 0.9)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    text = "\ufeff" + f"name: g{LESSONS}".replace("\n", "\r\n")
    document = loaded(tmp_path, text)
    assert document.name == "g"
    assert document.source_text == text.removeprefix("\ufeff")


def test_overrides_replace_values_and_merge_mappings(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f"name: g\nenv: {{num_envs: 64, rewards: {{win: 5.0, lose: -5.0}}}}{LESSONS}",
        "env.rewards={win: 2.0}",
        "train.total_steps=1000",
        "train.learning_rate=1e-4",
        "lessons.0.name=renamed",
        "lessons[1].difficulty.goto=[0, 0, 0, 0, 1]",
        "lessons.0.parameters.rewards.spin_penalty=2",
        "lessons.0.parameters={move_speed: 4}",
        "seed=2",
        "seed=3",
    ).config
    assert (config.env.rewards.win, config.env.rewards.lose) == (2.0, -5.0)
    assert (config.train.total_steps, config.train.learning_rate) == (1000, 1e-4)
    assert config.lessons[0].name == "renamed"
    assert config.lessons[1].difficulty["goto"] == (0, 0, 0, 0, 1)
    assert config.lessons[0].parameters == {"rewards.spin_penalty": 2.0, "move_speed": 4.0}
    assert config.seed == 3


def test_an_override_can_mend_a_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, f"name: g\nseed: ${{nope}}{LESSONS}", "seed=4").config.seed == 4
    assert loaded(tmp_path, f"seed: x{LESSONS}", "seed=4", "name=h").name == "h"


def test_references_are_resolved_through_others_and_overrides(tmp_path: Path) -> None:
    text = (
        f"name: ${{lessons[0].name}} ${{seed}}\nseed: ${{train.n_steps}}{LESSONS}"
        "train: {n_steps: '${.batch_size}', batch_size: 256}"
    )
    config = loaded(tmp_path, text).config
    assert (config.name, config.seed, config.train.n_steps) == ("first 256", 256, 256)
    assert loaded(tmp_path, text, "train.n_steps=512").config.seed == 512
    assert loaded(tmp_path, text, "seed=${train.batch_size}").name == "first 256"


def test_a_reference_can_take_a_whole_section(tmp_path: Path) -> None:
    override = "lessons.1.completion_criteria=${lessons.0.completion_criteria}"
    lessons = loaded(tmp_path, f"name: g{LESSONS}", override).config.lessons
    assert lessons[0].completion_criteria == lessons[1].completion_criteria


@pytest.mark.parametrize("name", ["no", "1e5", "12:30", "~", "a: b", "π", "'"])
def test_the_resolved_text_reads_back_to_the_same(tmp_path: Path, name: str) -> None:
    quoted = name.replace("'", "''")
    text = f"name: '{quoted}'\nenv: {{mouse_factor: 1e-7}}{LESSONS}"
    first = loaded(tmp_path, text, "lessons.0.parameters.rewards.win=3")
    again = loaded(tmp_path, first.resolved_text)
    assert first.name == name
    assert again.config == first.config
    assert again.resolved_text == first.resolved_text
    assert "gae_lambda" in first.resolved_text


def test_what_hangs_together_is_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    for name in ("lesson", "environment", "rollout", "cost", "network", "learner"):
        check = getattr(checks, f"{name}_diagnostics")

        def noted(*given: Any, name: str = name, check: Any = check, **named: Any) -> Any:
            asked.append(name)
            return check(*given, **named)

        monkeypatch.setattr(checks, f"{name}_diagnostics", noted)
    loaded(tmp_path, f"name: g{LESSONS}", "seed=3")
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) == 6


def test_an_override_of_what_was_read_is_refused_at_the_lines_of_its_file(tmp_path: Path) -> None:
    text = f"name: g{LESSONS}\ntrain:\n  batch_size: 1024\n"
    begun = loaded(tmp_path, text, "train.gamma=0.9")
    with pytest.raises(ConfigurationError) as refused:
        with_overrides(begun, ["env.num_envs=63"])
    (line,) = refused.value.faults
    assert line.startswith(f"{tmp_path / 'c.yaml'}:12:15: train.batch_size: must divide")


def test_overrides_of_what_was_read_say_what_its_file_with_them_says(tmp_path: Path) -> None:
    text = f"name: g{LESSONS}"
    several = ["train.learning_rate={schedule: linear, start: 1e-3, end: 1e-5}", "seed=7"]
    once = loaded(tmp_path, text, "lessons.0.name=x", *several)
    again = with_overrides(loaded(tmp_path, text, "lessons.0.name=x"), several)
    assert (again.config, again.resolved_text) == (once.config, once.resolved_text)
