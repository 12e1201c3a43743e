"""Files that pretend to be a checkpoint: passed over in a line, and nothing in them is run."""

import hashlib
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from broken_curriculum import GOOD

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.checkpoints import MAGIC, CheckpointFolder
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.checkpoint.packing import pack
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training

NAME = "step-000000000512.checkpoint"


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


KINDS = ["pickle", "zip", "torch"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sign", [lambda data: data, signed], ids=["as it is", "signed"])
def test_a_pickle_in_a_checkpoints_place_is_passed_over_and_not_run(
    kind: str, sign: Any, tmp_path: Path
) -> None:
    canary, told = tmp_path / "ran", []
    (tmp_path / NAME).write_bytes(sign(hostile(kind, canary)))
    assert CheckpointFolder(tmp_path, notify=told.append).newest() is None
    assert len(told) == 1
    assert NAME in told[0]
    assert not canary.exists()
    if kind == "pickle":
        pickle.loads(hostile(kind, canary))
        assert canary.exists()  # it would have run


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_in_the_states_place_is_refused_and_not_run(kind: str, tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    (tmp_path / NAME).write_bytes(signed(b'{"parts": {}}\n' + hostile(kind, canary)))
    kept = CheckpointFolder(tmp_path).newest()
    assert kept is not None
    with pytest.raises(LabError, match="the checkpoint does not fit this training: "):
        training(tmp_path).resume(kept.state, kept.read_part)
    assert not canary.exists()


@pytest.mark.parametrize(
    "head",
    [
        "[]",
        "{}",
        "null",
        '{"parts": 5}',
        '{"parts": {"a": 5}}',
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


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"format": 1},
        [],
        {"format": 1, "env": {"resets": 0, "world": {}, "rewards": {}}},
        np.zeros(3),
    ],
    ids=str,
)
def test_a_state_of_something_else_is_refused_in_a_line(state: Any, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="the checkpoint does not fit this training: ") as caught:
        training(tmp_path).resume(pack(state))
    assert "\n" not in str(caught.value)
