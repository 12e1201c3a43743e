"""Which runs the panel lists."""

import asyncio
from pathlib import Path

from aimbot_lab.panel.server.loading import Loader
from aimbot_lab.panel.server.runs.run_list import RunLine, RunList
from aimbot_lab.tracking.data_folder import DataFolder
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
