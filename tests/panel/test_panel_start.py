"""What the start page offers, and that a choice holds: no training is started here."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.panel.server import trainings as offered
from aimbot_lab.panel.server.messages import Loader
from aimbot_lab.panel.server.trainings import Curricula, Started, Trainings
from aimbot_lab.shipped.named_files import CURRICULUM, shipped_names
from aimbot_lab.tracking import history
from aimbot_lab.tracking.data_folder import DataFolder

GOOD = """
# Good: a line about it. And another.
name: good
lessons: [{name: one, targets: {goto: 1}}]
"""


def test_the_shipped_curricula_come_first_by_their_targets(tmp_path: Path) -> None:
    found = Curricula(tmp_path).look()
    assert {one.key for one in found} == {f"shipped:{name}" for name in shipped_names(CURRICULUM)}
    main = [one.title for one in found if one.main]
    assert main[:4] == ["Train-Free", "Train-Goto", "Train-Attack", "Train-Mix"]
    assert [one.main for one in found] == sorted((one.main for one in found), reverse=True)
    assert all(one.about and not one.faults for one in found)


def test_own_files_are_offered_with_their_faults_as_check_gives_them(tmp_path: Path) -> None:
    folder = tmp_path / "curricula"
    folder.mkdir()
    (folder / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text("name: bad\nlessons: 7\nenv: {num_envs: x}\n")
    (tmp_path / "no_curriculum.yaml").write_text("a: 1\n")
    curricula = Curricula(tmp_path)
    own = {one.key: one for one in curricula.look() if not one.shipped}
    assert own.keys() == {"own:curricula/good.yaml", "own:bad.yaml"}
    good, bad = own["own:curricula/good.yaml"], own["own:bad.yaml"]
    assert (good.about, good.lessons, good.faults) == ("A line about it", ["one"], [])
    with pytest.raises(ConfigurationError) as refused:
        load_curriculum(tmp_path / "bad.yaml")
    assert bad.faults == list(refused.value.faults)
    assert curricula.path(good.key) == folder / "good.yaml"


def test_a_key_that_was_not_offered_leads_to_no_file(tmp_path: Path) -> None:
    curricula = Curricula(tmp_path)
    curricula.look()
    for key in ("own:../x.yaml", "/etc/passwd", "shipped:../../x", ""):
        with pytest.raises(ConfigurationError, match="not offered"):
            curricula.path(key)


def trainings_in(folder: Path) -> Trainings:
    """Those of a panel that has just begun."""
    return Trainings(DataFolder(folder), here=folder, loader=Loader(lambda name: None))


def remembered(folder: Path, **changes: object) -> Trainings:
    """What a panel that begins anew knows of a training, here of this very process."""
    process = psutil.Process()
    started = Started("Train-Goto", os.getpid(), process.create_time(), 1)
    (folder / "panel").mkdir()
    trainings_in(folder)._keep(replace(started, **changes))
    return trainings_in(folder)


def test_a_training_holds_also_after_the_panel_began_anew(tmp_path: Path) -> None:
    trainings = remembered(tmp_path)
    found = trainings.look()
    assert found is not None
    assert found.alive
    with pytest.raises(ConfigurationError, match="Train-Goto still trains; stop it first"):
        trainings.start(["run", "goto"], title="Train-Goto")


def test_of_starts_at_the_same_moment_one_begins_whatever_panel_it_is_of(tmp_path: Path) -> None:
    panels = [trainings_in(tmp_path) for _ in range(2)]
    at_once = Barrier(8)

    def start(number: int) -> Started | str:
        panel = panels[number % 2]
        panel.program = sys.executable, "-c", "import time; time.sleep(600)"
        at_once.wait()
        try:
            return panel.start([], title="Train-Goto")
        except ConfigurationError as error:
            return str(error)

    with ThreadPoolExecutor(8) as threads:
        ends = [*threads.map(start, range(8))]
    begun = [one for one in ends if isinstance(one, Started)]
    try:
        assert len(begun) == 1
        assert ends.count("Train-Goto still trains; stop it first") == 7
        assert [panel.look() for panel in panels] == [*begun, *begun]
    finally:
        for one in begun:
            os.kill(one.pid, signal.SIGKILL)


def test_a_training_whose_run_can_not_be_looked_up_is_not_said_to_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings = remembered(tmp_path, created=1.0, key="abc")
    monkeypatch.setattr(history, "list_runs", Mock(side_effect=StoreError("it is gone")))
    found = trainings.look()
    assert found is not None
    assert (found.alive, found.run_id, found.fault) == (False, None, "it is gone")
    monkeypatch.setattr(history, "list_runs", lambda *_, **__: [SimpleNamespace(run_id="r")])
    found = trainings.look()
    assert found is not None
    assert (found.alive, found.run_id, found.fault) == (False, "r", "")
    assert trainings_in(tmp_path).look() is None  # it had ended before this panel began


@pytest.mark.parametrize("text", ["{", '{"title": 1}', "null", "[" * 100_000])
def test_a_damaged_note_of_a_training_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "panel").mkdir()
    (tmp_path / "panel" / "started.json").write_text(text)
    assert trainings_in(tmp_path).look() is None


@pytest.mark.parametrize("given", [{"pid": -1}, {"pid": 2**70}, {"created": 1.0}])
def test_a_number_of_no_process_or_of_another_is_of_one_that_ended(
    tmp_path: Path, given: dict[str, float]
) -> None:
    found = remembered(tmp_path, **given).look()
    assert found is not None
    assert not found.alive


@pytest.mark.parametrize("raised", ["SystemExit(3)", "RuntimeError('no')"])
def test_a_module_that_raises_is_a_fault_of_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    def load(path: Path) -> object:
        if path.name == "raises.yaml":
            exec(f"raise {raised}")
        return load_curriculum(path)

    monkeypatch.setattr(offered, "load_curriculum", load)
    for name in ("good", "raises"):
        (tmp_path / f"{name}.yaml").write_text(GOOD)
    own = {one.title: one.faults for one in Curricula(tmp_path).look() if not one.shipped}
    assert own["good.yaml"] == []
    (line,) = own["raises.yaml"]
    assert line.startswith(
        f"{tmp_path}/raises.yaml: can't be read: {raised.split('(', maxsplit=1)[0]}"
    )
