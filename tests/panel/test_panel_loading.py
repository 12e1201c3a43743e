"""Heavy libraries are imported one after another, however many threads want them."""

import threading
from importlib.util import find_spec

from aimbot_lab.panel.server import loading
from aimbot_lab.panel.server.loading import Loader


def test_no_two_threads_import_at_the_same_time_and_each_module_once() -> None:
    at_work, both, loaded = threading.Semaphore(1), threading.Barrier(4), []

    def load(name: str) -> None:
        assert at_work.acquire(blocking=False), "two at a time"
        loaded.append(name)
        at_work.release()

    loader = Loader(load)

    def want(*modules: str) -> None:
        both.wait()
        loader.need(*modules)

    wanted = (("a", "b"), ("b", "a"), ("c", "a"), ("b", "c"))
    threads = [threading.Thread(target=want, args=modules) for modules in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(loaded) == ["a", "b", "c"]


def test_the_modules_that_are_loaded_so_exist() -> None:
    for name in (*loading.KERNELS, *loading.STORE, *loading.AGENTS, *loading.SWEEPS):
        assert find_spec(name) is not None
