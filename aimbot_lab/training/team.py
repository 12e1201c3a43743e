"""Threads that share out the parts of a task, in place of torch's."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

import torch as th

MOST_THREADS = 8


@contextmanager
def one_torch_thread() -> Iterator[int]:
    """Have torch work with one thread; the number that it had before, and has again after."""
    threads = th.get_num_threads()
    th.set_num_threads(1)
    try:
        yield threads
    finally:
        th.set_num_threads(threads)


class Team:
    """Does tasks in parts, a fixed share of them in each thread, the caller's being the first.

    The parts must release the GIL to gain anything, as kernels and BLAS do. Threads start with
    the first task that needs them; a forked process starts its own.
    """

    def __init__(self) -> None:
        self.threads = 1
        self._helpers: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def resize(self, threads: int) -> None:
        """From now on work with so many threads, as far as there may be work for them."""
        threads = max(1, min(threads, MOST_THREADS))
        if threads != self.threads:
            self.threads, self._helpers = threads, None

    def run(self, task: Callable[[int, int], None], parts: int) -> None:
        """Call `task` with each number below `parts` and that of the thread that does it.

        Ends when all have, also where one raises, or a signal's handler does.
        """
        threads = max(1, min(self.threads, parts))

        def share(thread: int) -> None:
            for part in range(thread, parts, threads):
                task(part, thread)

        others = [self._pool().submit(share, thread) for thread in range(1, threads)]
        try:
            share(0)
        finally:
            wait(others)
        for other in others:
            other.result()

    def _pool(self) -> ThreadPoolExecutor:
        if self._helpers is None or self._process != os.getpid():
            self._process = os.getpid()
            self._helpers = ThreadPoolExecutor(self.threads - 1, "aimbot-lab-update")
        return self._helpers
