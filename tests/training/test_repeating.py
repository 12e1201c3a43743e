"""The same seed gives the same training in another process, with one torch thread and with two."""

import subprocess
import sys
from pathlib import Path

import torch as th
from tiny_training import Sink, plan

from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training

PROGRAM = "from test_repeating import trained; print(*(trained(threads) for threads in (1, 2)))"
WIDE = NetworkSettings(layers=(256, 256))


def trained(threads: int) -> str:
    sizes = {"total_steps": 1024, "n_steps": 32, "batch_size": 512, "network": WIDE}
    training = Training(plan("ppo", torch_threads=threads, **sizes))
    return training.learn(Sink(), SilentObserver(), lambda: False).state_sha256


def test_another_process_ends_in_the_same_state_with_one_thread_and_with_two() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    before = th.get_num_threads()
    here = [trained(threads) for threads in (1, 2)]
    th.set_num_threads(before)
    there = process.communicate()[0].split()
    assert process.returncode == 0
    assert [len(sha256) for sha256 in there] == [64, 64]
    assert here == there
