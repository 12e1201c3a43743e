"""How long a rollout and its update take in several processes: a model, which measures nothing.

A process with r rows and one thread needs `fixed_ms` + r (`world_ms` + weights `weight_ms`) for 64
steps of each row and four epochs. The slowest of W processes takes 1 + `jitter` sqrt(2 ln W) times
that, about the largest of W normal deviations. An exchange takes `call_ms`, and log2 W messages of
`message_ms` and of the gradient's bytes over `bytes_per_ms`; there is one for each minibatch and
two more for a rollout. Each process has a core of its own.

For other numbers of steps and epochs: what is fixed grows with the steps; of what the rows need, a
part of COLLECTING grows with the steps, and the rest with steps times epochs. For other networks,
memories and encoders included, the time grows with the number of weights.
"""

from dataclasses import dataclass, replace
from math import log, log2, sqrt
from typing import NamedTuple

STEPS, EPOCHS = 64, 4  # that the costs are for
COLLECTING = 0.28  # part of a training in which it plays, the rest is learning
EXCHANGES = 2  # of a rollout, beside those of its minibatches: what ended, and advantages
BYTES = 4  # of a weight's gradient


class Work(NamedTuple):
    """What all processes together do for a rollout and its update."""

    rows: int
    shards: int  # of neighbouring rows
    steps: int  # of each row
    epochs: int
    minibatches: int  # of an epoch
    weights: int

    @property
    def samples(self) -> int:
        """Environment steps of all rows."""
        return self.rows * self.steps

    @property
    def exchanges(self) -> int:
        """How often the processes of a rollout exchange something."""
        return self.epochs * self.minibatches + EXCHANGES


@dataclass(frozen=True)
class Costs:
    """What the parts of a training take, on a machine and over a network.

    The default is what was measured of layers of 64 and 64 units on an AMD EPYC, within a machine.
    """

    fixed_ms: float = 12.0
    world_ms: float = 0.025  # of a row
    weight_ms: float = 0.305 / 16_916  # of a row, for each weight
    call_ms: float = 0.35  # of an exchange, without its messages
    message_ms: float = 0.12
    bytes_per_ms: float = 5e6
    jitter: float = 0.05

    def scaled(self, factor: float) -> "Costs":
        """The same where a process computes `factor` times as long."""
        return replace(
            self,
            fixed_ms=self.fixed_ms * factor,
            world_ms=self.world_ms * factor,
            weight_ms=self.weight_ms * factor,
        )


ON_PAPER = Costs()
TEN_GIGABIT = replace(ON_PAPER, bytes_per_ms=0.8e6)  # what is left of the 1.25e6 of its name
GIGABIT = replace(ON_PAPER, bytes_per_ms=0.1e6)


class Expected(NamedTuple):
    """What a rollout and its update take."""

    computing_ms: float  # of the slowest process
    exchange_ms: float

    @property
    def whole_ms(self) -> float:
        """Milliseconds from a rollout's beginning to the next."""
        return self.computing_ms + self.exchange_ms

    @property
    def exchange_share(self) -> float:
        """Which part of the time is exchange."""
        return self.exchange_ms / self.whole_ms


def expected(work: Work, processes: int, costs: Costs = ON_PAPER) -> Expected:
    """What `work` takes in so many processes, with one thread each."""
    shards = -(-work.shards // processes)  # of the one that has most
    rows = shards * work.rows // work.shards
    length = work.steps / STEPS
    epochs = COLLECTING + (1.0 - COLLECTING) * work.epochs / EPOCHS
    row_ms = (costs.world_ms + work.weights * costs.weight_ms) * epochs
    slowest = 1.0 + costs.jitter * sqrt(2.0 * log(processes))
    computing = (costs.fixed_ms + rows * row_ms) * length * slowest
    if processes == 1:
        return Expected(computing, 0.0)
    message = costs.message_ms + work.weights * BYTES / costs.bytes_per_ms
    return Expected(computing, work.exchanges * (costs.call_ms + log2(processes) * message))
