"""Processes tell each other sums and bytes, and notice who is gone."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange_program import (
    MINIBATCHES,
    SHARDS,
    given_by,
    large_of,
    leaves,
    minibatch_sums,
    said_by,
)

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.processes.cores import own_share, usable_cores
from aimbot_lab.training.processes.exchange import (
    ALONE,
    Alone,
    LostError,
    Rank,
    rank_from_environment,
)
from aimbot_lab.training.processes.gloo import Meeting, connect

PROGRAM = Path(__file__).with_name("exchange_program.py")
ROOT = PROGRAM.parents[2]
SCALE = pytest.mark.scale
linux = pytest.mark.skipif(sys.platform != "linux", reason="cores are Linux's to choose")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def processes(count: int, *kind: str, patience_s: float = 60) -> Iterator[list[Any]]:
    """As many processes that run the program; killed at the end."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    meeting["NEXT_PORT"] = str(free_port())
    meeting["GLOO_SOCKET_IFNAME"] = "none"  # on one machine the loopback interface is used
    started = [
        subprocess.Popen(
            [sys.executable, PROGRAM, *kind, str(patience_s)],
            env={
                **os.environ,
                **meeting,
                "RANK": str(rank),
                "WORLD_SIZE": str(count),
                "TORCHELASTIC_RESTART_COUNT": str(rank),  # each of several torchruns has its own
            },
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module", params=[2, *(pytest.param(n, marks=SCALE) for n in (3, 4))])
def answers(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """What each process of 2, 3 and 4 found; then the last is killed, which is noticed at once."""
    count = request.param
    with processes(count, "speak", "SIGKILL") as started:
        ended = [process.communicate(timeout=300) for process in started]
    codes = [process.returncode for process in started]
    assert codes == [LostError.exit_code] * (count - 1) + [-signal.SIGKILL], ended
    assert [err for _, err in ended] == [""] * count
    for rank, (out, _) in enumerate(ended[:-1]):
        (line,) = out.splitlines()[1:]
        assert line.startswith(f"rank {rank} of {count} lost another process while it waited")
        assert "GLHF" not in line
    return [json.loads(out.splitlines()[0]) for out, _ in ended]


def test_sums_have_the_bits_of_one_process(answers: list[dict[str, Any]]) -> None:
    expected = {str(shards): minibatch_sums(Alone(), shards) for shards in SHARDS}
    assert len(set(expected["16"])) == MINIBATCHES
    for answer in answers:
        assert answer["sums"] == expected


@linux
def test_processes_of_a_machine_share_out_its_cores_for_as_long_as_they_are_connected(
    answers: list[dict[str, Any]],
) -> None:
    usable = usable_cores()
    expected = [own_share([usable] * len(answers), rank) for rank in range(len(answers))]
    everything = {"policy": os.sched_getscheduler(0), "cores": sorted(usable.numbers)}
    for answer, share in zip(answers, expected, strict=True):
        cores = sorted(usable.numbers if share is None else share)
        assert answer["computing"] == {**everything, "cores": cores}
        # What carries messages interrupts none that compute.
        assert answer["carrying"] == [{"policy": os.SCHED_BATCH, "cores": cores}]
        assert answer["afterwards"] == [everything] * 2


def test_bytes_of_any_length_and_arrays_are_gathered_in_the_order_of_ranks(
    answers: list[dict[str, Any]],
) -> None:
    ranks = range(len(answers))
    for answer in answers:
        assert answer["arrays"] == [given_by(rank).tolist() for rank in ranks]
        assert answer["empty"] == [len(answers), 0, 3]
        assert answer["gathered"] == [said_by(rank).hex() for rank in ranks]
        assert answer["nothing"] == [""] * len(answers)
        assert answer["large"] == [hashlib.sha256(large_of(rank)).hexdigest() for rank in ranks]


@SCALE
@pytest.mark.parametrize(("count", "waited_for"), [(2, "rank 1"), (3, "all ranks")])
def test_a_silent_process_is_lost_after_the_patience(count: int, waited_for: str) -> None:
    with processes(count, "SIGSTOP", patience_s=3) as (waiting, *_others):
        out, err = waiting.communicate(timeout=300)
        assert waiting.returncode == LostError.exit_code, err
        lost = f"rank 0 of {count} lost another process while it waited for {waited_for}"
        assert out.startswith(lost)
        assert "imed out" in out


def test_who_never_comes_is_lost_after_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    waited = "while it waited for all processes to come, as many as WORLD_SIZE says"
    with pytest.raises(LostError, match=f"^rank 0 of 2 lost another process {waited}"):
        connect(Rank(0, 2), patience_s=1)


def test_one_process_answers_itself() -> None:
    alone = connect(ALONE)
    gradients, terms = leaves(4, 0)
    first, others = gradients[:2].copy(), gradients[2:].copy()
    summed = alone.sum_up(gradients, terms, shards=4)
    expected = (first[0] + first[1]) + (others[0] + others[1])
    assert summed.gradient.tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="4 shards given"):
        alone.sum_up(gradients, terms, shards=16)
    assert alone.gather(b"mine") == [b"mine"]
    assert alone.gather_arrays(np.arange(3)).tolist() == [[0, 1, 2]]
    alone.close()


def test_the_place_comes_from_the_environment() -> None:
    assert rank_from_environment({}) == ALONE
    assert rank_from_environment({"RANK": "2", "WORLD_SIZE": "3"}) == Rank(2, 3)
    assert Rank(0, 3).leads
    assert not Rank(2, 3).leads


@pytest.mark.parametrize(
    "environment",
    [{"RANK": "1"}, {"RANK": "two", "WORLD_SIZE": "3"}, {"RANK": "3", "WORLD_SIZE": "3"}],
)
def test_a_place_that_makes_no_sense_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"^environment: .*RANK and|RANK must be") as error:
        rank_from_environment(environment)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("host", "port"), [("", "29400"), ("here", "65536"), ("a", "b")])
def test_a_meeting_needs_a_host_and_a_port(host: str, port: str) -> None:
    with pytest.raises(ConfigurationError, match="a port from 1 to 65535"):
        Meeting.from_environment({"MASTER_ADDR": host, "MASTER_PORT": port})


@pytest.mark.parametrize(("host", "here"), [("localhost", True), ("10.0.0.1", False)])
def test_one_machine_is_known_by_its_loopback_address(host: str, here: bool) -> None:
    meeting = Meeting.from_environment({"MASTER_ADDR": host, "MASTER_PORT": "29400"})
    assert meeting.is_loopback == here


@pytest.mark.parametrize(
    ("run", "kind"), [({}, ConfigurationError), ({"TORCHELASTIC_RUN_ID": "1"}, LostError)]
)
def test_a_port_in_use_is_one_line(run: dict[str, str], kind: type[Exception]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **run}
        with pytest.raises(kind, match=f"rank 0 can't listen at 127.0.0.1:{port}: Address already"):
            Meeting.from_environment(here).store(Rank(0, 2), 1)
