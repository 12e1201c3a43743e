"""Processes share out a machine's cores, and gloo's threads interrupt none that compute."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from aimbot_lab.training.processes import cores
from aimbot_lab.training.processes.cores import (
    Cores,
    OwnCores,
    own_share,
    usable_cores,
    yielding_threads,
)
from aimbot_lab.training.processes.exchange import Rank

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cores are Linux's to choose")


def chip(*physical: tuple[int, ...], boot: str = "boot") -> Cores:
    return Cores(boot, physical)


def shares(everyones: list[Cores]) -> list[frozenset[int] | None]:
    return [own_share(everyones, rank) for rank in range(len(everyones))]


@pytest.mark.parametrize(
    ("processes", "size", "threads", "machines"), [(2, 1, 1, 1), (3, 4, 2, 2), (8, 3, 1, 3)]
)
def test_shares_are_equal_disjoint_and_all_that_there_is(
    processes: int, size: int, threads: int, machines: int
) -> None:
    number = processes * size
    physical = [tuple(range(core, number * threads, number)) for core in range(number)]
    boots = [chip(*physical, boot=f"boot-{machine}") for machine in range(machines)]
    everyones = boots * processes  # their ranks alternate
    for boot in boots:
        found = [own for own, one in zip(shares(everyones), everyones, strict=True) if one == boot]
        given_out = [one for own in found if own is not None for one in own]
        assert sorted(given_out) == list(range(number * threads))
        assert [len(own) for own in found if own is not None] == [size * threads] * processes


@pytest.mark.parametrize(
    ("everyones", "wanted"),
    [
        # A physical core is given whole, and of each kind everyone gets some.
        ([chip((0, 4), (1, 5), (2,), (3,))] * 2, [{0, 4, 2}, {1, 5, 3}]),
        # Hardware threads are dealt out where there is one for each.
        ([chip((0, 2), (1, 3))] * 4, [{0}, {1}, {2}, {3}]),
        # Elsewhere all keep what they may use.
        ([chip((0,), (1,))], [None]),  # alone
        ([chip((0,), (1,), (2,))] * 2, [None] * 2),  # uneven
        ([chip((0, 3), (1, 4), (2, 5))] * 2, [None] * 2),
        ([chip((0,), (1,))] * 4, [None] * 4),  # too few
        ([chip(boot="")] * 2, [None] * 2),  # can't be chosen
        ([chip((0,), (1,)), chip((2,), (3,))], [None] * 2),  # given out by somebody else
        ([chip((0,), (1,)), chip((0,), (1,), boot="another")], [None] * 2),
    ],
)
def test_cores_are_given_whole_where_that_is_even(everyones: list[Cores], wanted: Any) -> None:
    assert shares(everyones) == wanted


def test_usable_cores_are_told_by_physical_core(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, (package, core) in enumerate([(0, 0), (1, 0), (0, 0), (0, 1)]):
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
        (folder / "core_id").write_text(f"{core}\n")
    monkeypatch.setattr(cores, "TOPOLOGY", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 9})
    assert usable_cores().physical == ((9,), (0, 2), (3,), (1,))  # nothing is known of 9


def test_a_share_is_kept_until_it_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    two, store, asked = chip((0,), (1,), (2,), (3,)), HashStore(), []
    monkeypatch.setattr(cores, "usable_cores", lambda: two)
    monkeypatch.setattr(cores, "_threads", lambda: [1, 2])
    share = frozenset({0, 2})
    others = {2: frozenset({0})}  # chosen by them
    monkeypatch.setattr(os, "sched_getaffinity", {1: share, **others}.get)

    def set_affinity(thread: int, numbers: frozenset[int]) -> None:
        asked.append((thread, numbers))
        raise PermissionError  # which changes nothing

    monkeypatch.setattr(os, "sched_setaffinity", set_affinity)
    store.set("cores/1", json.dumps(two))
    own = OwnCores(store, Rank(0, 2))
    assert asked == [(0, share)]
    own.give_back()
    own.give_back()
    assert asked[1:] == [(1, two.numbers)]


policy = os.sched_getscheduler  # also where a test replaces it


def policy_of_a_new_thread() -> int:
    with ThreadPoolExecutor() as pool:
        return pool.submit(policy, 0).result()


def policy_in_the_block() -> int:
    with yielding_threads():
        return policy_of_a_new_thread()


def test_only_threads_that_begin_in_the_block_yield() -> None:
    assert policy_in_the_block() == os.SCHED_BATCH
    assert policy_of_a_new_thread() == os.SCHED_OTHER
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    with pytest.raises(KeyError), yielding_threads():
        raise KeyError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def refuse(*_: object) -> None:
    raise PermissionError


def test_where_cores_cannot_be_chosen_nothing_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cores, "BOOT", tmp_path / "boot_id")
    assert usable_cores() == Cores("", ())
    for name in "sched_getscheduler", "sched_setscheduler":
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            assert policy_in_the_block() == os.SCHED_OTHER
    for name in "sched_getscheduler", "SCHED_BATCH":
        with monkeypatch.context() as patch:
            patch.delattr(os, name)
            assert policy_in_the_block() == os.SCHED_OTHER
