"""Threads that share the work of a kernel again and again without the interpreter.

Waking a thread that sleeps takes as long as a small batch's step: a worker that has found nothing
left to do looks out for the next turn for a while before it goes to sleep, and the caller never
waits for a worker that has not begun. A worker that looks out yields to others that want its core,
so that the workers of a world and those of learning, which have their turns one after the other,
can share one. Each worker has a word, in a cache line of its own, changed in one indivisible step
by intrinsics for kernels alone (a thread that waits in Python needs the interpreter to see a
change). Who may change it:

    ASLEEP -> POSTED   the caller, who then wakes the worker
    DONE -> POSTED     the caller; the worker sees it, or is being woken
    POSTED -> DONE     the caller, who has done all the work alone
    DONE -> LEAVING    the caller, who wants the worker out of its kernel
    POSTED -> WORKING -> DONE               the worker
    DONE -> ASLEEP, LEAVING -> ASLEEP       the worker, which leaves its kernel
"""

import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from aimbot_lab.foundation.kernels.jit import PackedCall, inlined, kernel
from aimbot_lab.foundation.world import StepBuffers

F = TypeVar("F", bound=Callable[..., Any])
SyncFlags = np.ndarray[Any, np.dtype[np.int64]]
ALIGNMENT = 8  # bytes of a word
_ORDER = "seq_cst"
_GIL_IS_NOT_ENOUGH = threading.Lock()  # where kernels run as plain Python


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    item: Any = cgutils.get_item_pointer
    return item(context, builder, kind, view, [index], wraparound=False)


@intrinsic
def _load(typing: Any, sync_flags: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values)
        return builder.load_atomic(address, _ORDER, ALIGNMENT)

    return types.int64(sync_flags, types.intp), generate


@intrinsic
def _store(typing: Any, sync_flags: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values[:2])
        builder.store_atomic(values[2], address, _ORDER, ALIGNMENT)
        return context.get_dummy_value()

    return types.void(sync_flags, types.intp, types.int64), generate


@intrinsic
def _swap(typing: Any, sync_flags: Any, index: Any, old: Any, new: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values[:2])
        changed = builder.cmpxchg(address, values[2], values[3], _ORDER, _ORDER)
        return builder.extract_value(changed, 1)

    return types.boolean(sync_flags, types.intp, types.int64, types.int64), generate


@intrinsic
def _add(typing: Any, sync_flags: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values[:2])
        return builder.atomic_rmw("add", address, values[2], _ORDER)

    return types.int64(sync_flags, types.intp, types.int64), generate


