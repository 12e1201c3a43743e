"""Processes tell each other sums and bytes, notice who is gone, and share out rows in blocks."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from exchange_program import (
    MINIBATCHES,
    SHARDS,
    given_by,
    large_of,
    leaves,
    minibatch_sums,
    said_by,
)
from guessing import ROWS, STEPS, new_model

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.algorithms.registry import shard_count
from aimbot_lab.training.fused.core.act import fill_noise
from aimbot_lab.training.fused.engine import MAX_LANES, deal
from aimbot_lab.training.processes.cores import own_share, usable_cores
from aimbot_lab.training.processes.exchange import (
    ALONE,
    Alone,
    LostError,
    Node,
    Numbers,
    Rank,
    Shards,
    add_up,
    asked_count,
    divides,
    fold,
    leaf_nodes,
    permutations,
    rank_from_environment,
    share,
    sum_of_leaves,
    usual_count,
    whole_nodes,
)
from aimbot_lab.training.processes.gloo import Meeting, connect
from aimbot_lab.training.settings import TrainSettings

PROGRAM = Path(__file__).with_name("exchange_program.py")
ROOT = PROGRAM.parents[2]
SCALE, COUNT = pytest.mark.scale, "TORCHELASTIC_RESTART_COUNT"
linux = pytest.mark.skipif(sys.platform != "linux", reason="cores are Linux's to choose")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def processes(count: int, *kind: str, patience_s: float = 60) -> Iterator[list[Any]]:
    """As many processes that run the program; killed at the end."""
    meeting = {
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())},
        **{"NEXT_PORT": str(free_port()), "WORLD_SIZE": str(count)},
        "GLOO_SOCKET_IFNAME": "none",  # on one machine the loopback interface is used
    }
    started = [
        subprocess.Popen(
            [sys.executable, PROGRAM, *kind, str(patience_s)],
            # Each of several torchruns has a count of its own.
            env=os.environ | meeting | dict.fromkeys(("RANK", COUNT), str(rank)),
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
    for answer, own in zip(answers, expected, strict=True):
        cores = sorted(usable.numbers if own is None else own)
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


def test_the_place_comes_from_the_environment_and_one_that_makes_no_sense_is_refused() -> None:
    assert rank_from_environment({}) == ALONE
    assert rank_from_environment({"RANK": "2", "WORLD_SIZE": "3"}) == Rank(2, 3)
    assert (Rank(0, 3).leads, Rank(2, 3).leads) == (True, False)
    for rank in ({"RANK": "1"}, *({"RANK": one, "WORLD_SIZE": "3"} for one in ("two", "3"))):
        told = r"^environment: .*RANK and|RANK must be"
        with pytest.raises(ConfigurationError, match=told) as error:
            rank_from_environment(rank)
        assert "\n" not in str(error.value)


def test_a_meeting_needs_a_host_and_a_port_and_knows_one_machine_by_its_loopback() -> None:
    for host, port in (("", "29400"), ("here", "65536"), ("a", "b")):
        with pytest.raises(ConfigurationError, match="a port from 1 to 65535"):
            Meeting.from_environment({"MASTER_ADDR": host, "MASTER_PORT": port})
    for host, here in (("localhost", True), ("10.0.0.1", False)):
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


COUNTS = range(1, 65)
SPLITS = 4  # random ones for each number of leaves


def leaves_of(total: int, kind: type[np.floating[Any]] = np.float32) -> Numbers:
    """Numbers [total, 5] of very different size, so that another order gives other bits."""
    rng = np.random.default_rng(total)
    size = 10.0 ** rng.uniform(-3, 3, (total, 5))
    leaves: Numbers = (rng.standard_normal((total, 5)) * size).astype(kind)
    return leaves


def root(leaves: Any, level: int | None = None, index: int = 0) -> Any:
    """The sum of a node, as the tree is defined; of all without one."""
    level = (len(leaves) - 1).bit_length() if level is None else level
    if level == 0:
        return leaves[index]
    left = root(leaves, level - 1, 2 * index)
    if (2 * index + 1) << level >> 1 >= len(leaves):
        return left
    return left + root(leaves, level - 1, 2 * index + 1)


def cuts(total: int, rng: np.random.Generator) -> list[range]:
    """[0, total) in a random number of neighbouring ranges, none of them empty."""
    parts = int(rng.integers(1, total + 1))
    inner = sorted(rng.choice(np.arange(1, total), parts - 1, replace=False)) if parts > 1 else []
    ends = [0, *map(int, inner), total]
    return [range(a, b) for a, b in pairwise(ends)]


def summed_in(ranges: Sequence[range], leaves: Numbers) -> Numbers:
    """The root, where each range is folded by itself and then all their nodes."""
    total = len(leaves)
    rows: list[Numbers] = []
    nodes: list[Node] = []
    for one in ranges:
        own = list(leaves[one.start : one.stop].copy())
        part = fold(leaf_nodes(one), total)
        add_up(own, part.additions)
        rows += [own[row] for row in part.rows]
        nodes += part.nodes
    whole = fold(tuple(nodes), total)
    assert len(whole.nodes) == 1
    add_up(rows, whole.additions)
    return rows[whole.rows[0]]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_sum_of_leaves_is_the_tree_by_definition(kind: type[np.floating[Any]]) -> None:
    for total in COUNTS:
        leaves = leaves_of(total, kind)
        expected = root(leaves)
        found = sum_of_leaves(leaves.copy())
        assert found.dtype == kind
        assert found.tobytes() == expected.tobytes(), total


def test_every_split_gives_the_bits_of_one_range() -> None:
    for total in COUNTS:
        leaves, rng = leaves_of(total), np.random.default_rng(1000 + total)
        expected = root(leaves).tobytes()
        for _ in range(SPLITS):
            ranges = cuts(total, rng)
            assert summed_in(ranges, leaves).tobytes() == expected, ranges
        ranges = [share(rank, 1 + total // 3, total) for rank in range(1 + total // 3)]
        assert [leaf for one in ranges for leaf in one] == list(range(total))
        assert summed_in(ranges, leaves).tobytes() == expected, ranges


def test_whole_nodes_are_the_largest_within_a_range() -> None:
    assert whole_nodes(range(3, 14), 16) == ((0, 3), (2, 1), (2, 2), (1, 6))
    assert whole_nodes(range(16), 16) == ((4, 0),)
    assert whole_nodes(range(4, 8), 16) == ((2, 1),)
    assert whole_nodes(range(5, 5), 16) == ()
    assert whole_nodes(range(4, 5), 5) == ((2, 1),), "its right siblings are empty"
    assert whole_nodes(range(1), 1) == (Node(0, 0),)


def test_numbers_too_large_add_up_to_infinity_without_a_warning() -> None:
    huge = np.full((2, 1), np.finfo(np.float32).max, np.float32)
    assert sum_of_leaves(huge) == np.inf


pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


@pytest.mark.parametrize(
    ("rows", "batch", "count"),
    [(512, 4096, 16), (512, 2048, 8), (64, 256, 1), (96, 8192, 16), (100, 8192, 4), (16, 8192, 8)],
)
def test_as_many_shards_as_leave_each_enough_samples_and_two_rows(
    rows: int, batch: int, count: int
) -> None:
    assert usual_count(rows, batch) == count
    assert usual_count(rows, batch // 16, samples=16) == min(count, usual_count(rows, batch))


def test_a_number_that_does_not_divide_or_is_of_no_use_is_refused() -> None:
    assert asked_count(4, 512, 4096) == 4
    with pytest.raises(ValueError, match=r"must divide 512 rows.*got 7; nearest that does: 8"):
        asked_count(7, 512, 4096)
    assert not divides(8, 8, 4096)  # a row alone
    asked = {"algo": "hybrid_ppo", "batch_size": 1024}
    assert shard_count(TrainSettings(**asked, engine="torch"), 64) == 1
    assert shard_count(TrainSettings(**asked, shards=2), 64) == 2
    with pytest.raises(ValueError, match=r"has no effect with train\.engine: torch"):
        shard_count(TrainSettings(**asked, engine="torch", shards=2), 64)


def test_an_order_depends_on_its_shard_and_not_on_who_computes_it() -> None:
    whole = Shards(4, 0, 4, 8)
    orders = permutations(whole, 50, seed=3, update=1024, epoch=1)
    assert (np.sort(orders, axis=1) == np.arange(50)).all()
    for first in range(4):
        part = permutations(Shards(4, first, 1, 8), 50, seed=3, update=1024, epoch=1)
        np.testing.assert_array_equal(part[0], orders[first])
    assert len({one.tobytes() for one in orders}) == 4
    other = permutations(whole, 50, seed=3, update=1024, epoch=2)
    assert not (other == orders).all(axis=1).any()


def test_noise_depends_on_the_number_of_a_row_and_the_step_alone() -> None:
    def noise(first: int, rows: int, step: int) -> np.ndarray:
        uniform, normal = np.zeros((rows, 3), np.float32), np.zeros((rows, 2), np.float32)
        fill_noise(uniform, normal, np.array([7, first, step], np.uint64))
        return np.concatenate([uniform, normal], axis=1)

    np.testing.assert_array_equal(noise(0, 9, 5)[4:], noise(4, 5, 5))
    seen = np.concatenate([noise(0, 500, step) for step in range(40)])
    assert 0.0 <= seen[:, :3].min() <= seen[:, :3].max() < 1.0
    assert len(np.unique(seen[:, 0])) > 19_900
    np.testing.assert_allclose(seen.mean(axis=0), [0.5, 0.5, 0.5, 0.0, 0.0], atol=0.03)
    np.testing.assert_allclose(seen.var(axis=0), [1 / 12] * 3 + [1.0] * 2, rtol=0.05)
    assert np.abs(np.corrcoef(seen.T) - np.eye(5)).max() < 0.03


@pytest.mark.parametrize("shards", [1, 2, 8, 16, 64])
@pytest.mark.parametrize("size", [1, 255, 256, 700, 4096])
def test_every_sample_is_in_one_piece_of_its_own_shard(size: int, shards: int) -> None:
    cut = deal(size, piece=256, shards=shards)
    asked = np.arange(3 * size).reshape(3, size)
    full, left = cut.full(asked), cut.left(asked)
    np.testing.assert_array_equal(np.sort(np.concatenate([full, left])), np.arange(3 * size))
    assert cut.lanes * shards <= max(MAX_LANES, shards)
    lanes = 3 * cut.lanes
    for number, piece in enumerate(full.reshape(-1, 256)):
        assert set(piece // size) == {number % lanes // cut.lanes}  # the shard that has the lane


def test_what_is_learned_depends_on_the_number_of_shards() -> None:
    models = [
        new_model("fused", "hybrid", batch_size=640, shards=shards).learn(2 * STEPS * ROWS)
        for shards in (1, 2, 2)
    ]
    one, two, again = (model.policy.action_net.weight for model in models)
    assert th.equal(two, again)
    assert not th.equal(one, two)


def test_rows_of_a_shard_act_and_are_valued_alike_wherever_they_are() -> None:
    """The kernels give a row the same bits among eight rows and among two."""
    model = new_model("fused", "hybrid")
    model.learn(STEPS * ROWS)
    actor, seen = model.engine.actor, th.rand(ROWS, 3)

    def answers(rows: slice) -> list[np.ndarray]:
        actor.begin(2, len(seen[rows]), seed=5, first_row=rows.start)
        return [part.numpy() for part in (*actor.act(seen[rows]), actor.values(seen[rows]))]

    whole = answers(slice(0, ROWS))
    for first in range(0, ROWS, 2):
        for part, found in zip(whole, answers(slice(first, first + 2)), strict=True):
            np.testing.assert_array_equal(part[first : first + 2], found)
