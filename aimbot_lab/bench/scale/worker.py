"""One process of a training that goes on in turns: `python -m aimbot_lab.bench.scale.worker JSON`.

JSON is a `ScaleTraining`; RANK, WORLD_SIZE and where all meet are in the environment. Each line of
the standard input is a number of rollouts, after which a line of the standard output tells what
they took. In between the process waits for the next line, and does nothing; it ends with its input.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from aimbot_lab.bench.scale.plan import ScaleTraining
from aimbot_lab.bench.scale.timed_exchange import TimedExchange
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.processes.gloo import connect
from aimbot_lab.training.processes.place import place_from_environment
from aimbot_lab.training.training import Training


class Clocks(NamedTuple):
    """What has passed of each kind of time, or since then."""

    seconds: float
    processor: float  # s of all threads of this process
    main_thread: float  # s of the processor
    exchange: float  # s within the exchange
    exchanges: float  # calls

    def since(self, begun: "Clocks") -> "Clocks":
        """The difference."""
        return Clocks(*(now - then for now, then in zip(self, begun, strict=True)))


class Turns:
    """Holds a training after each turn's last update until the next turn begins."""

    def __init__(self, exchange: TimedExchange) -> None:
        self._exchange, self._left = exchange, 0
        self._begun = self._now()

    def _now(self) -> Clocks:
        exchange = self._exchange
        clocks = time.perf_counter(), time.process_time(), time.thread_time()
        return Clocks(*clocks, exchange.seconds, exchange.calls)

    def wait(self) -> None:
        """Wait for the next turn. Raises SystemExit where there is none."""
        line = sys.stdin.readline()
        if not line:
            raise SystemExit
        self._left, self._begun = int(line), self._now()

    def counting(self, update: Callable[[], None]) -> Callable[[], None]:
        """`update`, which ends a rollout."""

        def counted() -> None:
            update()
            self._left -= 1
            if self._left == 0:
                answer = self._now().since(self._begun)._asdict()
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
                self.wait()

        return counted


class _NoSink:
    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""


def main() -> None:
    """Train as long as there are turns."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    settings = ScaleTraining(**{**given, "layers": tuple(given["layers"])})
    exchange = TimedExchange(connect(place_from_environment()))
    try:
        training, turns = Training(settings.plan(), exchange=exchange), Turns(exchange)
        model: Any = training.model
        model.train = turns.counting(model.train)
        turns.wait()
        training.learn(_NoSink(), SilentObserver(), lambda: False)
    finally:
        exchange.close()


if __name__ == "__main__":
    main()
