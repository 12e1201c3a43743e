"""What one of several processes does: `python exchange_program.py [speak] SIGNAL PATIENCE`."""

import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from aimbot_lab.training.processes.exchange import Exchange, LostError, rank_from_environment, share
from aimbot_lab.training.processes.gloo import connect

SHARDS = (4, 5, 7, 12, 16, 64)
WIDTHS = (1001, 6)  # an odd one: the next node's float64 must not follow at once
MINIBATCHES = 3


def leaves(shards: int, minibatch: int) -> tuple[Any, Any]:
    """Gradients [S, P] and terms [S, 6] of all shards."""
    rng = np.random.default_rng([shards, minibatch])
    gradients, terms = (
        rng.standard_normal((shards, width)) * 10.0 ** rng.uniform(-3, 3, (shards, width))
        for width in WIDTHS
    )
    return gradients.astype(np.float32), terms


def minibatch_sums(exchange: Exchange, shards: int) -> list[str]:
    """The sums' bytes of some minibatches, as every process gets them."""
    own, found = list(share(exchange.place.rank, exchange.place.count, shards)), []
    for minibatch in range(MINIBATCHES):
        sums = exchange.sum_up(*(of[own] for of in leaves(shards, minibatch)), shards=shards)
        # A hash: what a process writes fits into a pipe.
        found.append(hashlib.sha256(sums.gradient.tobytes() + sums.terms.tobytes()).hexdigest())
    return found


def said_by(rank: int) -> bytes:
    """Rank 0 says nothing at all."""
    return bytes([7, 0, 255][:rank]) * 10**rank


def given_by(rank: int) -> Any:
    """Numbers that gloo does not know, not contiguous."""
    return (np.arange(12, dtype=np.uint64).reshape(3, 4) + np.uint64(2**63 + rank))[:, ::2]


def large_of(rank: int) -> bytes:
    """More than sockets hold."""
    return b"%d" % rank * 8_000_000 + bytes(rank)


def threads_named(name: str) -> list[int]:
    """The ids of this process's threads with a name."""
    tasks = Path("/proc/self/task").iterdir()
    return [int(one.name) for one in tasks if (one / "comm").read_text().strip() == name]


def how_it_runs(thread: int) -> dict[str, Any]:
    """By which policy, and on which cores."""
    cores = sorted(os.sched_getaffinity(thread))
    return {"policy": os.sched_getscheduler(thread), "cores": cores}


def speak(exchange: Exchange) -> None:
    rank = exchange.place.rank
    answer = {
        "sums": {str(shards): minibatch_sums(exchange, shards) for shards in SHARDS},
        "gathered": [data.hex() for data in exchange.gather(said_by(rank))],
        "nothing": [data.hex() for data in exchange.gather(b"")],
        "arrays": exchange.gather_arrays(given_by(rank)).tolist(),
        "empty": list(exchange.gather_arrays(np.empty((0, 3))).shape),
        "large": [hashlib.sha256(data).hexdigest() for data in exchange.gather(large_of(rank))],
        "computing": how_it_runs(0),
        "carrying": [how_it_runs(thread) for thread in threads_named("gloo_tcp_loop")],
    }
    seen = threading.Event()
    begun_meanwhile = threading.Thread(target=seen.wait)
    begun_meanwhile.start()
    exchange.close()
    answer["afterwards"] = [how_it_runs(0), how_it_runs(begun_meanwhile.native_id or 0)]
    seen.set()
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def lose(exchange: Exchange, number: signal.Signals) -> None:
    """The last rank is gone or stops; the others wait for it."""
    place = exchange.place
    exchange.gather(b"all are here")
    if place.rank == place.count - 1:
        os.kill(os.getpid(), number)
    minibatch_sums(exchange, 16)


def connected(do: Callable[[Exchange], None], patience_s: float) -> None:
    exchange = connect(rank_from_environment(), patience_s=patience_s)
    try:
        do(exchange)
    finally:
        exchange.close()


if __name__ == "__main__":
    *speaks, name, patience = sys.argv[1:]
    if speaks:
        connected(speak, float(patience))
        os.environ["MASTER_PORT"] = os.environ["NEXT_PORT"]
    begin = time.monotonic()
    try:
        connected(lambda exchange: lose(exchange, signal.Signals[name]), float(patience))
    except LostError as error:
        sys.stdout.write(f"{error}\n")
        assert not speaks or time.monotonic() - begin < float(patience) / 3, "it was waited for"
        sys.exit(error.exit_code)
