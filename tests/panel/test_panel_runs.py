"""Which runs the panel lists, and how requests reach them."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.panel.server.loading import Loader
from aimbot_lab.panel.server.runs.live_run import LiveRun
from aimbot_lab.panel.server.runs.run_list import RunLine, RunList
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.owner import this_process
from aimbot_lab.tracking.runs.run_folder import create_run_folder

TRIAL, OWN = "a" * 32, "b" * 32


def test_trials_of_a_sweep_are_not_listed_as_runs(tmp_path: Path) -> None:
    data_folder = DataFolder(tmp_path)
    for run_id in (TRIAL, OWN):
        create_run_folder(data_folder, this_process(run_id, None)).named(run_id).release()
    runs = RunList(data_folder, tracking_uri=None, loader=Loader())
    runs._store_wanted = False
    assert asyncio.run(runs.look()) == []
    runs._stored = {OWN: RunLine(OWN, "goto seed 1", "FINISHED", 1)}
    assert [line.run_id for line in asyncio.run(runs.look())] == [OWN]


def test_that_there_are_no_runs_is_known_once_the_store_was_asked(tmp_path: Path) -> None:
    runs = RunList(DataFolder(tmp_path), tracking_uri=None, loader=Loader(lambda name: None))

    async def looks() -> tuple[bool, bool]:
        before = await runs.listed()
        assert runs._asking is not None
        await runs._asking
        return before.complete, (await runs.listed()).complete

    assert asyncio.run(looks()) == (False, True)


class OneRun:
    """A list of the one run in `path`, which trains."""

    is_free = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, run_id: str) -> "OneRun":
        return self


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
