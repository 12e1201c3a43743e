"""Any number of processes and threads learns the same, to the bit: `make scale` goes through many.

Each training is that of a shipped curriculum, small and short, over gloo: goto, and attack with
hybrid aim, masks, an objective per branch and running scaling of observations.
"""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from scale_program import VARIANTS

PROGRAM = Path(__file__).with_name("scale_program.py")
PROCESSES, THREADS = (1, 2, 3, 4, 8, 16), (1, 2)
SAME = ("state_sha256", "steps", "lesson")


def trainings(variant: str, pairs: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """What the processes of each pair of (processes, threads) came to."""
    words = [str(number) for pair in pairs for number in pair]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), variant, *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.campaign
def test_over_gloo_two_and_three_processes_learn_what_one_does() -> None:
    compare("attack", [(1, 1), (2, 1), (3, 2)])


@pytest.mark.scale
@pytest.mark.parametrize("variant", VARIANTS)
def test_any_number_of_processes_and_threads_learns_the_same(variant: str) -> None:
    compare(variant, list(product(PROCESSES, THREADS)))


def compare(variant: str, pairs: list[tuple[int, int]]) -> None:
    """Have all `pairs` of processes and threads learn what the first does, one process."""
    found = trainings(variant, pairs)
    assert [(one["processes"], one["threads"]) for one in found] == pairs
    alone = found[0]["ranks"][0]
    assert alone["shards"] == 16
    assert alone["lesson"] > 1, "a lesson was passed"
    assert alone["episodes"] > 100
    assert len(alone["checkpoints"]) == 9
    for one in found:
        leader, who = one["ranks"][0], f"{one['processes']} processes, {one['threads']} threads"
        assert leader == alone, who
        assert len(one["ranks"]) == one["processes"]
        for follower in one["ranks"]:
            assert [follower[name] for name in SAME] == [alone[name] for name in SAME], who
