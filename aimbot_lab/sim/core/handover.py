"""How threads share a step of a batch without the interpreter.

Every thread has rows of its own, which stay in its core's cache. It takes them in small chunks,
and when none is left it goes on with the others', so that a thread that comes late or is held
up delays nobody. Waking a thread that sleeps takes as long as a small batch's step: a worker that
has found no chunk left looks out for the next step for a while before it goes to sleep, and the
caller never waits for a worker that has not begun. Each worker has a word, in a cache line of
its own, and who may change it:

    ASLEEP -> POSTED   the caller, who then wakes the worker
    DONE -> POSTED     the caller; the worker sees it, or is being woken
    POSTED -> DONE     the caller, who has done all the work alone
    DONE -> LEAVING    the caller, who wants the worker out of its kernel
    POSTED -> WORKING -> DONE               the worker
    DONE -> ASLEEP, LEAVING -> ASLEEP       the worker, which leaves its kernel
"""

from typing import NamedTuple

from aimbot_lab.foundation.atomic import Words, add, load, store, swap
from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.sim.core.state import Floats32, Ints

ASLEEP, POSTED, WORKING, DONE, LEAVING = range(5)
STEP, BEGIN = 1, 2  # bits of a duty
STRIDE = 8  # words of 8 bytes in a cache line
CHUNK = 16  # rows that a thread takes at a time, some 5 microseconds of work


class Turns(NamedTuple):
    """What the threads of one batch tell each other."""

    words: Words  # [workers * STRIDE]
    taken: Words  # [threads * STRIDE] each first: how many rows of the thread's were taken
    duty: Ints  # [1] STEP, BEGIN or both
    buffers: Ints  # [1] which of the two buffers is written
    ended: Ints  # [threads * STRIDE] each first: episodes that the thread saw end in the last step


class Seat(NamedTuple):
    """One thread's place."""

    number: int  # 0 is the caller's, k + 1 that of worker k
    looks: int  # how often the thread looks out for the others before it gives up
    scratch: Floats32  # [4, R padded] of its own


@kernel
def post(words: Words) -> int:
    """Tell every worker that there is work; bit k is set where worker k must be woken for it."""
    asleep = 0
    for worker in range(words.size // STRIDE):
        if not swap(words, worker * STRIDE, DONE, POSTED):
            store(words, worker * STRIDE, POSTED)
            asleep |= 1 << worker
    return asleep


@kernel
def call_out(words: Words) -> None:
    """Ask the workers that look out to leave their kernels."""
    for worker in range(words.size // STRIDE):
        swap(words, worker * STRIDE, DONE, LEAVING)


@kernel
def is_asleep(words: Words, worker: int) -> bool:
    """Whether `worker` has left its kernel."""
    return load(words, worker * STRIDE) == ASLEEP


@kernel
def fall_asleep(words: Words, worker: int) -> None:
    """Say that `worker` has left its kernel."""
    store(words, worker * STRIDE, ASLEEP)


@kernel
def is_at_work(words: Words, worker: int) -> bool:
    """Whether `worker` is at work; one that has not begun is not to begin any more."""
    swap(words, worker * STRIDE, POSTED, DONE)
    return load(words, worker * STRIDE) == WORKING


@inlined
def begins(words: Words, worker: int, looks: int) -> bool:
    """Look out for work at most `looks` times; whether `worker` is now at work, else asleep."""
    for _ in range(looks):
        word = load(words, worker * STRIDE)
        if word == POSTED and swap(words, worker * STRIDE, POSTED, WORKING):
            return True
        if word == LEAVING:
            break
    while not swap(words, worker * STRIDE, DONE, ASLEEP):
        if swap(words, worker * STRIDE, LEAVING, ASLEEP):
            return False
        if swap(words, worker * STRIDE, POSTED, WORKING):
            return True
    return False


@inlined
def take_rows(turns: Turns, seat: int, rows: int) -> tuple[int, int]:
    """First and last row (exclusive) of the next chunk of all `rows` rows for thread `seat`.

    Its own rows come first, then the others'. They are equal where none is left.
    """
    threads = turns.taken.size // STRIDE
    for away in range(threads):
        owner = (seat + away) % threads
        end = rows * (owner + 1) // threads
        first = rows * owner // threads + add(turns.taken, owner * STRIDE, CHUNK)
        if first < end:
            return first, min(first + CHUNK, end)
    return rows, rows


@inlined
def finish(words: Words, worker: int) -> None:
    """Say that `worker` has done its work."""
    store(words, worker * STRIDE, DONE)


@inlined
def wait_for_workers(words: Words, looks: int) -> None:
    """Wait until no worker is at work, for at most `looks` looks at each."""
    for worker in range(words.size // STRIDE):
        swap(words, worker * STRIDE, POSTED, DONE)
        for _ in range(looks):
            if load(words, worker * STRIDE) != WORKING:
                break
