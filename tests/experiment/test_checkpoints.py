"""Checkpoints and snapshots: on a disk that fails, under a killed process, altered, hostile."""

import errno
import hashlib
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from broken_curriculum import GOOD

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run_record import GENERATIONS, MAGIC, CheckpointFolder
from aimbot_lab.foundation.errors import LabError, RunLostError
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.run_hooks import Checkpoint
from aimbot_lab.training.self_play.pool import SnapshotPool
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training

CALLS = ("open", "write", "fsync", "replace", "unlink", "close")


class Killed(BaseException):
    """The process ends here; nothing of it runs any more."""


class FailingSystem:
    """The system's calls, of which the `fatal`-th fails as `fail` says; counted in `made`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fatal: int, fail: Callable[..., None]):
        self.made: list[str] = []
        self._fatal, self._fail = fatal, fail
        for name in CALLS:
            monkeypatch.setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.made.append(name)
            if len(self.made) == self._fatal:
                self._fail(name, real, arguments)
            elif len(self.made) > self._fatal and self._fail is kill:
                raise Killed  # what the dead process would have tidied up
            return real(*arguments, **keywords)

        return call


def full_disk(name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """No room: of a write, a part arrives."""
    if name == "write":
        real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
    if name == "close":
        real(*arguments)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def kill(name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """SIGKILL: before the call, or in the middle of a write."""
    if name == "write":
        real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
    raise Killed


def weights(number: int) -> dict[str, th.Tensor]:
    return {"layer": th.full((4, 3), float(number)), "bias": th.arange(3.0) - number}


class Run:
    """What a training does to its pool and its checkpoints: a snapshot for each checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints, self.pool = CheckpointFolder(folder), SnapshotPool()
        kept = self.checkpoints.newest()
        if kept is not None:
            self.pool.resume(unpack(kept.state)["pool"], kept.read_part)

    def take(self) -> None:
        self.pool.take(weights(len(self.pool)), step=100 * len(self.pool))

    def keep(self) -> None:
        state = pack({"pool": self.pool.state()})
        self.checkpoints.keep(Checkpoint(100 * len(self.pool), state, self.pool.parts()))


def begun(folder: Path, snapshots: int) -> Run:
    folder.mkdir()
    run = Run(folder)
    for _ in range(snapshots):
        run.take()
        run.keep()
    return run


def kept_whole(folder: Path) -> int:
    """How many snapshots the newest checkpoint names; each must be there, with its weights."""
    pool = Run(folder).pool
    assert pool.state() == [100 * number for number in range(len(pool))]
    for number, snapshot in enumerate(pool.snapshots):
        assert snapshot.weights.keys() == weights(number).keys()
        for name, tensor in weights(number).items():
            assert th.equal(snapshot.weights[name], tensor)
    return len(pool)


def checkpoint(step: int) -> Checkpoint:
    """One with a part that is new and one that the generation before has, too."""
    parts = {
        f"{number}": lambda number=number: b"part %d" % number * 50 for number in (step - 1, step)
    }
    return Checkpoint(step, b"state %d" % step * 100, parts)


Read = tuple[int, bytes, bytes]


def content(folder: Path) -> Read | None:
    """What a resumption would read."""
    kept = CheckpointFolder(folder).newest()
    if kept is None:
        return None
    parts = kept.read_part(str(kept.step)) + kept.read_part(str(kept.step - 1))
    return kept.step, kept.state, parts


def expected(step: int) -> Read:
    made = checkpoint(step)
    return step, made.state, made.parts[str(step)]() + made.parts[str(step - 1)]()


def kept_until(folder: Path, step: int) -> CheckpointFolder:
    folder.mkdir()
    checkpoints = CheckpointFolder(folder)
    for number in range(1, step + 1):
        checkpoints.keep(checkpoint(number))
    return checkpoints


def test_it_is_written_synced_renamed_and_its_name_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = kept_until(tmp_path / "run", 3)
    with monkeypatch.context() as patch:
        made = FailingSystem(patch, -1, full_disk).made
        checkpoints.keep(checkpoint(4))
    a_file = ["open", "write", "fsync", "close", "replace", "open", "fsync", "close"]
    assert made[:16] == 2 * a_file  # the new part, then the state that names it
    assert set(made[16:]) == {"unlink"}
    steps = [f"step-00000000000{step}.checkpoint" for step in (3, 4)]
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["part-2", "part-3", "part-4", *steps]


