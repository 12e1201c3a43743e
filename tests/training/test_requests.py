"""What is asked of a training: other weights, to show or keep its agent; nothing else changes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from safetensors.torch import load_file
from tiny_training import ROWS, Asked, Listener, Sink, learn, plan

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, WeightChange
from aimbot_lab.experiment.runs.agents import AgentsOnRequest
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world import StepBuffers, new_step_buffers
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.tracking.tracker import MemoryTracker, saved_agents
from aimbot_lab.training.agents.agent_files import WEIGHTS, load_agent
from aimbot_lab.training.callbacks.assembly import (
    AGENT_SECONDS,
    MAX_SHARE,
    STATUS_SECONDS,
    LivePublication,
)
from aimbot_lab.training.callbacks.lesson_callback import LiveWeights
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import make_world

PLAYED = 64  # rows
SETTINGS = ArenaSettings(num_envs=PLAYED, time_limit=2.0)
EASY = {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}
HARD = WeightChange("goto", ((5, 1.0),))


def lesson(**changes: Any) -> Lesson:
    criteria = CompletionCriteria(threshold=0.9, min_lesson_length=10)
    about = {"targets": {"goto": 1.0}, "difficulty": EASY, "completion_criteria": criteria}
    return Lesson(name="one", **(about | changes))


class Play:
    """An arena under a curriculum, whose agent stands still."""

    def __init__(self, *lessons: Lesson, total_steps: int | None = None) -> None:
        self.world = make_world(SETTINGS)
        given = {} if total_steps is None else {"total_steps": total_steps}
        self.progress = CurriculumProgress(lessons, self.world.spec.difficulties, **given)
        self.live = LiveWeights(self.progress, self.world)
        self.progress.begin_scenario(self.world.set_scenario(self.progress.scenario))
        self.buffers: StepBuffers = new_step_buffers(PLAYED, len(self.world.spec.observation_names))
        self.world.reset(1, self.buffers.observations)
        self.step, self.events = 0, ""
        self.ended: list[tuple[int, Cell | None]] = []  # scenario and cell of every episode

    def steps(self, count: int) -> None:
        for _ in range(count):
            batch = self.world.step(np.zeros((PLAYED, 4), np.float32), self.buffers)
            self.step += PLAYED
            self.ended += zip(batch.scenario.tolist(), batch.cell, strict=True)
            self.progress.add(batch, step=self.step)
            added = self.progress.record
            self.events += "".join(text for name, text, _ in added if name == "events.jsonl")


def difficulties(play: Play, scenario: int) -> set[int]:
    return {cell.difficulty for number, cell in play.ended if number == scenario and cell}


def test_a_change_holds_from_each_rows_next_block_and_loses_no_episode() -> None:
    play = Play(lesson())
    play.steps(30)
    play.live.change(HARD)
    play.steps(30)
    assert difficulties(play, 1) == {1}
    assert difficulties(play, 2) == {5}
    play.live.change(WeightChange("goto", ((2, 0.5),)))
    play.steps(60)
    assert difficulties(play, 3) == {2, 5}
    # A row's episodes all last 20 steps here: each that has ended has counted.
    assert play.progress.view.episodes == len(play.ended) == 6 * PLAYED
    assert play.events.count('"kind": "weights"') == 2
    assert f'"step": {30 * PLAYED}' in play.events


def test_the_next_lesson_begins_with_its_own_mix() -> None:
    criteria = CompletionCriteria(measure="progress", threshold=0.1, min_lesson_length=0)
    first = lesson(completion_criteria=criteria)
    play = Play(first, replace(lesson(), name="two"), total_steps=1000)
    play.live.change(HARD)
    assert play.progress.scenario.difficulty["goto"] == (0, 0, 0, 0, 1)
    play.progress.add(None, step=200)
    assert play.progress.lesson == 1
    assert play.progress.scenario.difficulty["goto"] == (1, 0, 0, 0, 0)


TWO = {"goto": 3.0, "free": 1.0}
NO_LOCKS: dict[str, Any] = {"kind": "targets", "lock": [], "unlock": []}


@pytest.mark.parametrize(
    ("targets", "change", "fault"),
    [
        *(
            ({"goto": 1.0}, WeightChange(*change).as_json(), fault)
            for change, fault in (
                (("free", ((1, 0.5),)), "free: has no difficulties in lesson 'one'"),
                (("goto", ((2, 0.5),), (1,)), "locked weights sum to 1"),
                (("goto", ((2, 0.5), (2, 0.4))), "its weight is locked"),
            )
        ),
        ({"goto": 1.0}, 7, "not a change of weights"),
        (TWO, {**NO_LOCKS, "moves": [["gone", 0.5]]}, "gone: is not a target"),
        (TWO, {**NO_LOCKS, "moves": [["goto", 2]]}, "must lie between 0 and 1"),
        (TWO, {"kind": {"a": 1}}, "not a change of weights"),
    ],
)
def test_an_impossible_change_changes_nothing_and_says_why(
    targets: Mapping[str, float], change: Any, fault: str
) -> None:
    play = Play(lesson(targets=targets))
    before = play.progress.state()
    play.live.answer(asked := Asked(change))
    assert fault in asked.answers["0"]["error"]
    assert play.progress.state() == before


def test_locks_hold_and_moves_of_one_change_hold_each_other() -> None:
    play = Play(lesson(difficulty={}))
    play.live.change(WeightChange("goto", ((1, 0.1),), lock=(1,)))
    play.live.change(WeightChange("goto", ((2, 0.3), (3, 0.3))))
    weights = play.progress.mix.weights("goto")
    assert weights.weights == pytest.approx((0.1, 0.3, 0.3, 0.15, 0.15))
    play.live.change(WeightChange("goto", ((1, 0.2),), unlock=(1,)))
    assert play.progress.mix.weights("goto").weights[0] == 0.2


def small_plan() -> TrainingPlan:
    sizes = {"total_steps": 4096, "n_steps": 16, "batch_size": 512, "n_epochs": 1}
    train = TrainSettings(**sizes, network=NetworkSettings(layers=(8,)))
    return TrainingPlan(seed=1, env=SETTINGS, lessons=(lesson(),), train=train)


def test_a_training_does_what_is_asked_and_records_it() -> None:
    training, sink = Training(small_plan()), Sink()
    links = RunLinks(record=sink, requests=(asked := Asked(HARD._asdict())))
    learn(training, sink, links=links)
    assert asked.answers["0"]["weights"] == (0, 0, 0, 0, 1)
    assert asked.answers["0"]["step"] == 0
    assert sink.logged[-1][1][names.cell_share("goto", 5)] == 1.0
    assert '"kind": "weights"' in sink.files["events.jsonl"]
    rows = sink.files["episodes.csv"].splitlines()[1:]
    assert {row.split(",")[3] for row in rows[:PLAYED]} == {"1"}
    assert {row.split(",")[3] for row in rows[PLAYED:]} == {"5"}


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
        ended = learn(training, sink, links=links)
        return ended.state_sha256, sink.files["episodes.csv"]

    first, control_channel = First(), ControlChannel(tmp_path)
    key = control_channel.send(HARD._asdict())
    unbroken = learned(Training(small_plan()))
    assert control_channel.wait(key, 0.0, still_open=lambda: True)["step"] == 16 * PLAYED
    assert ControlChannel(tmp_path).changes() == [
        (16 * PLAYED, json.loads(json.dumps(HARD._asdict())))
    ]
    resumed = Training(small_plan())
    assert first.state is not None
    resumed.resume(first.state)
    assert learned(resumed) == unbroken
    untouched = learn(Training(small_plan()))
    assert untouched.state_sha256 != unbroken[0]


def test_weights_of_targets_move_and_a_target_without_weight_is_drawn_no_more() -> None:
    play = Play(lesson(targets=TWO))
    play.steps(25)
    play.live.answer(asked := Asked(WeightChange(None, (("free", 1.0),)).as_json()))
    play.steps(60)
    first, second = (
        {cell.target for number, cell in play.ended if number == wanted and cell}
        for wanted in (1, 2)
    )
    assert (first, second) == ({"goto", "free"}, {"free"})
    assert asked.answers["0"] == {
        **{"step": 25 * PLAYED, "lesson": 1, "targets": ("goto", "free")},
        **{"weights": (0.0, 1.0), "locked": (False, False)},
    }
    assert play.events.count('"kind": "targets"') == 1
    locking = WeightChange(None, (("goto", 0.5),), lock=("goto",))
    play.live.answer(asked := Asked(locking.as_json()))
    assert asked.answers["0"]["weights"] == (0.5, 0.5)
    assert asked.answers["0"]["locked"] == (True, False)
    resumed = Play(lesson(targets=TWO))
    resumed.progress.resume(json.loads(json.dumps(play.progress.state())))
    assert resumed.progress.scenario == play.progress.scenario
    assert resumed.progress.mix.weights(None) == play.progress.mix.weights(None)


def test_kept_changes_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    control_channel = ControlChannel(tmp_path)
    control_channel.send({})
    for text in ("{", "[1]\n", '["a", {}]\n'):
        (tmp_path / "mail" / "changes.jsonl").write_text(text, encoding="utf-8")
        assert control_channel.changes() == []


WATCH = {"kind": "watch", "seconds": 60, "agent": True}
KEEP, SHOW = {"kind": "keep_agent"}, {"kind": "show_agent"}


class Clock:
    """Seconds that pass with each look, so that every rollout has something due."""

    def __init__(self, each: float = 0.0) -> None:
        self.now, self._each = 1000.0, each

    def __call__(self) -> float:
        self.now += self._each
        return self.now


def publication(folder: Path, made: TrainingPlan, *clocks: Clock) -> LivePublication:
    given = dict(zip(("clock", "processor"), clocks, strict=False))
    return LivePublication(LiveFolder(folder), env=made.env, train=made.train, **given)


class Written:
    """A publication whose clock stands still until it is set, and the files' times."""

    def __init__(self, folder: Path, processor: Clock | None = None) -> None:
        chosen, self.live = plan("ppo"), LiveFolder(folder)
        self.clock, self.processor = Clock(), processor or Clock()
        training = Training(chosen)
        self.policy, self.progress = training.model.policy, training.progress
        self.publication = publication(folder, chosen, self.clock, self.processor)

    def after(self, seconds: float) -> tuple[bool, bool]:
        """Whether state and agent are written at a rollout that begins so much later."""
        self.clock.now += seconds
        for file in (self.live.status, *self.live.agent.glob("*")):
            file.unlink(missing_ok=True)
        self.publication.publish(self.progress, step=7, policy=self.policy)
        return self.live.status.exists(), any(self.live.agent.glob("*"))


