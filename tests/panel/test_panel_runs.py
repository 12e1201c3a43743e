"""Runs and sweeps that the panel lists, requests to them, and what a page's session loads."""

import asyncio
import json
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import aclosing
from importlib.util import find_spec
from itertools import count
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from panel_server import Page, running_panel
from planted_sweep import KEYS, add_trial, planted

from aimbot_lab.panel.server import messages
from aimbot_lab.panel.server.lab import Lab, Session
from aimbot_lab.panel.server.messages import Loader
from aimbot_lab.panel.server.parts.watch import _Theatre
from aimbot_lab.panel.server.run_list import LiveRun, RunLine, RunList, Runs
from aimbot_lab.panel.server.run_report import report_feed
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.tracking import history
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.run_folder import create_run_folder, this_process
from aimbot_lab.tracking.settings import TrackingSettings

TRIAL, OWN = "a" * 32, "b" * 32


def test_trials_of_a_sweep_are_not_listed_as_runs(tmp_path: Path) -> None:
    data_folder = DataFolder(tmp_path)
    for run_id in (TRIAL, OWN):
        create_run_folder(data_folder, this_process(run_id, None)).named(run_id).release()
    runs = RunList(data_folder, tracking_uri=None, loader=Loader())
    runs._due = inf
    assert asyncio.run(runs.look()) == []
    runs._stored = {OWN: RunLine(OWN, "goto seed 1", "FINISHED", 1)}
    assert [line.run_id for line in asyncio.run(runs.look())] == [OWN]


def unloadable(name: str) -> object:
    raise ImportError(f"no {name}")


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (lambda name: None, ""),
        (unloadable, "the panel failed: ImportError: no aimbot_lab.tracking.mlflow_store"),
    ],
)
def test_that_there_are_no_runs_is_known_once_the_store_was_asked_or_can_not_be_read(
    tmp_path: Path, load: Any, fault: str
) -> None:
    async def looks() -> tuple[Runs, Runs]:
        runs = RunList(DataFolder(tmp_path), tracking_uri=None, loader=Loader(load))
        before = await runs.listed()
        assert runs._asking is not None
        await asyncio.wait([runs._asking])
        return before, await runs.listed()

    before, after = asyncio.run(looks())
    assert (before.complete, after.complete, after.fault) == (False, True, fault)


class OneRun:
    """A list of the one run in `path`, which trains."""

    is_free = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folders = {"abc": self}

    def find(self, run_id: str) -> "OneRun":
        return self

    def line(self, run_id: str) -> RunLine:
        return RunLine(run_id, "one", "died", 1)


def test_a_run_that_was_resumed_is_reported_as_it_ended_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, result = DataFolder(tmp_path / "data"), tmp_path / "result.json"
    ended = {"seed": 1, "steps": 10, "lessons": [], "cells": [], "regressions": []}
    result.write_text(json.dumps(ended))
    monkeypatch.setattr(history, "download_artifact", lambda *_, **__: result)
    tracker = open_run(data, TrackingSettings(), RunDescription("new"))
    tracker.finish("FAILED")
    run, lab = tracker.run_id, Lab(data, here=tmp_path)

    async def reported() -> list[int]:
        feed = report_feed(lab, run)
        async with aclosing(feed.follow()) as told:
            before = await anext(told)
            result.write_text(json.dumps({**ended, "steps": 20}))
            history.label_run(data, run, tags={"part": "two"})  # as a new end changes its line
            lab.run_list.ask_store_again()
            while not getattr(lab.run_list.line(run), "tags", None):
                await lab.run_list.look()
            await feed.look_now()
            found = before.result, (await anext(told)).result
        return [one.steps for one in found if one is not None]

    assert asyncio.run(reported()) == [10, 20]


