"""`bench lessons`: a curriculum and its last lesson alone take as many steps, once each."""

from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.bench import lessons

TINY = (
    "env.num_envs=8",
    "train.n_steps=16",
    "train.batch_size=64",
    "train.total_steps=128",
    "train.n_epochs=1",
)


def test_both_ways_take_as_many_steps_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessons, "EPISODES", 4)
    kept, said = tmp_path / "data" / "lessons.jsonl", list[str]()
    given: Any = {"seeds": 1, "kept_in": kept, "say": said.append}
    found: Any = lessons.bench_lessons(["cartpole"], TINY, **given)
    assert said[:2] == ["cartpole, lessons, 1", "cartpole, last lesson alone, 1"]
    rows, each = found.document["rows"], found.document["trainings"]
    assert [one["way"] for one in rows] == [lessons.LESSONS, lessons.ALONE]
    assert {one["steps"] for one in each} == {128}
    assert [one["reached"] for one in rows] == ["0 of 1"] * 2
    assert all(0 <= one["wins"] <= 1 and one["seconds"] > 0 for one in each)
    monkeypatch.setattr(lessons, "_learned", pytest.fail)  # nothing is trained again
    assert lessons.bench_lessons(["cartpole"], TINY, **given).document == found.document
    assert found.parts[0].cells()[0]["steps"] == "never"


def test_an_agent_that_ranks_actions_plays_only_its_likeliest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessons, "EPISODES", 4)
    kept, few = tmp_path / "lessons.jsonl", ("env.num_envs=8", "train.total_steps=512")
    given: Any = {"seeds": 1, "kept_in": kept, "say": lambda _: None}
    found: Any = lessons.bench_lessons(["gorge_table"], few, **given)
    [row] = found.parts[0].cells()
    assert [row["sampled"], row["temperature 0.5"]] == ["-", "-"]
    assert row["likeliest action"].endswith(" %")


def test_the_interval_of_win_rates_stays_within_their_bounds() -> None:
    assert lessons._mean([0.0, 0.0, 0.1])["lower"] == 0.0
    assert lessons._mean([1.0, 1.0, 0.9])["upper"] == 1.0
    inside = lessons._mean([0.4, 0.5, 0.6])
    assert 0 < (inside["lower"] or 0) < 0.5 < (inside["upper"] or 0) < 1
