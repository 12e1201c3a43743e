"""The same seed gives the same training in two processes, with one torch thread and with two."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from tiny_training import Sink, plan
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training

for threads in (1, 2):
    wide = NetworkSettings(layers=(256, 256))
    sizes = {"total_steps": 1024, "n_steps": 32, "batch_size": 512, "network": wide}
    training = Training(plan("ppo", torch_threads=threads, **sizes))
    print(training.learn(Sink(), SilentObserver(), lambda: False).state_sha256)
"""


def test_two_processes_end_in_the_same_state_with_one_thread_and_with_two() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=Path(__file__).parent,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    first, second = (process.communicate()[0].split() for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert [len(sha256) for sha256 in first] == [64, 64]
    assert first == second