def test_a_look_that_its_page_broke_off_leaves_the_next_look_whole(tmp_path: Path) -> None:
    """Watch, leave, and watch again at once."""
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(OneRun):
        def line(self, run_id: str) -> RunLine:
            begun.set()
            goes_on.wait(300)
            return super().line(run_id)

    async def run() -> dict[str, Any]:
        slow: Any = Slow(tmp_path)
        live = LiveRun(slow, "abc")
        broken_off = asyncio.create_task(live.look())
        await asyncio.to_thread(begun.wait, 300)
        broken_off.cancel()
        await asyncio.wait([broken_off])
        goes_on.set()
        return await live.look()

    assert asyncio.run(run())["state"] == "died"


def test_what_is_watched_makes_one_decision_at_a_time_though_a_look_was_broken_off() -> None:
    begun, goes_on, under_way, at_once = threading.Event(), threading.Event(), [0], [0]

    def decide() -> dict[str, Any]:
        under_way[0] += 1
        at_once[0] = max(at_once[0], under_way[0])
        begun.set()
        goes_on.wait(300)
        under_way[0] -= 1
        return {"period": 0.0}

    async def run() -> None:
        run_of = SimpleNamespace(wants_agent_until=0.0)
        lab: Any = SimpleNamespace(
            loader=Loader(lambda name: None), live_run=lambda run: run_of, tracking_uri=None
        )
        theatre: Any = _Theatre(lab, "abc", "")
        theatre._agent = SimpleNamespace(play=SimpleNamespace(decide=decide))
        broken_off = asyncio.create_task(theatre._look())
        await asyncio.to_thread(begun.wait, 300)
        broken_off.cancel()
        begun.clear()
        again = asyncio.create_task(theatre._look())
        await asyncio.to_thread(begun.wait, 0.2)  # which it would by now, were it not held up
        goes_on.set()
        await again

    asyncio.run(run())
    assert at_once == [1]


STATUS = {
    **{"step": 1, "total_steps": 2, "steps_per_second": None, "lesson": 0, "finished": False},
    **{"lessons": [], "episodes": 0, "window": 0, "threshold": 0.5, "min_lesson_length": 1},
    "win_rate": {"win_rate": None, "lower": 0.0, "upper": 1.0},
    **{"log_evidence": None, "log_bound": None, "measured": None, "cells": []},
    **{"has_wins": True, "mean_return": None},
    "targets": {"targets": ["goto"], "weights": [1.0], "locked": [False]},
    "difficulty": {"goto": {"weights": [1.0, 0.0, 0.0, 0.0, 0.0], "locked": [False] * 5}},
}


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "\xff", "[" * 100_000, json.dumps(STATUS)[:-9]),
        *(json.dumps({**STATUS, key: value}) for key in STATUS for value in ("x", {"a": [1]})),
        json.dumps({**STATUS, "targets": {**STATUS["targets"], "weights": {"goto": 1}}}),
        json.dumps({**STATUS, "difficulty": {"goto": {"weights": [2.0], "locked": []}}}),
    ],
)
def test_a_damaged_state_of_a_run_is_said_in_a_line(tmp_path: Path, text: str) -> None:
    place = LiveFolder.of(tmp_path).status
    place.parent.mkdir()
    place.write_text(text, "latin-1")
    one: Any = OneRun(tmp_path)
    live = LiveRun(one, "abc")
    found = asyncio.run(live.look())
    assert (found["status"], found["state"]) == (None, "died")
    assert found["fault"].startswith("status.json")
    assert "\n" not in found["fault"]
    place.write_text(json.dumps(STATUS))
    os.utime(place, ns=(0, 0))
    found = asyncio.run(live.look())
    told = json.loads(json.dumps(found["status"]))
    assert (told, found["fault"]) == ({**STATUS, "evidence_words": ""}, "")
    place.write_text(json.dumps({**STATUS, "log_evidence": 0.3, "log_bound": 2.9957322735539909}))
    os.utime(place, ns=(1, 1))
    assert asyncio.run(live.look())["status"]["evidence_words"] == "1.35 of 20"