@intrinsic
def _give_way(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        declared: Any = cgutils.get_or_insert_function
        builder.call(declared(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def _plain_swap(sync_flags: SyncFlags, index: int, old: int, new: int) -> bool:
    with _GIL_IS_NOT_ENOUGH:
        if sync_flags[index] != old:
            return False
        sync_flags[index] = new
        return True


def _plain_load(sync_flags: SyncFlags, index: int) -> int:
    with _GIL_IS_NOT_ENOUGH:
        return int(sync_flags[index])


def _plain_store(sync_flags: SyncFlags, index: int, value: int) -> None:
    with _GIL_IS_NOT_ENOUGH:
        sync_flags[index] = value


def _plain_add(sync_flags: SyncFlags, index: int, value: int) -> int:
    with _GIL_IS_NOT_ENOUGH:
        sync_flags[index] += value
        return int(sync_flags[index]) - value


def _plain_give_way() -> None:
    time.sleep(0.0)


def _chosen(compiled: Any, plain: F) -> F:
    """`compiled` as it is: an inlined function around it would be compiled for each literal."""
    return plain if vars(numba.config)["DISABLE_JIT"] else cast(F, compiled)


load = _chosen(_load, _plain_load)
"""`sync_flags[index]`, with everything that was written before it."""
store = _chosen(_store, _plain_store)
"""Set `sync_flags[index]`, after everything that was written before."""
swap = _chosen(_swap, _plain_swap)
"""Set `sync_flags[index]` to the last argument where it is the one before; whether it was."""
add = _chosen(_add, _plain_add)
"""Add to `sync_flags[index]`; what it was before."""
yield_core = _chosen(_give_way, _plain_give_way)
"""Let another thread that waits for this one's core have it."""


ASLEEP, POSTED, WORKING, DONE, LEAVING = range(5)
STRIDE = 8  # flags of 8 bytes in a cache line
SPIN_LIMIT = 200_000  # before a thread gives up: a millisecond or two, longer than a policy takes
SPINS_PER_YIELD = 64  # before it gives way


@kernel
def post(sync_flags: SyncFlags) -> int:
    """Tell every worker that there is work; bit k is set where worker k must be woken for it."""
    asleep = 0
    for worker in range(sync_flags.size // STRIDE):
        if not swap(sync_flags, worker * STRIDE, DONE, POSTED):
            store(sync_flags, worker * STRIDE, POSTED)
            asleep |= 1 << worker
    return asleep


@kernel
def call_out(sync_flags: SyncFlags) -> None:
    """Ask the workers that look out to leave their kernels."""
    for worker in range(sync_flags.size // STRIDE):
        swap(sync_flags, worker * STRIDE, DONE, LEAVING)


@kernel
def is_asleep(sync_flags: SyncFlags, worker: int) -> bool:
    """Whether `worker` has left its kernel."""
    return load(sync_flags, worker * STRIDE) == ASLEEP


@kernel
def fall_asleep(sync_flags: SyncFlags, worker: int) -> None:
    """Say that `worker` has left its kernel."""
    store(sync_flags, worker * STRIDE, ASLEEP)


@kernel
def is_at_work(sync_flags: SyncFlags, worker: int) -> bool:
    """Whether `worker` is at work; one that has not begun is not to begin any more."""
    swap(sync_flags, worker * STRIDE, POSTED, DONE)
    return load(sync_flags, worker * STRIDE) == WORKING


@inlined
def begins(sync_flags: SyncFlags, worker: int, spin_limit: int) -> bool:
    """Spin for work at most `spin_limit` times; whether `worker` is now at work, else asleep."""
    for look in range(spin_limit):
        word = load(sync_flags, worker * STRIDE)
        if word == POSTED and swap(sync_flags, worker * STRIDE, POSTED, WORKING):
            return True
        if word == LEAVING:
            break
        if look % SPINS_PER_YIELD == 0:
            yield_core()
    while not swap(sync_flags, worker * STRIDE, DONE, ASLEEP):
        if swap(sync_flags, worker * STRIDE, LEAVING, ASLEEP):
            return False
        if swap(sync_flags, worker * STRIDE, POSTED, WORKING):
            return True
    return False


@inlined
def finish(sync_flags: SyncFlags, worker: int) -> None:
    """Say that `worker` has done its work."""
    store(sync_flags, worker * STRIDE, DONE)


@inlined
def wait_for_workers(sync_flags: SyncFlags, spin_limit: int) -> None:
    """Wait until no worker is at work, for at most `spin_limit` checks of each."""
    for worker in range(sync_flags.size // STRIDE):
        swap(sync_flags, worker * STRIDE, POSTED, DONE)
        for look in range(spin_limit):
            if load(sync_flags, worker * STRIDE) != WORKING:
                break
            if look % SPINS_PER_YIELD == 0:
                yield_core()


Ints = npt.NDArray[np.int64]

STEP, BEGIN = 1, 2  # bits of a duty


class WorkQueue(NamedTuple):
    """What the threads of one batch tell each other."""

    sync_flags: SyncFlags  # [workers * STRIDE]
    taken: SyncFlags  # [threads * STRIDE] each first: how many rows of the thread's were taken
    duty: Ints  # [1] STEP, BEGIN or both
    buffers: Ints  # [1] which of the two buffers is written
    ended: Ints  # [threads * STRIDE] each first: episodes that the thread saw end in the last step


class ThreadWorkspace(NamedTuple):
    """What one thread works with, where its kernels need no arrays of its own."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up


def new_workspaces(count: int) -> tuple[ThreadWorkspace, ...]:
    """Places of `count` threads."""
    return tuple(ThreadWorkspace(number, SPIN_LIMIT) for number in range(count))


def new_queue(sync_flags: SyncFlags, *, threads: int) -> WorkQueue:
    """What `threads` threads tell each other, before the first step."""
    return WorkQueue(
        sync_flags=sync_flags,
        taken=np.zeros(threads * STRIDE, np.int64),
        duty=np.zeros(1, np.int64),
        buffers=np.zeros(1, np.int64),
        ended=np.zeros(threads * STRIDE, np.int64),
    )


@inlined
def take_rows(queue: WorkQueue, thread_id: int, rows: int, chunk: int) -> tuple[int, int]:
    """First and last row (exclusive) of the next `chunk` of all `rows` rows for thread `thread_id`.

    Its own rows come first, then the others'. They are equal where none is left.
    """
    threads = queue.taken.size // STRIDE
    for away in range(threads):
        owner = (thread_id + away) % threads
        end = rows * (owner + 1) // threads
        first = rows * owner // threads + add(queue.taken, owner * STRIDE, chunk)
        if first < end:
            return first, min(first + chunk, end)
    return rows, rows


PAUSE_SECONDS = 5e-5  # between two checks of a worker that other processes keep from working


class Task(Protocol):
    """Work that several threads share."""

    def __call__(self, thread_id: int, /) -> None:
        """Work as thread `thread_id`: 0 the caller, k + 1 worker k.

        The caller returns when the work is done or others are at the rest of it, a worker when it
        has spun in vain for more (see this module's docstring).
        """


class ThreadPool:
    """The caller and `count` - 1 threads that work on a task together.

    A task must release the GIL to gain anything, as kernels do. The threads start with the first
    task; a copy and a forked process start their own. `sync_flags` are the workers' flags, as this
    module's docstring describes them.
    """

    def __init__(self, count: int, sync_flags: SyncFlags | None = None) -> None:
        self.count = count
        self._workers: list[_Worker] = []
        self._process = -1
        self.sync_flags = (
            np.zeros((count - 1) * STRIDE, np.int64) if sync_flags is None else sync_flags
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a new one of the same size: threads cannot be copied.

        Its flags are those that a task copied along with it knows.
        """
        return ThreadPool, (self.count, self.sync_flags)

    def run(self, task: Task) -> None:
        """Do `task`. Raises what a thread raised, once all threads have ended it.

        A signal's handler may raise in here at any moment, which also ends only then.
        """
        if self.count == 1:
            task(0)
            return
        if self._process != os.getpid():
            self._start()
        try:
            self._hand_out(task)
            task(0)
            self._wait()
            errors = [worker.take_error() for worker in self._workers]
        except BaseException:
            self._drain()
            raise
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        self.sync_flags[:] = ASLEEP
        workers = [_Worker(worker, self.sync_flags) for worker in range(self.count - 1)]
        # Not at the process's end: what runs there later may still step, and daemons end anyway.
        weakref.finalize(self, _close, workers, os.getpid()).atexit = False
        for worker in workers:
            threading.Thread(target=worker.serve, name="aimbot-lab-worker", daemon=True).start()
        self._workers = workers
        self._process = os.getpid()

    def _hand_out(self, task: Task) -> None:
        if any(worker.task is not task for worker in self._workers):
            self._change(task)
        asleep = post(self.sync_flags)
        if asleep:
            for worker in self._workers:
                if asleep >> worker.index & 1:
                    worker.wake.put(True)

    def _change(self, task: Task) -> None:
        """Make `task` the next one, with no worker left in the one before."""
        call_out(self.sync_flags)
        for worker in self._workers:
            while not is_asleep(self.sync_flags, worker.index):
                time.sleep(0.0)
            worker.task = task

    def _wait(self) -> None:
        for worker in self._workers:
            while is_at_work(self.sync_flags, worker.index):
                time.sleep(PAUSE_SECONDS)

    def _drain(self) -> None:
        """Wait until all threads rest. What raises meanwhile is raised then."""
        interrupt: BaseException | None = None
        while True:
            try:
                for worker in self._workers:
                    worker.wake.put(True)  # there may be work that it was not woken for
                self._wait()
                for worker in self._workers:
                    worker.take_error()
                break
            except BaseException as error:  # noqa: BLE001
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Worker:
    """One worker: its task, what wakes it, and what it raised.

    As long as the worker's flag is not ASLEEP, the worker is in its task or was woken for it.
    """

    def __init__(self, index: int, sync_flags: SyncFlags) -> None:
        self.index = index
        self.task: Task | None = None
        self.wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._sync_flags = sync_flags
        self._error: BaseException | None = None

    def take_error(self) -> BaseException | None:
        """What the worker raised."""
        error, self._error = self._error, None
        return error

    def serve(self) -> None:
        """Work whenever woken for work, until asked to end."""
        while self.wake.get():
            if self.task is None or is_asleep(self._sync_flags, self.index):
                continue
            try:
                self.task(self.index + 1)
            except BaseException as error:  # noqa: BLE001
                self._error = error
                fall_asleep(self._sync_flags, self.index)


def _close(workers: list[_Worker], process: int) -> None:
    if process == os.getpid():  # a forked process has the workers without their threads
        for worker in workers:
            worker.task = None
            worker.wake.put(False)


class StepTask(NamedTuple):
    """Steps the rows, begins the next episodes, or both, as its turns say.

    It knows two buffers, because callers use two by turns; `fits` says which comes next. It
    must not know the world: a worker may hold it while the world goes. `tables` are the
    world's own, by which it knows whether the task still fits.
    """

    tables: Any
    buffers: tuple[StepBuffers, StepBuffers]
    queue: WorkQueue
    calls: tuple[PackedCall, ...]  # the world's kernel as each thread calls it

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for more work."""
        self.calls[thread_id]()

    def fits(self, tables: Any, buffers: StepBuffers) -> bool:
        """Set the next step to write `buffers`; False where they or the tables are others."""
        if tables is not self.tables:
            return False
        first, second = self.buffers
        if buffers is first:
            self.queue.buffers[0] = 0
        elif buffers is second:
            self.queue.buffers[0] = 1
        else:
            return False
        return True

    def begin_work(self, duty: int) -> None:
        """Set the next work to `duty` on every row."""
        self.queue.duty[0] = duty
        self.queue.taken.fill(0)


Calls = Callable[[tuple[StepBuffers, StepBuffers]], tuple[PackedCall, ...]]
"""What each thread calls to write such a pair of buffers."""


def next_task(
    last: StepTask | None, tables: Any, buffers: StepBuffers, *, queue: WorkQueue, calls: Calls
) -> StepTask:
    """What steps into `buffers` and those that the `last` task wrote."""
    pair = buffers, buffers if last is None else last.buffers[queue.buffers[0]]
    queue.buffers[0] = 0
    return StepTask(tables, buffers=pair, queue=queue, calls=calls(pair))