def test_agents_come_every_5_s_at_most_and_end_with_the_last_request(tmp_path: Path) -> None:
    written = Written(tmp_path / "live")
    assert written.after(0.0) == (False, False)
    written.publication.watch({"seconds": 15, "agent": True})
    assert written.after(0.0) == (True, True)
    assert written.after(STATUS_SECONDS / 2) == (False, False)
    assert written.after(STATUS_SECONDS) == (True, False)
    assert written.after(AGENT_SECONDS) == (True, True)
    assert written.after(15.0) == (False, False)
    written.publication.watch({"seconds": 15})
    assert written.after(AGENT_SECONDS) == (True, False)


def test_what_is_shown_takes_no_more_than_its_share_of_the_processor(tmp_path: Path) -> None:
    written = Written(tmp_path / "live", processor=Clock(0.02))  # s that showing takes
    written.publication.watch({"seconds": 60})
    shown, begun = 0, written.processor.now
    for _ in range(50):
        shown += written.after(STATUS_SECONDS)[0]
        written.processor.now += 1.0
    taken = written.processor.now - begun
    assert shown > 5
    assert 0.02 * (shown - 1) <= MAX_SHARE * taken


def test_a_disk_that_refuses_ends_no_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    written = Written(tmp_path / "file" / "live")
    written.publication.watch({"seconds": 15, "agent": True})
    written.publication.publish(written.progress, step=7, policy=written.policy)


