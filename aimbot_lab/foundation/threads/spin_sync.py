"""How threads share work again and again without the interpreter.

Waking a thread that sleeps takes as long as a small batch's step: a worker that has found nothing
left to do looks out for the next turn for a while before it goes to sleep, and the caller never
waits for a worker that has not begun. Whoever looks out gives way to others that want its core,
so that the workers of a world and those of learning, which have their turns one after the other,
can share one. Each worker has a word, in a cache line of its own, and who may change it:

    ASLEEP -> POSTED   the caller, who then wakes the worker
    DONE -> POSTED     the caller; the worker sees it, or is being woken
    POSTED -> DONE     the caller, who has done all the work alone
    DONE -> LEAVING    the caller, who wants the worker out of its kernel
    POSTED -> WORKING -> DONE               the worker
    DONE -> ASLEEP, LEAVING -> ASLEEP       the worker, which leaves its kernel
"""

from aimbot_lab.foundation.kernels.atomic import Words, give_way, load, store, swap
from aimbot_lab.foundation.kernels.jit import inlined, kernel

ASLEEP, POSTED, WORKING, DONE, LEAVING = range(5)
STRIDE = 8  # words of 8 bytes in a cache line
LOOKS = 200_000  # before a thread gives up: a millisecond or two, longer than a policy takes
LOOKS_AT_ONCE = 64  # before it gives way


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
    for look in range(looks):
        word = load(words, worker * STRIDE)
        if word == POSTED and swap(words, worker * STRIDE, POSTED, WORKING):
            return True
        if word == LEAVING:
            break
        if look % LOOKS_AT_ONCE == 0:
            give_way()
    while not swap(words, worker * STRIDE, DONE, ASLEEP):
        if swap(words, worker * STRIDE, LEAVING, ASLEEP):
            return False
        if swap(words, worker * STRIDE, POSTED, WORKING):
            return True
    return False


@inlined
def finish(words: Words, worker: int) -> None:
    """Say that `worker` has done its work."""
    store(words, worker * STRIDE, DONE)


@inlined
def wait_for_workers(words: Words, looks: int) -> None:
    """Wait until no worker is at work, for at most `looks` looks at each."""
    for worker in range(words.size // STRIDE):
        swap(words, worker * STRIDE, POSTED, DONE)
        for look in range(looks):
            if load(words, worker * STRIDE) != WORKING:
                break
            if look % LOOKS_AT_ONCE == 0:
                give_way()
