"""`bench scale`: one training in one and in several processes, by turns, and their exchange.

All processes of a net's trainings are there from its beginning to its end, and rest while another
training has its turn. Each turn is compared with the turn of one process in the same round. Where
cores are few or busy the clock says little, but the processor's time still holds.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.bench import train
from aimbot_lab.bench.train import EXCHANGE, OURS, Sizes, Variant, only
from aimbot_lab.bench.turns import Report, Say, Table, by_turns, group, mean_ratio, seconds_by_turns
from aimbot_lab.training.processes.exchange import (
    ADDRESS,
    PORT,
    RANK,
    WORLD_SIZE,
    rank_from_environment,
)
from aimbot_lab.training.processes.gloo import (
    PATIENCE_SECONDS,
    GlooWire,
    Meeting,
    Widths,
    gathering,
    node_sums,
)
from aimbot_lab.worlds.registry import default_type

LOOPBACK = "127.0.0.1"
TERMS = 8  # sums of losses that go along with an exchange
FASTEST = 10  # the tenth part of all exchanges, whose mean counts
ALL_REDUCE = "all_reduce"
FULL = replace(train.FULL, batch_size=4096, rollouts=4, repeats=24)
TINY = replace(train.TINY, n_steps=32, batch_size=512, repeats=2)


class Turn(NamedTuple):
    """What a training took in its turn for a rollout and its update."""

    rollout_ms: float  # on the clock, of the slowest process
    processor_ms: float  # of all processes and threads together
    main_thread_ms: float  # of the processor, of the process with most
    exchange_ms: float  # on the clock, waiting included, mean of the processes
    exchanges: float


def of_net(net: str, sizes: Sizes) -> list[Variant]:
    """The learner of goto.yaml in several ways: first the one that others are compared with."""
    ways = [(1, 1), (2, 1)] if sizes is TINY else [(1, 1), (2, 1), (4, 1), (1, 2)]
    target = only(default_type().default_target())
    overrides = (target, train.NEVER_ENDS, "train.ent_coef=0.03", "train.learning_rate=0.001")
    return [Variant(OURS, threads, net, overrides, processes) for processes, threads in ways]


def bench_scale(sizes: Sizes, say: Say) -> Report:
    """All measurements; `say` is called with what begins."""
    rows = [row for net in sizes.nets for row in _speeds(sizes, net, say)]
    say("exchanges between two processes")
    floats, count = ((1000,), 20) if sizes is TINY else ((17_000, 100_000), 2000)
    exchanges = []
    with group(_exchange, (), meeting(2)) as ask:
        for size in floats:
            ms, _ = ask((size, count))
            ratios = {way: one / ms[ALL_REDUCE] for way, one in ms.items() if way != ALL_REDUCE}
            exchanges.append({"floats": size, "milliseconds": ms, "ratio_to_all_reduce": ratios})
    settings = {**sizes.shared, "rollouts_of_a_turn": sizes.rollouts, "turns": sizes.repeats}
    title = (
        "Environment steps, the exchange's share of the time, and microseconds of the processor "
        "for a step, all processes together; ratios are to one process, of each turn and of the "
        "fastest"
    )
    ways = "An exchange between two processes by each way, mean of the fastest tenth"
    document = {"settings": settings, "rows": rows, "exchanges": exchanges}
    return Report(document, [Table(title, rows), Table(ways, exchanges)])


def _speeds(sizes: Sizes, net: str, say: Say) -> list[dict[str, Any]]:
    """The rows of a net."""
    variants = of_net(net, sizes)
    say(f"{net}: {sum(one.processes for one in variants)} processes begin")
    calls = {}
    with ExitStack() as stack:
        for one in variants:
            ask = stack.enter_context(group(train.worker, (sizes, one), meeting(one.processes)))
            calls[one] = partial(_turn, ask, sizes.rollouts)
        turns = by_turns(calls, sizes.repeats, say=say, what=f"turns of {net}", warm_up=True)
    return speeds(sizes.steps, turns)


def meeting(processes: int) -> list[dict[str, str]]:
    """The environments of the processes of one run on this machine, by rank."""
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
    shared = {WORLD_SIZE: str(processes), ADDRESS: LOOPBACK, PORT: str(port)}
    return [{**shared, RANK: str(rank)} for rank in range(processes)]


def _turn(ask: Callable[[Any], list[Any]], rollouts: int) -> Turn:
    """What a rollout took, on average over a turn."""
    found = ask((rollouts,))

    def every(name: str) -> list[float]:
        return [1e3 * one.get(name, 0.0) / rollouts for one in found]

    return Turn(
        rollout_ms=max(every("seconds")),
        processor_ms=sum(every("processor")),
        main_thread_ms=max(every("main_thread")),
        exchange_ms=fmean(every(EXCHANGE)),
        exchanges=found[0]["calls"].get(EXCHANGE, 0) / rollouts,
    )


def speeds(steps: int, turns: Mapping[Variant, Sequence[Turn]]) -> list[dict[str, Any]]:
    """The rows of a net, from the turns of each variant, and the steps of a rollout.

    The first is one process.
    """
    first, rows = next(iter(turns.values())), []
    fastest_first = min(one.rollout_ms for one in first)
    for variant, own in turns.items():
        pairs = list(zip(first, own, strict=True))
        fastest = min(one.rollout_ms for one in own)
        rows.append(
            {
                "processes": variant.processes,
                "threads": variant.threads,  # of each process
                "net": variant.net,
                # Environment steps, of the median turn.
                "steps_per_second": 1e3 * steps / median(one.rollout_ms for one in own),
                "exchange_share": sum(t.exchange_ms for t in own) / sum(t.rollout_ms for t in own),
                "exchanges": own[0].exchanges,  # of a rollout
                "processor_us_per_step": 1e3 * median(t.processor_ms for t in own) / steps,
                "main_thread_ms": median(one.main_thread_ms for one in own),  # of a rollout
                "ratio_to_one_process": mean_ratio(a.rollout_ms / b.rollout_ms for a, b in pairs),
                "fastest_steps_per_second": 1e3 * steps / fastest,
                "fastest_ratio": fastest_first / fastest,
                "processor_ratio": mean_ratio(b.processor_ms / a.processor_ms for a, b in pairs),
            }
        )
    return rows


def _exchange(end: Connection) -> None:
    """Answer (floats, exchanges) with the milliseconds of an exchange of one shard by each way.

    The mean of each way's fastest tenth. Ours go up the tree, with the copy into a message and the
    additions that a training has; gloo's all_reduce adds in place.
    """
    place = rank_from_environment()
    with closing(GlooWire(place, Meeting.from_environment(), PATIENCE_SECONDS)) as wire:
        while True:
            floats, exchanges = end.recv()
            widths, terms = Widths(floats, TERMS), np.ones((1, TERMS))
            gradient = np.ones((1, floats), np.float32)
            reduced = np.zeros(floats, np.float32)  # stays so, however often it is added up
            by_doubling = node_sums(wire, place, shards=place.count, widths=widths)
            by_gathering = gathering(wire, place, shards=place.count, widths=widths)
            ways: dict[str, Callable[[], object]] = {
                "tree by doubling": partial(by_doubling.up, gradient, terms),
                "tree by all_gather": partial(by_gathering.up, gradient, terms),
                ALL_REDUCE: partial(wire.all_reduce, reduced),
            }
            best = max(1, exchanges // FASTEST)
            taken = seconds_by_turns(ways, exchanges)
            end.send({way: 1e3 * fmean(sorted(own)[:best]) for way, own in taken.items()})
