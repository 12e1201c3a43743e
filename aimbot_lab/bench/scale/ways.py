"""What an exchange takes by each way: `python -m aimbot_lab.bench.scale.ways` in two processes.

Each line of the standard input is a number of floats and one of exchanges; the answer has the
milliseconds of each way. Ours go up the tree, with the copy into a message and the additions that
a training has; gloo's all_reduce adds in place.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import numpy as np

from aimbot_lab.training.processes.gloo import PATIENCE_SECONDS, GlooWire, Meeting
from aimbot_lab.training.processes.node_sums import NodeSums, Widths, gathering, node_sums
from aimbot_lab.training.processes.place import Place, place_from_environment

TERMS = 8  # sums of losses that go along
FASTEST = 10  # the tenth part of all exchanges, whose mean counts
DOUBLING, GATHERING, ALL_REDUCE = "tree by doubling", "tree by all_gather", "all_reduce"
Way = Callable[[], object]


def ways(wire: GlooWire, place: Place, floats: int) -> dict[str, Way]:
    """An exchange of one shard of each process, by each way."""
    widths = Widths(floats, TERMS)
    gradient = np.ones((1, floats), np.float32)
    terms = np.ones((1, TERMS))
    reduced = np.zeros(floats, np.float32)  # it stays so, however often it is added up

    def up(sums: NodeSums) -> Way:
        return lambda: sums.up(gradient, terms)

    return {
        DOUBLING: up(node_sums(wire, place, shards=place.count, widths=widths)),
        GATHERING: up(gathering(wire, place, shards=place.count, widths=widths)),
        ALL_REDUCE: lambda: wire.all_reduce(reduced),
    }


def milliseconds(named: Mapping[str, Way], exchanges: int) -> dict[str, float]:
    """The mean of each way's fastest tenth; they take turns, in alternating order."""
    taken: dict[str, list[float]] = {name: [] for name in named}
    order: Sequence[str] = list(named)
    for _ in range(exchanges):
        order = order[::-1]
        for name in order:
            begun = time.perf_counter()
            named[name]()
            taken[name].append(1e3 * (time.perf_counter() - begun))
    return {
        name: fmean(sorted(all_)[: max(1, exchanges // FASTEST)]) for name, all_ in taken.items()
    }


def main() -> None:
    """Answer each line."""
    place = place_from_environment()
    wire = GlooWire(place, Meeting.from_environment(), PATIENCE_SECONDS)
    try:
        for line in sys.stdin:
            floats, exchanges = map(int, line.split())
            answer = milliseconds(ways(wire, place, floats), exchanges)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        wire.close()


if __name__ == "__main__":
    main()
