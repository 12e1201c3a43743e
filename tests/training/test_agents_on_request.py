"""A training shows or keeps its present agent where that is asked for, and nothing else changes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch as th
from safetensors.torch import load_file
from tiny_training import ROWS, Asked, Listener, Sink, plan

from aimbot_lab.experiment.runs.agents import AgentsOnRequest
from aimbot_lab.tracking.control_channel import LiveFolder
from aimbot_lab.tracking.tracker import MemoryTracker, saved_agents
from aimbot_lab.training.agents.agent_files import WEIGHTS, load_agent
from aimbot_lab.training.callbacks.assembly import (
    AGENT_SECONDS,
    MAX_SHARE,
    STATUS_SECONDS,
    LivePublication,
)
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver, TrainingOutcome
from aimbot_lab.training.training import Training

STEPS = 1536  # three rollouts
WATCH = {"kind": "watch", "seconds": 60, "agent": True}


class Clock:
    """Seconds that pass with each look, so that every rollout has something due."""

    def __init__(self, each: float = 0.0) -> None:
        self.now, self._each = 1000.0, each

    def __call__(self) -> float:
        self.now += self._each
        return self.now


def learned(folder: Path, *documents: Any, each: float = 2.0) -> tuple[TrainingOutcome, Asked]:
    chosen, asked = plan("ppo", total_steps=STEPS), Asked(*documents)
    live = LivePublication(
        LiveFolder(folder), env=chosen.env, train=chosen.train, clock=Clock(each), processor=Clock()
    )
    links = RunLinks(requests=asked, live=live)
    return Training(chosen).learn(Sink(), SilentObserver(), lambda: False, links=links), asked


def test_a_watched_training_alone_shows_its_state_and_its_agent_and_learns_the_same(
    tmp_path: Path,
) -> None:
    shown, asked = learned(tmp_path / "live", WATCH)
    alone, _ = learned(tmp_path / "none")
    assert shown.state_sha256 == alone.state_sha256
    assert not (tmp_path / "none").exists()
    assert asked.answers == {"0": {"watched_for": 60}}
    told = json.loads((tmp_path / "live" / "status.json").read_text())
    assert 0 < told["step"] <= told["total_steps"] == STEPS
    assert [one["name"] for one in told["lessons"]] == ["one"]
    assert told["targets"] == {"targets": ["goto"], "weights": [1.0], "locked": [False]}
    assert told["difficulty"]["goto"]["weights"] == [0.2] * 5
    assert told["steps_per_second"] > 0
    saved = load_agent(tmp_path / "live" / "agent")
    assert 0 < saved.about["step"] < STEPS


def test_an_odd_request_to_watch_is_refused(tmp_path: Path) -> None:
    odd = (None, "60", -1, 1e9, float("nan"))
    _, asked = learned(tmp_path / "live", *({"kind": "watch", "seconds": one} for one in odd))
    assert [*map(list, asked.answers.values())] == [["error"]] * len(odd)


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


CALL = 3  # of `requests`, one where each rollout begins
STEP = (CALL - 1) * 32 * ROWS


class Commanding(Asked):
    """A game that has commanded to save the agent when requests are asked for the `call`th time."""

    def __init__(self, call: int) -> None:
        super().__init__(call=call)
        self.world: Any = None

    def requests(self) -> Sequence[tuple[str, Any]]:
        self.calls += 1
        if self.calls == self.call:
            self.world.save_commands = 2
        return []


class Asking:
    """A training that is asked for its agent, by any algorithm."""

    def __init__(self, folder: Path, *kinds: str, algo: str = "hybrid_ppo") -> None:
        chosen = plan(algo, total_steps=4 * 32 * ROWS)
        self.asked = Asked(*({"kind": kind} for kind in kinds), call=CALL)
        self.tracker, self.live = MemoryTracker(), LiveFolder(folder / "live")
        self.training = Training(chosen)
        self.links = RunLinks(
            requests=self.asked,
            live=LivePublication(self.live, env=chosen.env, train=chosen.train),
            agents=AgentsOnRequest(self.tracker, env=chosen.env, train=chosen.train),
        )

    def learn(self, *, stop_after_asking: bool = False) -> str:
        def stop() -> bool:
            return stop_after_asking and self.asked.calls >= CALL

        return self.training.learn(Sink(), SilentObserver(), stop, links=self.links).state_sha256


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_training_ends_in_the_same_weights_whether_its_agent_was_saved_or_not(
    tmp_path: Path, algo: str
) -> None:
    asked = Asking(tmp_path, "keep_agent", "show_agent", algo=algo)
    alone = Asking(tmp_path / "alone", algo=algo)
    assert asked.learn() == alone.learn()
    assert len(asked.asked.answers) == 2
    assert alone.tracker.artifacts == {}
    assert not alone.live.path.exists()


def test_what_is_saved_is_the_present_agent_under_the_name_of_its_step(tmp_path: Path) -> None:
    asking = Asking(tmp_path, "keep_agent", "show_agent")
    asking.learn(stop_after_asking=True)
    name = f"step-{STEP}"
    about = {"step": STEP, "lesson": 1}
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
    commanding = Commanding(call)
    commanding.world = asking.training.env.world
    links = replace(asking.links, requests=commanding)
    asking.training.learn(Sink(), heard, lambda: False, links=links)
    name = f"step-{updates * 32 * ROWS}"
    assert saved_agents(asking.tracker.tags) == (name,)
    assert heard.notices == [f"the game asked to save the agent: it is saved as {name}"]
    assert commanding.calls == 5


def test_a_disk_that_refuses_an_agent_is_an_answer_and_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(tmp_path, "keep_agent", "show_agent")
    (tmp_path / "live").write_text("in the way")
    monkeypatch.setattr(asking.tracker, "log_file", lambda path, folder="": False)
    asking.learn(stop_after_asking=True)
    kept, shown = asking.asked.answers.values()
    assert kept == {"error": "no agent was saved: the disk has no room for it"}
    assert shown == {"error": "the disk did not take the agent"}
    assert asking.tracker.tags == {}
    links, heard = replace(asking.links, requests=None), Listener()
    asking.training.env.world.save_commands = 1  # type: ignore[attr-defined]
    asking.training.learn(Sink(), heard, lambda: False, links=links)
    assert heard.notices == [
        "the game asked to save the agent: no agent was saved: the disk has no room for it"
    ]


def test_agents_are_listed_by_rising_step_and_odd_tags_are_none() -> None:
    tags = ["step-900", "step-1024", "step-007", "step-", "step-x", "best", "step-³"]
    assert saved_agents({f"lab.agent.{one}": "" for one in tags}) == ("step-900", "step-1024")