def test_requests_reach_a_run_in_the_order_in_which_pages_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, channel = count(), ControlChannel(tmp_path)

    async def in_thread(work: Any, *arguments: Any) -> Any:
        for _ in range(60 - 30 * next(calls)):  # the later, the sooner done
            await asyncio.sleep(0)
        return work(*arguments)

    async def run() -> list[int]:
        live: Any = LiveRun(OneRun(tmp_path), "abc")
        asked = [asyncio.create_task(live.ask({"number": number})) for number in range(3)]
        while len(found := channel.requests()) < 3:
            await asyncio.sleep(0)
        for key, _ in found:
            channel.answer(key, {})
        await asyncio.gather(*asked)
        return [document["number"] for _, document in found]

    monkeypatch.setattr(asyncio, "to_thread", in_thread)
    assert asyncio.run(run()) == [0, 1, 2]


@pytest.fixture
def session() -> Session:
    nothing: Any = None
    return Session(nothing, nothing, nothing)


def test_what_is_ended_before_it_began_leaves_nothing_behind(session: Session) -> None:
    """A page that is closed at once."""

    async def work() -> None:
        raise AssertionError("it must not begin")

    async def opened_and_closed() -> None:
        session.go_on("play", work())
        session.leave("play")
        await asyncio.sleep(0)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(opened_and_closed())
    assert [str(one.message) for one in told] == []


def test_no_two_threads_import_at_the_same_time_and_each_module_once() -> None:
    at_work, both, loaded = threading.Semaphore(1), threading.Barrier(4), []

    def load(name: str) -> None:
        assert at_work.acquire(blocking=False), "two at a time"
        loaded.append(name)
        at_work.release()

    loader = Loader(load)

    def want(*modules: str) -> None:
        both.wait()
        loader.need(*modules)

    wanted = (("a", "b"), ("b", "a"), ("c", "a"), ("b", "c"))
    threads = [threading.Thread(target=want, args=modules) for modules in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(loaded) == ["a", "b", "c"]


def test_the_modules_that_are_loaded_so_exist() -> None:
    for name in (*messages.KERNELS, *messages.STORE, *messages.AGENTS, *messages.SWEEPS):
        assert find_spec(name) is not None


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    return planted(DataFolder(tmp_path))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with running_panel(tmp_path, here=tmp_path) as panel, panel.page() as opened:
        yield opened


def test_trials_show_as_they_end_with_the_best_so_far(record: SweepRecord, page: Page) -> None:
    add_trial(record, 0.25, first=0.5)
    page.ask("sweep", "list")
    (line,) = page.wait_for("sweep", "sweeps")["sweeps"]
    assert line["name"] == "planted"
    page.ask("sweep", "watch", name="planted")
    told = page.wait_for("sweep", "report")
    assert (told["ended"], told["total"], told["best"]) == (1, 30, 0)
    assert set(told["keys"]) == set(KEYS)
    add_trial(record, 0.75, first=2.0)
    told = page.wait_for("sweep", "report", lambda body: body["ended"] == 2)
    assert told["best"] == 1
    trial = told["trials"][1]
    assert (trial["value"], trial["state"]) == (0.75, "done")
    assert trial["values"][told["keys"].index(KEYS[0])] == 2.0


def test_a_name_that_was_not_listed_opens_nothing(page: Page, tmp_path: Path) -> None:
    for name in ("gone", "../runs", "/etc"):
        assert page.ask("sweep", "watch", name=name) == {"done": True}
        told = page.wait_for("sweep", "error")
        assert told["message"] == "that sweep is no longer in this data folder"
    assert not (tmp_path / "sweeps").exists()


def test_a_file_that_is_no_study_is_told_in_a_line(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "sweeps" / "odd"
    folder.mkdir(parents=True)
    (folder / "study.db").write_bytes(b"nothing like this")
    page.ask("sweep", "watch", name="odd")
    told = page.wait_for("sweep", "error")["message"]
    assert "\n" not in told
    assert "not a database" in told
