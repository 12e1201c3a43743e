"""Runs that begin and end while no page is open."""

import json
from pathlib import Path
from typing import Any

import psutil
from browser_page import Browser, needs_chromium, wait_for_text
from click.testing import CliRunner
from panel_server import Page, running_panel

from aimbot_lab.cli.main import cli
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings

pytestmark = needs_chromium

SHORT = """
# Passed at once.
name: short
env: {world: gymnasium, id: CartPole-v1, num_envs: 8, win: {return_above: 15}}
lessons: [{name: balance, completion_criteria: {threshold: 0.05, min_lesson_length: 200}}]
train: {total_steps: 20_000, n_steps: 64, batch_size: 128, n_epochs: 1, network: {layers: [8]}}
"""


def command_line(*words: str) -> str:
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def listed_of(page: Page, holds: Any) -> dict[str, Any]:
    """The runs by id, once the page is told of some that `holds`."""
    told = page.wait_for(
        "training", "runs", lambda body: holds([r["run_id"] for r in body["runs"]])
    )
    assert told["complete"], told["fault"]
    return {run["run_id"]: run for run in told["runs"]}


def test_runs_that_nobody_saw_are_listed_as_the_store_has_them_and_deleted_ones_go(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "short.yaml").write_text(SHORT)
    place = "--data-dir", str(tmp_path / "data")
    with running_panel(tmp_path / "data", here=tmp_path) as panel:
        with browser.page(panel) as page:
            page.locator(".card", has_text="short.yaml").click()
            wait_for_text(page, ".held", "begins since")
        begun = json.loads((tmp_path / "data" / "panel" / "started.json").read_text())
        psutil.Process(begun["pid"]).wait()  # no page is open
        (stored,) = json.loads(command_line("runs", "--json", *place))
        run = stored["run_id"]
        with browser.page(panel) as page:
            wait_for_text(page, ".held", "^short.yaml has ended")
            page.locator(".held a").click()
            page.wait_for_url(f"**/#training/{run}")
            wait_for_text(page, ".run-link.FINISHED", f"^{stored['name']}all lessons passed")
            wait_for_text(page, ".run-head .state", "^all lessons passed$")
            wait_for_text(page, ".outcome", f"^{stored['tags']['lab.outcome']}$")
        with panel.page() as page:
            page.ask("training", "list")
            line = listed_of(page, lambda ids: ids == [run])[run]
            assert (line["name"], line["state"]) == (stored["name"], stored["status"])
            assert line["win_rate"] == stored["win_rate"]["value"]
            description = RunDescription("of a terminal")
            other = open_run(DataFolder(tmp_path / "data"), TrackingSettings(), description)
            other.finish("KILLED")
            lines = listed_of(page, lambda ids: len(ids) == 2)  # while the page looks
            assert lines[other.run_id]["state"] == "KILLED"
            command_line("delete", run, "--yes", *place)
            assert listed_of(page, lambda ids: len(ids) == 1).keys() == {other.run_id}