CALL = 3  # of `requests`, one where each rollout begins
STEP = (CALL - 1) * 32 * ROWS


class Commanding(Asked):
    """A game that has commanded to save the agent when requests are asked for the `call`th time."""

    world: Any = None

    def requests(self) -> Sequence[tuple[str, Any]]:
        self.calls += 1
        if self.calls == self.call:
            self.world.save_commands = 2
        return []


class Asking:
    """A training that is asked for its agent, by any algorithm."""

    def __init__(
        self, folder: Path, *documents: Any, algo: str = "hybrid_ppo", call: int = CALL
    ) -> None:
        chosen = plan(algo, total_steps=4 * 32 * ROWS)
        self.asked = Asked(*documents, call=call)
        self.tracker, self.live = MemoryTracker(), LiveFolder(folder / "live")
        self.training = Training(chosen)
        self.links = RunLinks(
            requests=self.asked,
            live=publication(folder / "live", chosen, Clock(2.0), Clock()),
            agents=AgentsOnRequest(self.tracker, env=chosen.env, train=chosen.train),
        )

    def learn(self, *, stop_after_asking: bool = False) -> str:
        def stop() -> bool:
            return stop_after_asking and self.asked.calls >= CALL

        return learn(self.training, should_stop=stop, links=self.links).state_sha256


