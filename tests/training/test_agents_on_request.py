"""The present agent of a training, kept or shown where that is asked for: nothing else changes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch as th
from safetensors.torch import load_file
from tiny_training import ROWS, Sink, plan

from aimbot_lab.experiment.runs.agents import AgentsOnRequest
from aimbot_lab.tracking.control_channel import LiveFolder
from aimbot_lab.tracking.run_summary import is_agent_name, saved_agents
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.agents.agent_files import WEIGHTS, load_agent
from aimbot_lab.training.callbacks.live_publication import LivePublication
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver
from aimbot_lab.training.training import Training

CALL = 3  # of `requests`, one where each rollout begins
STEP = (CALL - 1) * 32 * ROWS


class AskedLater:
    """Requests that come after so many steps."""

    def __init__(self, *documents: Mapping[str, Any]) -> None:
        self.documents = documents
        self.answers: list[Mapping[str, Any]] = []
        self.calls = 0

    def requests(self) -> Sequence[tuple[str, Any]]:
        self.calls += 1
        return [("0", one) for one in self.documents] if self.calls == CALL else []

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        self.answers.append(document)

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        pass

    def changes(self) -> Sequence[tuple[int, Any]]:
        return []


class Commanding(AskedLater):
    """A game that has commanded to save the agent when requests are asked for the `call`th time."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.call, self.world = call, None

    def requests(self) -> Sequence[tuple[str, Any]]:
        self.calls += 1
        if self.calls == self.call:
            self.world.save_commands = 2  # type: ignore[attr-defined]
        return []


class Heard(SilentObserver):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


class Asking:
    """A training that is asked for its agent, by any algorithm."""

    def __init__(self, folder: Path, *kinds: str, algo: str = "hybrid_ppo") -> None:
        chosen = plan(algo)
        self.asked = AskedLater(*({"kind": kind} for kind in kinds))
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


@pytest.mark.parametrize("algo", ["hybrid_ppo", "ppo", "dqn"])
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
    assert asking.asked.answers == [{**about, "name": name}, about]
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
    [(1, 1), (CALL, CALL - 1), (6, 5), (7, 6)],
    ids=["before the first rollout", "in a rollout", "in the last but one", "in the last"],
)
def test_a_game_that_commands_it_has_the_agent_saved_once_after_the_next_update(
    tmp_path: Path, call: int, updates: int
) -> None:
    asking, heard = Asking(tmp_path), Heard()
    commanding = Commanding(call)
    commanding.world = asking.training.env.world
    links = replace(asking.links, requests=commanding)
    asking.training.learn(Sink(), heard, lambda: False, links=links)
    name = f"step-{updates * 32 * ROWS}"
    assert saved_agents(asking.tracker.tags) == (name,)
    assert heard.notices == [f"the game commands to save the agent: it is saved as {name}"]
    assert commanding.calls == 7


def test_a_disk_that_refuses_an_agent_is_an_answer_and_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(tmp_path, "keep_agent", "show_agent")
    (tmp_path / "live").write_text("in the way")
    monkeypatch.setattr(asking.tracker, "log_file", lambda path, folder="": False)
    asking.learn(stop_after_asking=True)
    kept, shown = asking.asked.answers
    assert kept == {"error": "no agent was saved: the disk has no room for it"}
    assert shown == {"error": "the disk did not take the agent"}
    assert asking.tracker.tags == {}
    links, heard = replace(asking.links, requests=None), Heard()
    asking.training.env.world.save_commands = 1  # type: ignore[attr-defined]
    asking.training.learn(Sink(), heard, lambda: False, links=links)
    assert heard.notices == [
        "the game commands to save the agent: no agent was saved: the disk has no room for it"
    ]


def test_agents_are_listed_by_rising_step_and_odd_tags_are_none() -> None:
    tags = ["step-900", "step-1024", "step-007", "step-", "step-x", "best", "step-³"]
    assert saved_agents({f"lab.agent.{one}": "lesson 1" for one in tags}) == (
        "step-900",
        "step-1024",
    )
    assert [is_agent_name(one) for one in ("best", "last", "step-0", "first", "", 7)] == [
        *(True, True, True),
        *(False, False, False),
    ]