def test_a_full_disk_is_told_once_and_so_is_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    (tmp_path / "run").mkdir()
    checkpoints = CheckpointFolder(tmp_path / "run", notify=told.append)
    checkpoints.keep(checkpoint(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: full_disk("", os.write, ()))
        checkpoints.keep(checkpoint(2))
        checkpoints.keep(checkpoint(3))
    checkpoints.keep(checkpoint(4))
    full, mended = told
    assert "No space left on device" in full
    assert "the training continues; it could be resumed from step 1" in full
    assert mended == "checkpoints are kept again"
    assert content(tmp_path / "run") == expected(4)


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    checkpoints = CheckpointFolder(tmp_path / "gone", notify=told.append)
    checkpoints.keep(checkpoint(1))
    (line,) = told
    assert "until a later one is kept it can't be resumed" in line
    assert checkpoints.newest() is None
    assert not (tmp_path / "gone").exists()


def truncated(data: bytes, place: int) -> bytes:
    return data[:place]


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("alter", "name"), [(truncated, "step-000000000003.checkpoint"), (flipped, "part-3")]
)
def test_an_altered_checkpoint_gives_way_to_the_one_before_with_one_line(
    tmp_path: Path, alter: Any, name: str
) -> None:
    kept_until(folder := tmp_path / "run", 3)
    whole = (folder / name).read_bytes()
    for place in range(0, len(whole), max(len(whole) // 20, 1)):
        (folder / name).write_bytes(alter(whole, place))
        told: list[str] = []
        read = CheckpointFolder(folder, notify=told.append).newest()
        assert (read.step, read.state) == expected(2)[:2]
        (line,) = told
        for said in ("step-000000000003.checkpoint", "damaged", "resuming from the one before it"):
            assert said in line


def test_the_next_checkpoint_takes_the_place_of_a_damaged_one(tmp_path: Path) -> None:
    kept_until(folder := tmp_path / "run", 3)
    (folder / "step-000000000003.checkpoint").write_bytes(b"")
    checkpoints = CheckpointFolder(folder)
    checkpoints.newest()
    checkpoints.keep(checkpoint(4))
    steps = sorted(path.name for path in folder.glob("step-*"))
    assert steps == ["step-000000000002.checkpoint", "step-000000000004.checkpoint"]
    (folder / "part-4").unlink()  # as bad as a damaged one
    assert content(folder) == expected(2)
    for path in folder.glob("step-*"):
        path.write_bytes(b"aimbot-lab checkpoint 1 \n{}")
    assert content(folder) is None


def test_files_of_other_kinds_are_left_alone(tmp_path: Path) -> None:
    kept_until(tmp_path / "run", 2)
    others = [tmp_path / "run" / name for name in ("step-now.checkpoint", "run.json")]
    for other in others:
        shutil.copy(tmp_path / "run" / "part-1", other)
    checkpoints = CheckpointFolder(tmp_path / "run")
    checkpoints.newest()
    checkpoints.keep(checkpoint(3))
    assert all(other.exists() for other in others)


def test_a_folder_that_was_refused_or_deleted_is_begun_with_a_later_checkpoint(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    folder, refusals = tmp_path / "run", [True, True, False, False]

    def begin() -> None:
        if refusals.pop(0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        folder.mkdir()

    checkpoints = CheckpointFolder(folder, begin=begin, notify=told.append)
    for step in (1, 2, 3, 4):
        checkpoints.keep(checkpoint(step))
    assert content(folder) == expected(4)
    full, mended = told
    assert "No space left on device; the training continues; until a later one is kept" in full
    assert mended == "checkpoints are kept again"
    shutil.rmtree(folder)
    checkpoints.keep(checkpoint(5))  # it shares a part with the one before
    assert content(folder) == expected(5)


def test_who_has_lost_the_run_writes_no_checkpoint(tmp_path: Path) -> None:
    def lost() -> None:
        raise RunLostError("taken over")

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}

    kept_until(tmp_path / "run", 2)
    before = files()
    with pytest.raises(RunLostError):
        CheckpointFolder(tmp_path / "run", check_owner=lost).keep(checkpoint(3))
    assert files() == before


NAME = "step-000000000512.checkpoint"


@pytest.mark.parametrize("fail", [full_disk, kill])
def test_a_fault_at_any_call_loses_nothing_that_a_checkpoint_names(
    tmp_path: Path, fail: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run = begun(tmp_path / "counted", 3)
        run.take()
        system = FailingSystem(patch, -1, full_disk)
        run.keep()
    assert len(system.made) > 16  # of the snapshot, the state that names it, and one that goes
    seen = set()
    for fatal in range(1, len(system.made) + 1):
        folder = tmp_path / f"{fatal}"
        run = begun(folder, 3)
        run.take()
        with pytest.MonkeyPatch.context() as patch:
            FailingSystem(patch, fatal, fail)
            try:
                run.keep()
            except Killed:
                assert fail is kill
        found = kept_whole(folder)
        seen.add(found)
        if fail is kill:  # the next process has what the checkpoint names
            run = Run(folder)
        run.take()
        run.keep()
        assert kept_whole(folder) == len(run.pool) > found
        assert len(list(folder.glob("step-*"))) == GENERATIONS
        assert not list(folder.glob(".*"))
    assert seen == {3, 4}


class Canary:
    """Unpickling one makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.path}'",)


def hostile(kind: str, canary: Path) -> bytes:
    path = canary.with_suffix(".zip")
    if kind == "pickle":
        return pickle.dumps(Canary(canary))
    if kind == "torch":
        th.save({"policy": Canary(canary)}, path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data", pickle.dumps(Canary(canary)))
    return path.read_bytes()


def signed(body: bytes) -> bytes:
    """`body` under a checksum that is right, as an attacker would write it."""
    return MAGIC + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def training(folder: Path) -> Training:
    (folder / "c.yaml").write_text(GOOD)
    config = load_curriculum(folder / "c.yaml").config
    return Training(TrainingPlan(config.seed, config.env, config.lessons, config.train))


@pytest.mark.parametrize("kind", ["pickle", "zip", "torch"])
def test_a_pickle_in_a_checkpoints_place_is_passed_over_and_not_run(
    kind: str, tmp_path: Path
) -> None:
    canary, told = tmp_path / "ran", []
    (tmp_path / NAME).write_bytes(signed(hostile(kind, canary)))
    assert CheckpointFolder(tmp_path, notify=told.append).newest() is None
    (line,) = told
    assert NAME in line
    assert not canary.exists()
    if kind == "pickle":
        pickle.loads(hostile(kind, canary))
        assert canary.exists()  # it would have run


@pytest.mark.parametrize(
    "head",
    [
        "[]",
        '{"parts": 5}',
        '{"parts": {"a": [1]}}',
        "[" * 100_000,
        json.dumps({"parts": {"/../../secret": [0, hashlib.sha256().hexdigest()]}}),
        json.dumps({"parts": {"a\0b": [0, ""]}}),
    ],
    ids=lambda head: head[:30],
)
def test_a_head_that_lists_no_parts_of_this_folder_is_passed_over(
    head: str, tmp_path: Path
) -> None:
    folder, told = tmp_path / "run", []
    (folder / "part-").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"")
    (folder / NAME).write_bytes(signed(head.encode() + b"\nstate"))
    assert CheckpointFolder(folder, notify=told.append).newest() is None
    assert len(told) == 1


UNFIT = "the checkpoint does not fit this training: "


def test_a_pickle_or_a_state_of_something_else_is_refused_in_a_line(tmp_path: Path) -> None:
    canary, fresh = tmp_path / "ran", training(tmp_path)
    (tmp_path / NAME).write_bytes(signed(b'{"parts": {}}\n' + hostile("pickle", canary)))
    kept = CheckpointFolder(tmp_path).newest()
    with pytest.raises(LabError, match=UNFIT):
        fresh.resume(kept.state, kept.read_part)
    assert not canary.exists()
    other = {"format": 1, "env": {"resets": 0, "world": {}, "rewards": {}}}
    for state in ({}, {"format": 1}, [], other, np.zeros(3)):
        with pytest.raises(LabError, match=UNFIT) as caught:
            fresh.resume(pack(state))
        assert "\n" not in str(caught.value)