def test_a_watched_training_alone_shows_its_state_and_its_agent(tmp_path: Path) -> None:
    asking = Asking(tmp_path, WATCH, algo="ppo", call=1)
    asking.learn()
    assert asking.asked.answers == {"0": {"watched_for": 60}}
    told = json.loads(asking.live.status.read_text())
    assert 0 < told["step"] <= told["total_steps"] == 4 * 32 * ROWS
    assert [one["name"] for one in told["lessons"]] == ["one"]
    assert told["targets"] == {"targets": ["goto"], "weights": [1.0], "locked": [False]}
    assert told["difficulty"]["goto"]["weights"] == [0.2] * 5
    assert told["steps_per_second"] > 0
    assert 0 < load_agent(asking.live.agent).about["step"] < 4 * 32 * ROWS


def test_an_odd_request_to_watch_is_refused(tmp_path: Path) -> None:
    odd = (None, "60", -1, 1e9, float("nan"))
    asking = Asking(tmp_path, *({"kind": "watch", "seconds": one} for one in odd))
    asking.learn()
    assert [*map(list, asking.asked.answers.values())] == [["error"]] * len(odd)


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_training_ends_in_the_same_weights_whether_its_agent_was_saved_and_watched_or_not(
    tmp_path: Path, algo: str
) -> None:
    asked = Asking(tmp_path, KEEP, SHOW, WATCH, algo=algo)
    alone = Asking(tmp_path / "alone", algo=algo)
    assert asked.learn() == alone.learn()
    assert len(asked.asked.answers) == 3
    assert alone.tracker.artifacts == {}
    assert not alone.live.path.exists()


def test_what_is_saved_is_the_present_agent_under_the_name_of_its_step(tmp_path: Path) -> None:
    asking = Asking(tmp_path, KEEP, SHOW)
    asking.learn(stop_after_asking=True)
    name, about = f"step-{STEP}", {"step": STEP, "lesson": 1}
    assert [*asking.asked.answers.values()] == [{**about, "name": name}, about]
    assert saved_agents(asking.tracker.tags) == (name,)
    folder = tmp_path / "kept"
    folder.mkdir()
    for path, content in asking.tracker.artifacts.items():
        assert path.startswith(f"agent/{name}/")
        (folder / Path(path).name).write_bytes(content)
    asking.training.save_agents(tmp_path / "now")
    present = load_file(tmp_path / "now" / "last" / WEIGHTS)
    for place in (folder, asking.live.agent):
        assert load_agent(place).about == about
        found = load_file(place / WEIGHTS)
        assert found.keys() == present.keys()
        assert all(th.equal(found[key], present[key]) for key in present)


@pytest.mark.parametrize(
    ("call", "updates"),
    [(1, 1), (CALL, CALL - 1), (5, 4)],
    ids=["before the first rollout", "in a rollout", "in the last"],
)
def test_a_game_that_commands_it_has_the_agent_saved_once_after_the_next_update(
    tmp_path: Path, call: int, updates: int
) -> None:
    asking, heard = Asking(tmp_path), Listener()
    commanding = Commanding(call=call)
    commanding.world = asking.training.env.world
    learn(asking.training, observer=heard, links=replace(asking.links, requests=commanding))
    name = f"step-{updates * 32 * ROWS}"
    assert saved_agents(asking.tracker.tags) == (name,)
    assert heard.notices == [f"the game asked to save the agent: it is saved as {name}"]
    assert commanding.calls == 5


def test_a_disk_that_refuses_an_agent_is_an_answer_and_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(tmp_path, KEEP, SHOW)
    (tmp_path / "live").write_text("in the way")
    monkeypatch.setattr(asking.tracker, "log_file", lambda path, folder="": False)
    asking.learn(stop_after_asking=True)
    kept, shown = asking.asked.answers.values()
    told = "no agent was saved: the disk has no room for it"
    assert kept == {"error": told}
    assert shown == {"error": "the disk did not take the agent"}
    assert asking.tracker.tags == {}
    links, heard = replace(asking.links, requests=None), Listener()
    asking.training.env.world.save_commands = 1  # type: ignore[attr-defined]
    learn(asking.training, observer=heard, links=links)
    assert heard.notices == [f"the game asked to save the agent: {told}"]


def test_agents_are_listed_by_rising_step_and_odd_tags_are_none() -> None:
    tags = ["step-900", "step-1024", "step-007", "step-", "step-x", "best", "step-³"]
    assert saved_agents({f"lab.agent.{one}": "" for one in tags}) == ("step-900", "step-1024")
