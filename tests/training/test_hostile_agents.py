"""Files that pretend to be an agent: refused in one line, and nothing in them is run."""

import json
import os
import pickle
import resource
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
    folder = tmp_path / "agent"
    folder.mkdir()
    for name in (WEIGHTS, DESCRIPTION):
        (folder / name).write_bytes((good / name).read_bytes())
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(LabError) as caught:
        load_agent(folder)
    message = str(caught.value)
    assert message.startswith(str(folder))
    assert message.isprintable()
    return message


def test_what_can_not_be_written_leaves_nothing(agent: Path, tmp_path: Path) -> None:
    saved = load_agent(agent)
    before = sorted(agent.iterdir())
    for folder in (tmp_path / "new", agent):
        with pytest.raises(TypeError, match="JSON"):
            save_agent(
                saved.agent.policy, folder, env=saved.env, train=saved.train, about={"a": tmp_path}
            )
    assert sorted(agent.iterdir()) == before
    assert [*tmp_path.iterdir()] == [agent]


def test_a_full_disk_is_an_error_of_the_disk_and_leaves_nothing(
    agent: Path, tmp_path: Path
) -> None:
    saved = load_agent(agent)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))  # bytes, as of a disk
    try:
        with pytest.raises(OSError, match="File too large"):
            save_agent(
                saved.agent.policy, tmp_path / "new", env=saved.env, train=saved.train, about={}
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert [*tmp_path.iterdir()] == [agent]


def pickled(canary: Path) -> bytes:
    return pickle.dumps(Canary(canary))


def zipped(canary: Path, name: str) -> bytes:
    path = canary.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, pickled(canary))
    return path.read_bytes()


def model_zip(canary: Path) -> bytes:
    """As stable-baselines3 saves a model: its `load` unpickles what is in `data`."""
    return zipped(canary, "data")


def torch_zip(canary: Path) -> bytes:
    """As torch saves; its reader finds the pickle in this place."""
    path = canary.with_suffix(".pt")
    th.save({"weight": Canary(canary)}, path)
    return path.read_bytes()


@pytest.mark.parametrize("make", [pickled, model_zip, torch_zip])
@pytest.mark.parametrize("name", [WEIGHTS, DESCRIPTION])
def test_a_pickle_is_refused_and_not_run(
    make: Callable[[Path], bytes], name: str, agent: Path, tmp_path: Path
) -> None:
    canary = tmp_path / "ran"
    (agent / name).write_bytes(make(canary))
    assert "damaged" in refused(agent)
    assert not canary.exists()


def header(document: Any, *, size: int | None = None, data: bytes = b"") -> bytes:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def one(dtype: str, shape: list[int], end: int = 4) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header({}, size=2**63),
        header(b"[" * 10_000),
        header(one("F99", [1]), data=b"1234"),
        header(one("F32", [2**62, 8]), data=b"1234"),
        header(one("F32", [1], end=2**60), data=b"1234"),
        header({"\x1b[31mred\n\u202e": one("F32", [1])["w"]}, data=b"1234"),
    ],
    ids=range(7),
)
def test_a_broken_weights_file_is_refused(data: bytes, agent: Path) -> None:
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


@pytest.mark.parametrize(
    "train",
    [
        {"network": {"layers": [4096] * 30}},
        {"algo": "recurrent_ppo", "options": {"lstm_hidden_size": 10**9}},
        {"algo": "qrdqn", "options": {"n_quantiles": 10**12}},
        {"aim_bins": [k / 1e4 for k in range(-10_000, 10_000)]},
        {"algo": "sac", "options": {"policy_kwargs": {"net_arch": [8], "n_critics": 10**6}}},
    ],
    ids=lambda train: str(train)[:50],
)
def test_a_network_larger_than_its_weights_is_never_built(train: Any, agent: Path) -> None:
    describe(agent, train=train)
    assert "the described network is larger than the weights in the file" in refused(agent)


@pytest.mark.parametrize(
    "parts",
    [
        {"train": {"network": {"layers": [1] * 100_000}}},
        {"train": {"options": {"policy_kwargs": {"net_arch": [10**9]}}}},
        {"train": {"algo": "os.system"}},
        {"train": {"torch_threads": 10**9}},
        {"env": {"rays": {"middle_count": 10**9}}},
        {"env": {"presets": "/etc/passwd"}},
        {"format": "\x1b[2J"},
        {"env": {"world": []}},
        {"about": {"step": "\x1b[2J"}},
    ],
    ids=lambda parts: str(parts)[:50],
)
def test_a_description_of_something_else_is_refused(parts: Any, agent: Path) -> None:
    describe(agent, **parts)
    refused(agent)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "[" * 100_000, "1" * 10_000, '"' + "x" * 2**20],
    ids=lambda text: text[:9],
)
def test_a_description_that_is_none_is_refused(text: str, agent: Path) -> None:
    (agent / DESCRIPTION).write_text(text)
    refused(agent)


@pytest.mark.parametrize("name", [WEIGHTS, DESCRIPTION])
def test_neither_pipes_nor_devices_nor_folders_are_read(name: str, agent: Path) -> None:
    path = agent / name
    path.unlink()
    os.mkfifo(path)
    assert "is not a regular file" in refused(agent)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "is not a regular file" in refused(agent)
    path.unlink()
    path.mkdir()
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
    loaded = load_agent(agent).agent
    observations = np.ones((ROWS, 51), np.float32)
    with pytest.raises(LabError, match="network outputs NaN or infinity"):
        loaded.act(observations)


@pytest.mark.parametrize(("name", "reason"), [("text", "is a file"), ("none", "no such folder")])
def test_what_is_no_folder_is_told_from_a_damaged_agent(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "text").write_text("text", encoding="utf-8")
    with pytest.raises(LabError, match=rf"{name}: .*{reason}; an agent is a folder with ") as found:
        load_agent(str(tmp_path / name))
    assert "damaged" not in str(found.value)
