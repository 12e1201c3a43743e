"""A run keeps its map: found beside the curriculum, read from the run ever after, told by hash."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.worlds.gorge import map_choice
from aimbot_lab.worlds.gorge.maps import load_map
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.registry import content_fault, content_of, settings_with
from tests.cli.tiny_runs import CURRICULUM as IN_ARENA
from tests.cli.tiny_runs import invoke, invoke_plainly, train, write
from tests.gorge.gorge_runs import curriculum, ship_another_map, write_map


@pytest.fixture(autouse=True)
def fresh_maps() -> Iterator[None]:
    yield
    map_choice._loaded.cache_clear()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A curriculum with a map of its own beside it, seen from another working directory."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    write_map(project / "canyon.yaml")
    (project / "walk.yaml").write_text(curriculum("canyon.yaml"), encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    return project


def test_a_run_goes_on_after_its_map_was_deleted(project: Path, tmp_path: Path) -> None:
    """Trained, evaluated, resumed to the same bits, recorded, exported; all know its hash."""
    data, longer = tmp_path / "data", ("--set", "train.total_steps=384")
    unbroken = train(data, project / "walk.yaml", *longer)["state_sha256"]
    run = train(data, project / "walk.yaml")["run_id"]
    there = load_map(project / "canyon.yaml")
    shutil.rmtree(project)
    found = invoke(data, "evaluate", run, "--episodes", 4, "--json").document
    known = {"noun": "map", "name": there.name, "sha256": there.content_hash}
    assert found["content"] == known
    resumed = invoke(data, "resume", run, *longer, "--json", wanted=1).document
    assert resumed["state_sha256"] == unbroken
    invoke(data, "export", run, "-o", "agent")
    assert json.loads(Path("agent/agent.json").read_text())["content"] == known
    checkpoint = max((data / "runs" / run / "checkpoints").glob("step-*"))
    assert json.loads(checkpoint.read_bytes().splitlines()[1])["content"] == known
    invoke(data, "record", run, "-o", "one.json")
    assert json.loads(Path("one.json").read_text())["content"] == known
    assert invoke_plainly("replay", "one.json", "--json").document["target"] == "walk"


def test_what_was_recorded_on_another_map_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version may ship another map under the same name."""
    monkeypatch.chdir(tmp_path)
    data, shipped = tmp_path / "data", tmp_path / "shipped"
    shipped.mkdir()
    run = train(data, write(tmp_path, text=curriculum()))["run_id"]
    invoke(data, "export", run, "-o", "agent")
    invoke(data, "record", run, "-o", "one.json")
    before = load_map("gorge").content_hash[:6]
    ship_another_map(monkeypatch, shipped)
    after = load_map(shipped / "gorge.yaml")
    what = f"recorded on another map (gorge {before}, here {after.name} {after.content_hash[:6]})"
    with pytest.raises(LabError) as caught:
        load_agent("agent")
    assert str(caught.value) == f"agent: {what}"
    assert what in invoke(data, "evaluate", run, wanted=1).said
    assert f"one.json: {what}" in invoke_plainly("replay", "one.json", wanted=2).said
    refused = invoke(data, "resume", run, "--set", "train.total_steps=384", wanted=2)
    checkpoint = max((data / "runs" / run / "checkpoints").glob("step-*"))
    assert refused.said.splitlines()[-1] == f"{checkpoint}: {what}"


def test_a_map_of_the_same_name_is_told_by_its_hash() -> None:
    settings = GorgeSettings()
    here = content_of(settings)
    assert here is not None
    assert content_fault(here, settings) is content_fault(None, settings) is None  # an older one's
    line = f"recorded on another map (gorge 3f2a9c, here {here['sha256'][:6]})"
    assert content_fault({**here, "sha256": "3f2a9c" + "0" * 58}, settings) == line
    assert "another map" in str(content_fault(["damaged"], settings))
    assert content_of(settings_with()) is None


def test_agents_of_another_world_are_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    arena = train(data, write(tmp_path, text=IN_ARENA), "--set", "train.total_steps=512")["run_id"]
    file = write(tmp_path, "gorge.yaml", curriculum())
    line = f"run {arena[:12]} trained in world arena, not in gorge"
    refused = invoke(data, "run", file, "--init-from", arena, wanted=2)
    assert refused.said.splitlines()[-1] == line
    gorge = train(data, file)["run_id"]
    line = f"run {arena[:8]} trained in world arena, not in gorge"
    assert line in invoke(data, "compare", gorge, arena, "--episodes", 4, wanted=2).said
