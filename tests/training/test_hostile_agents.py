"""Files that pretend to be an agent: refused in one line, and nothing in them is run."""

import io
import json
import os
import pickle
import resource
import shutil
import signal
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from safetensors.torch import load_file, save_file
from tiny_training import ROWS, plan

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.agents.agent_files import DESCRIPTION, WEIGHTS, load_agent, save_agent
from aimbot_lab.training.training import Training


class Canary:
    """Unpickling one makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.path}'",)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    return Training(plan("ppo")).save_agents(folder)["last"][0].parent


@pytest.fixture
def agent(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "agent"))


def refused(folder: Path) -> str:
    with pytest.raises(LabError) as caught:
        load_agent(folder)
    message = str(caught.value)
    assert message.startswith(str(folder))
    assert message.isprintable()
    return message


def test_what_can_not_be_written_or_a_full_disk_leaves_nothing(agent: Path, tmp_path: Path) -> None:
    saved, before = load_agent(agent), sorted(agent.iterdir())
    given = {"env": saved.env, "train": saved.train}
    for folder in (tmp_path / "new", agent):
        with pytest.raises(TypeError, match="JSON"):
            save_agent(saved.agent.policy, folder, **given, about={"a": tmp_path})
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))  # bytes, as of a disk
    try:
        with pytest.raises(OSError, match="File too large"):
            save_agent(saved.agent.policy, tmp_path / "new", **given, about={})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert sorted(agent.iterdir()) == before
    assert [*tmp_path.iterdir()] == [agent]


def pickles(canary: Path) -> tuple[bytes, ...]:
    """A bare one; as stable-baselines3 saves, whose `load` unpickles `data`; as torch saves."""
    pickled, model, tensor = pickle.dumps(Canary(canary)), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(model, "w") as archive:
        archive.writestr("data", pickled)
    th.save({"weight": Canary(canary)}, tensor)
    return pickled, model.getvalue(), tensor.getvalue()


@pytest.mark.parametrize("name", [WEIGHTS, DESCRIPTION])
def test_a_pickle_is_refused_and_not_run(name: str, agent: Path, tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    for data in pickles(canary):
        (agent / name).write_bytes(data)
        assert "damaged" in refused(agent)
    assert not canary.exists()


def header(document: Any, *, size: int | None = None, data: bytes = b"") -> bytes:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def one(dtype: str, shape: list[int], end: int = 4) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}


def test_a_broken_weights_file_is_refused(agent: Path) -> None:
    for data in (
        b"",
        header({}, size=2**63),
        header(b"[" * 10_000),
        header(one("F99", [1]), data=b"1234"),
        header(one("F32", [2**62, 8]), data=b"1234"),
        header(one("F32", [1], end=2**60), data=b"1234"),
        header({"\x1b[31mred\n\u202e": one("F32", [1])["w"]}, data=b"1234"),
    ):
        (agent / WEIGHTS).write_bytes(data)
        refused(agent)


def change_weights(agent: Path, change: Callable[[dict[str, th.Tensor]], object]) -> None:
    weights = load_file(agent / WEIGHTS)
    change(weights)
    save_file(weights, agent / WEIGHTS)


BIAS = "action_net.bias"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda w: w.update({BIAS: w[BIAS].double()}), f"{BIAS} has dtype float64, not float32"),
        (lambda w: w.update({BIAS: w[BIAS][:-1].clone()}), r"shape \(18,\), not \(19,\)"),
        (lambda w: w[BIAS].fill_(float("nan")), f"{BIAS} holds NaN or infinity"),
        (lambda w: w.pop(BIAS), f"{BIAS} is missing"),
        (lambda w: w.update({"../../x": th.zeros(2)}), "x belongs to no part of the network"),
        (lambda w: w.update({"\x1b[2J" * 99: th.zeros(2)}), r"weight \?\[2J\?"),
    ],
)
def test_weights_that_do_not_fit_are_refused(change: Any, why: str, agent: Path) -> None:
    change_weights(agent, change)
    with pytest.raises(LabError, match=why):
        load_agent(agent)
    assert len(refused(agent)) < len(str(agent)) + 200


def describe(agent: Path, **parts: Any) -> None:
    document = json.loads((agent / DESCRIPTION).read_text())
    for name, value in parts.items():
        inner = document[name]
        both = isinstance(inner, dict) and isinstance(value, dict)
        document[name] = {**inner, **value} if both else value
    (agent / DESCRIPTION).write_text(json.dumps(document))


def test_a_network_larger_than_its_weights_is_never_built(good: Path, agent: Path) -> None:
    for train in (
        {"network": {"layers": [4096] * 30}},
        {"algo": "recurrent_ppo", "options": {"lstm_hidden_size": 10**9}},
        {"algo": "qrdqn", "options": {"n_quantiles": 10**12}},
        {"aim_bins": [k / 1e4 for k in range(-10_000, 10_000)]},
        {"algo": "sac", "options": {"policy_kwargs": {"net_arch": [8], "n_critics": 10**6}}},
    ):
        shutil.copy(good / DESCRIPTION, agent)
        describe(agent, train=train)
        assert "the described network is larger than the weights in the file" in refused(agent)


def test_a_description_of_something_else_or_none_is_refused(good: Path, agent: Path) -> None:
    for parts in (
        {"train": {"network": {"layers": [1] * 100_000}}},
        {"train": {"options": {"policy_kwargs": {"net_arch": [10**9]}}}},
        {"train": {"algo": "os.system"}},
        {"train": {"torch_threads": 10**9}},
        {"env": {"rays": {"middle_count": 10**9}}},
        {"env": {"presets": "/etc/passwd"}},
        {"format": "\x1b[2J"},
        {"env": {"world": []}},
        {"about": {"step": "\x1b[2J"}},
    ):
        shutil.copy(good / DESCRIPTION, agent)
        describe(agent, **parts)
        refused(agent)
    for text in ("", "[]", "[" * 100_000, "1" * 10_000, '"' + "x" * 2**20):
        (agent / DESCRIPTION).write_text(text)
        refused(agent)


@pytest.mark.parametrize("name", [WEIGHTS, DESCRIPTION])
def test_neither_pipes_nor_devices_nor_folders_are_read(name: str, agent: Path) -> None:
    path = agent / name
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir):
        path.unlink()
        make(path)
        assert "is not a regular file" in refused(agent)


def test_statistics_that_are_none_are_refused(tmp_path: Path) -> None:
    running = plan("ppo", network={"layers": (16,), "scaling": "running"})
    agent = Training(running).save_agents(tmp_path)["last"][0].parent
    change_weights(
        agent, lambda w: [w[name].fill_(-1.0) for name in w if name.endswith("variance")]
    )
    assert "statistics are not finite" in refused(agent)


def test_weights_too_large_to_answer_with_are_told_in_a_line(agent: Path) -> None:
    change_weights(agent, lambda w: [tensor.fill_(3e38) for tensor in w.values()])
    with pytest.raises(LabError, match="network outputs NaN or infinity"):
        load_agent(agent).agent.act(np.ones((ROWS, 51), np.float32))


@pytest.mark.parametrize(("name", "reason"), [("text", "is a file"), ("none", "no such folder")])
def test_what_is_no_folder_is_told_from_a_damaged_agent(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "text").write_text("text", encoding="utf-8")
    with pytest.raises(LabError, match=rf"{name}: .*{reason}; an agent is a folder with ") as found:
        load_agent(str(tmp_path / name))
    assert "damaged" not in str(found.value)
