"""A training shows itself while it is watched, stops where it is asked to, and writes no more."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_training import Sink, plan

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.tracking.control_channel import LiveFolder
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.callbacks.live_publication import (
    AGENT_SECONDS,
    MAX_SHARE,
    STATUS_SECONDS,
    LivePublication,
    status,
)
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver, TrainingOutcome
from aimbot_lab.training.training import Training

WATCH = {"kind": "watch", "seconds": 60, "agent": True}


class Asked:
    """Requests that are there from the beginning."""

    def __init__(self, documents: Iterable[Any]) -> None:
        self.waiting = {str(number): one for number, one in enumerate(documents)}
        self.answers: dict[str, Mapping[str, Any]] = {}

    def requests(self) -> Sequence[tuple[str, Any]]:
        return list(self.waiting.items())

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        del self.waiting[key]
        self.answers[key] = document

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        pass

    def changes(self) -> Sequence[tuple[int, Any]]:
        return []


class Clock:
    """Seconds that pass with each look, so that every rollout has something due."""

    def __init__(self, each: float = 0.0) -> None:
        self.now, self._each = 1000.0, each

    def __call__(self) -> float:
        self.now += self._each
        return self.now


def learned(folder: Path, *documents: Any, each: float = 2.0) -> tuple[TrainingOutcome, Asked]:
    chosen, asked = plan("ppo"), Asked(documents)
    live = LivePublication(
        LiveFolder(folder),
        env=chosen.env,
        train=chosen.train,
        clock=Clock(each),
        processor=Clock(),
    )
    links = RunLinks(requests=asked, live=live)
    return Training(chosen).learn(Sink(), SilentObserver(), lambda: False, links=links), asked


def test_nothing_is_written_where_nobody_watches(tmp_path: Path) -> None:
    learned(tmp_path / "live")
    assert not (tmp_path / "live").exists()


def test_a_watched_training_shows_its_state_and_its_agent_and_learns_the_same(
    tmp_path: Path,
) -> None:
    shown, asked = learned(tmp_path / "live", WATCH)
    alone, _ = learned(tmp_path / "none")
    assert shown.state_sha256 == alone.state_sha256
    assert asked.answers == {"0": {"watched_for": 60}}
    told = json.loads((tmp_path / "live" / "status.json").read_text())
    assert 0 < told["step"] <= told["total_steps"] == 3072
    assert [one["name"] for one in told["lessons"]] == ["one"]
    assert told["targets"] == {"targets": ["goto"], "weights": [1.0], "locked": [False]}
    assert told["difficulty"]["goto"]["weights"] == [0.2] * 5
    assert told["steps_per_second"] > 0
    saved = load_agent(tmp_path / "live" / "agent")
    assert 0 < saved.about["step"] < 3072


def test_a_training_stops_where_it_is_asked_to(tmp_path: Path) -> None:
    ended, asked = learned(tmp_path / "live", {"kind": "stop"})
    assert ended.stopped
    assert asked.answers == {"0": {"stopping": True}}


@pytest.mark.parametrize("seconds", [None, "60", -1, 1e9, float("nan"), True])
def test_an_odd_request_to_watch_is_refused(tmp_path: Path, seconds: Any) -> None:
    _, asked = learned(tmp_path / "live", {"kind": "watch", "seconds": seconds})
    assert seconds is True or "error" in asked.answers["0"]


class Written:
    """A publication whose clock stands still until it is set, and the files' times."""

    def __init__(self, folder: Path, processor: Clock | None = None) -> None:
        chosen = plan("ppo")
        self.clock, self.live = Clock(), LiveFolder(folder)
        self.processor = processor or Clock()
        training = Training(chosen)
        self.policy, self.progress = training.model.policy, training.progress
        self.publication = LivePublication(
            self.live,
            env=chosen.env,
            train=chosen.train,
            clock=self.clock,
            processor=self.processor,
        )

    def after(self, seconds: float) -> tuple[bool, bool]:
        """Whether state and agent are written at a rollout that begins so much later."""
        self.clock.now += seconds
        for file in (self.live.status, *self.live.agent.glob("*")):
            file.unlink(missing_ok=True)
        self.publication.publish(self.progress, step=7, policy=self.policy)
        return self.live.status.exists(), self.live.agent.is_dir() and any(
            self.live.agent.iterdir()
        )


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


def test_a_state_is_plain_json(tmp_path: Path) -> None:
    progress: CurriculumProgress = Training(plan("ppo")).progress
    assert json.loads(json.dumps(status(progress), allow_nan=False))["lesson"] == 0
