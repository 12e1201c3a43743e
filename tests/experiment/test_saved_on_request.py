"""An agent that a run saves on request while it trains is found by its name, then and later."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.agents import fetch_agent
from aimbot_lab.experiment.runs.result import RESULT_NAME, RunResult
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.control_channel import ControlChannel
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, find_run
from aimbot_lab.tracking.run_folder import living_folders
from aimbot_lab.tracking.tracker import saved_agents
from aimbot_lab.training.run_hooks import SilentObserver

CURRICULUM = """
name: tiny
env: {num_envs: 16, goto_win_radius: 12.0, time_limit: 1.0}
lessons: [{name: only, targets: {goto: 1}, completion_criteria: {threshold: 0.999}}]
train: {total_steps: 100_000_000, n_steps: 32, batch_size: 512, n_epochs: 1, network: {layers: [8]},
        torch_threads: 1}
tracking: {experiment: tests}
"""


class Asking:
    """Asks the run for its agent, looks whether it is found, and stops it then."""

    answer: Any = None
    found: Any = None

    def __init__(self, data: DataFolder) -> None:
        self.data, self.key = data, ""

    def should_stop(self) -> bool:
        (folder,) = living_folders(self.data)
        channel, run_id = ControlChannel(folder.path), str(folder.run_id)
        if not self.key:
            with pytest.raises(LabError) as refused:
                fetch_agent(run_id, "last", data_folder=self.data)
            self.refused = str(refused.value)
            self.key = channel.send({"kind": "keep_agent"})
        elif self.answer is None:
            self.answer = channel.wait(self.key, 0.0, still_open=lambda: True)
        else:
            with suppress(LabError):  # it is on its way to the store
                self.found = fetch_agent(run_id, self.answer["name"], data_folder=self.data)
        return self.found is not None


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> tuple[Asking, RunResult]:
    folder = tmp_path_factory.mktemp("asked")
    (folder / "tiny.yaml").write_text(CURRICULUM)
    asking = Asking(DataFolder(folder / "data"))
    request = RunRequest(load_curriculum(folder / "tiny.yaml"), asking.data)
    result = run_curriculum(request, SilentObserver(), should_stop=asking.should_stop)
    return asking, result


def test_an_agent_saved_on_request_is_found_while_the_run_trains_and_evaluated_by_its_name(
    asking: tuple[Asking, RunResult],
) -> None:
    asked, result = asking
    name = asked.answer["name"]
    assert asked.found.which == name == f"step-{asked.answer['step']}"
    assert asked.found.step == asked.answer["step"]
    assert (asked.found.run.status, asked.found.config.name) == ("RUNNING", "tiny")
    assert "the button Save agent of aimbot-lab panel saves one before" in asked.refused
    assert saved_agents(find_run(asked.data, result.run_id).tags) == (name,)
    words = ["evaluate", result.run_id[:8], "--agent", name, "--episodes", "2", "--no-baselines"]
    done = CliRunner().invoke(cli, [*words, "--json", "--data-dir", str(asked.data.root)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["agent"] == name
    with pytest.raises(LabError, match=f"no step-1 agent .*: it was asked to save {name}$"):
        fetch_agent(result.run_id, "step-1", data_folder=asked.data)


def test_no_agent_bears_another_name(tmp_path: Path) -> None:
    for name in ("first", "step-", "step-01", "../last"):
        words = ["evaluate", "x", "--agent", name, "--data-dir", str(tmp_path)]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 2
        assert "must be best, last, or step-N" in done.output


def test_a_run_keeps_what_it_came_to_for_programs(asking: tuple[Asking, RunResult]) -> None:
    asked, result = asking
    kept = json.loads(download_artifact(asked.data, result.run_id, name=RESULT_NAME).read_bytes())
    said = json.loads(json.dumps(result.as_json()))
    assert kept == {key: said[key] for key in kept}
    assert {"lessons", "cells", "steps", "status", "seed"} <= kept.keys()
    assert not {"seconds", "run_id", "tracking_uri"} & kept.keys()
