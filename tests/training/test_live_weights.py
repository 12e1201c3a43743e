"""Difficulty weights that are changed while an agent trains."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_training import Asked, Sink

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, WeightChange
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import StepBuffers, new_step_buffers
from aimbot_lab.tracking.control_channel import ControlChannel
from aimbot_lab.training.callbacks.lesson_callback import LiveWeights
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks, SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import make_world

ROWS = 64
ROLLOUT = 16 * ROWS
SETTINGS = ArenaSettings(num_envs=ROWS, time_limit=2.0)
EASY = {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}
HARD = WeightChange("goto", ((5, 1.0),))


def lesson(**changes: Any) -> Lesson:
    criteria = CompletionCriteria(threshold=0.9, min_lesson_length=10)
    about = {"targets": {"goto": 1.0}, "difficulty": EASY, "completion_criteria": criteria}
    return Lesson(name="one", **(about | changes))


class Play:
    """An arena under a curriculum, whose agent stands still."""

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self.world = make_world(SETTINGS)
        self.progress = CurriculumProgress(lessons, self.world.spec.difficulties)
        self.live = LiveWeights(self.progress, self.world)
        self.progress.begin_scenario(self.world.set_scenario(self.progress.scenario))
        self.buffers: StepBuffers = new_step_buffers(ROWS, len(self.world.spec.observation_names))
        self.world.reset(1, self.buffers.observations)
        self.step = 0
        self.ended: list[tuple[int, Cell | None]] = []  # scenario and cell of every episode
        self.events = ""

    def steps(self, count: int) -> None:
        for _ in range(count):
            batch = self.world.step(np.zeros((ROWS, 4), np.float32), self.buffers)
            self.step += ROWS
            self.ended += zip(batch.scenario.tolist(), batch.cell, strict=True)
            self.progress.add(batch, step=self.step)
            self.events += "".join(
                text for name, text, _ in self.progress.record if name == "events.jsonl"
            )


def difficulties(play: Play, scenario: int) -> set[int]:
    return {cell.difficulty for number, cell in play.ended if number == scenario and cell}


def test_a_change_holds_from_each_rows_next_block_and_loses_no_episode() -> None:
    play = Play([lesson()])
    play.steps(30)
    play.live.change(HARD)
    play.steps(30)
    assert difficulties(play, 1) == {1}
    assert difficulties(play, 2) == {5}
    play.live.change(WeightChange("goto", ((2, 0.5),)))
    play.steps(60)
    assert difficulties(play, 3) == {2, 5}
    # A row's episodes all last 20 steps here: each that has ended has counted.
    assert play.progress.view.episodes == len(play.ended) == 6 * ROWS
    assert play.events.count('"kind": "weights"') == 2
    assert f'"step": {30 * ROWS}' in play.events


def test_the_next_lesson_begins_with_its_own_mix() -> None:
    criteria = CompletionCriteria(measure="progress", threshold=0.1, min_lesson_length=0)
    world = make_world(SETTINGS)
    lessons = [lesson(completion_criteria=criteria), replace(lesson(), name="two")]
    progress = CurriculumProgress(lessons, world.spec.difficulties, total_steps=1000)
    progress.begin_scenario(world.set_scenario(progress.scenario))
    LiveWeights(progress, world).change(HARD)
    assert progress.scenario.difficulty["goto"] == (0, 0, 0, 0, 1)
    progress.add(None, step=200)
    assert progress.lesson == 1
    assert progress.scenario.difficulty["goto"] == (1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (WeightChange("free", ((1, 0.5),)), "free: has no difficulties in lesson 'one'"),
        (WeightChange("goto", ((2, 0.5),), lock=(1,)), "locked weights sum to 1"),
        (WeightChange("goto", ((2, 0.5), (2, 0.4))), "its weight is locked"),
    ],
)
def test_an_impossible_change_changes_nothing_and_says_why(
    change: WeightChange, fault: str
) -> None:
    play = Play([lesson()])
    before = play.progress.state()
    with pytest.raises(ConfigurationError, match=fault):
        play.live.change(change)
    assert play.progress.state() == before
    play.live.answer(asked := Asked(change._asdict(), 7))
    assert fault in asked.answers["0"]["error"]
    assert "not a change of weights" in asked.answers["1"]["error"]


def test_locks_hold_and_moves_of_one_change_hold_each_other() -> None:
    play = Play([lesson(difficulty={})])
    play.live.change(WeightChange("goto", ((1, 0.1),), lock=(1,)))
    play.live.change(WeightChange("goto", ((2, 0.3), (3, 0.3))))
    weights = play.progress.mix.weights("goto")
    assert weights.weights == pytest.approx((0.1, 0.3, 0.3, 0.15, 0.15))
    play.live.change(WeightChange("goto", ((1, 0.2),), unlock=(1,)))
    assert play.progress.mix.weights("goto").weights[0] == 0.2


def small_plan() -> TrainingPlan:
    train = TrainSettings(
        total_steps=4096,
        n_steps=16,
        batch_size=512,
        n_epochs=1,
        network=NetworkSettings(layers=(8,)),
    )
    return TrainingPlan(seed=1, env=SETTINGS, lessons=(lesson(),), train=train)


def test_a_training_does_what_is_asked_and_records_it() -> None:
    training, sink = Training(small_plan()), Sink()
    links = RunLinks(record=sink, requests=(asked := Asked(HARD._asdict())))
    training.learn(sink, SilentObserver(), lambda: False, links=links)
    assert asked.answers["0"]["weights"] == (0, 0, 0, 0, 1)
    assert asked.answers["0"]["step"] == 0
    assert sink.logged[-1][1][names.cell_share("goto", 5)] == 1.0
    assert '"kind": "weights"' in sink.files["events.jsonl"]
    rows = sink.files["episodes.csv"].splitlines()[1:]
    assert {row.split(",")[3] for row in rows[:ROWS]} == {"1"}
    assert {row.split(",")[3] for row in rows[ROWS:]} == {"5"}


def test_a_change_after_the_last_checkpoint_is_made_again_at_its_step(tmp_path: Path) -> None:
    class First:
        """Keeps the first checkpoint, and no other."""

        state: bytes | None = None

        def keep(self, checkpoint: Checkpoint) -> None:
            self.state = self.state or checkpoint.state

    class Later(ControlChannel):
        """Asks nothing before the second rollout."""

        begun = False

        def requests(self) -> Sequence[tuple[str, Any]]:
            begun, self.begun = self.begun, True
            return super().requests() if begun else []

    def learned(training: Training) -> tuple[str, str]:
        sink = Sink()
        links = RunLinks(record=sink, requests=Later(tmp_path), checkpoints=first)
        ended = training.learn(sink, SilentObserver(), lambda: False, links=links)
        return ended.state_sha256, sink.files["episodes.csv"]

    first, control_channel = First(), ControlChannel(tmp_path)
    key = control_channel.send(HARD._asdict())
    unbroken = learned(Training(small_plan()))
    assert control_channel.wait(key, 0.0, still_open=lambda: True)["step"] == ROLLOUT
    assert ControlChannel(tmp_path).changes() == [(ROLLOUT, json.loads(json.dumps(HARD._asdict())))]
    resumed = Training(small_plan())
    assert first.state is not None
    resumed.resume(first.state)
    assert learned(resumed) == unbroken
    untouched = Training(small_plan()).learn(Sink(), SilentObserver(), lambda: False)
    assert untouched.state_sha256 != unbroken[0]


def test_weights_of_targets_move_and_a_target_without_weight_is_drawn_no_more() -> None:
    play = Play([lesson(targets={"goto": 3.0, "free": 1.0})])
    play.steps(25)
    play.live.answer(asked := Asked(WeightChange(None, (("free", 1.0),)).as_json()))
    play.steps(60)
    first, second = (
        {cell.target for number, cell in play.ended if number == wanted and cell}
        for wanted in (1, 2)
    )
    assert (first, second) == ({"goto", "free"}, {"free"})
    assert asked.answers["0"] == {
        **{"step": 25 * ROWS, "lesson": 1, "targets": ("goto", "free")},
        **{"weights": (0.0, 1.0), "locked": (False, False)},
    }
    assert play.events.count('"kind": "targets"') == 1
    locking = WeightChange(None, (("goto", 0.5),), lock=("goto",))
    play.live.answer(asked := Asked(locking.as_json()))
    assert asked.answers["0"]["weights"] == (0.5, 0.5)
    assert asked.answers["0"]["locked"] == (True, False)
    resumed = Play([lesson(targets={"goto": 3.0, "free": 1.0})])
    resumed.progress.resume(json.loads(json.dumps(play.progress.state())))
    assert resumed.progress.scenario == play.progress.scenario
    assert resumed.progress.mix.weights(None) == play.progress.mix.weights(None)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"moves": [["gone", 0.5]], "lock": [], "unlock": []}, "gone: is not a target"),
        ({"moves": [["goto", 2]], "lock": [], "unlock": []}, "must lie between 0 and 1"),
        ({"kind": {"a": 1}}, "not a change of weights"),
    ],
)
def test_an_impossible_change_of_targets_changes_nothing_and_says_why(
    change: Mapping[str, Any], fault: str
) -> None:
    play = Play([lesson(targets={"goto": 3.0, "free": 1.0})])
    before = play.progress.state()
    play.live.answer(asked := Asked({"kind": "targets", **change}))
    assert fault in asked.answers["0"]["error"]
    assert play.progress.state() == before


def test_kept_changes_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    control_channel = ControlChannel(tmp_path)
    control_channel.send({})
    for text in ("{", "[1]\n", '["a", {}]\n'):
        (tmp_path / "mail" / "changes.jsonl").write_text(text, encoding="utf-8")
        assert control_channel.changes() == []
