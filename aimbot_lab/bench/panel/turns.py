"""A training that is watched by turns: what each of its stretches took.

A stretch goes from the beginning of a rollout to that of another, so that it holds whole rollouts
and their updates. Watched, the training answers requests and shows itself as every run does.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.training.run_hooks import LivePublisher, Requests


class Stretch(NamedTuple):
    """What a stretch of a training took for a million steps."""

    watched: bool
    processor: float  # s of the training's process
    clock: float  # s
    own: float  # s of `processor` within the code that answers and shows


class Meter:
    """Seconds of the processor that calls take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, call: Callable[[], Any]) -> Any:
        """What `call` returns."""
        begun = time.process_time()
        try:
            return call()
        finally:
            self.seconds += time.process_time() - begun


class MeteredRequests:
    """A control channel whose looks and answers are metered."""

    def __init__(self, requests: Requests, meter: Meter) -> None:
        self._requests, self._meter = requests, meter

    def requests(self) -> Sequence[tuple[str, Any]]:
        """What is asked, each with a key."""
        found: Sequence[tuple[str, Any]] = self._meter(self._requests.requests)
        return found

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        """Answer it."""
        self._meter(lambda: self._requests.answer(key, document))

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        """Nobody changes anything here."""

    def changes(self) -> Sequence[tuple[int, Any]]:
        """None."""
        return ()


class Turns:
    """Shows a training in every other pair of stretches: alone, watched, watched, alone, ...

    `new` makes a publication that nobody watches; `turn` tells the watcher whether to watch from
    now on; `ended` gets each stretch of `seconds` or little more, but the first, which warms up.
    """

    def __init__(
        self,
        new: Callable[[], LivePublisher],
        *,
        turn: Callable[[bool], None],
        ended: Callable[[Stretch], None],
        meter: Meter,
        seconds: float,
    ) -> None:
        self._new, self._turn, self._ended = new, turn, ended
        self._meter, self._seconds = meter, seconds
        self._number = -1  # of the stretch; the one before the first is not counted
        self._shown = new()
        self._begin(0)

    @property
    def watched(self) -> bool:
        """Whether the present stretch is watched."""
        return self._number % 4 in (1, 2)

    def _begin(self, step: int) -> None:
        self._meter.seconds = 0.0
        self._begun = step, time.process_time(), time.perf_counter()

    def watch(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Somebody watches; at rest the request came too late."""
        if not self.watched:
            return {"watched_for": 0}
        return dict(self._meter(lambda: self._shown.watch(document)))

    def publish(self, progress: CurriculumProgress, *, step: int, policy: Any) -> None:
        """A rollout begins at environment step `step`: the next stretch, where it is time."""
        if time.perf_counter() - self._begun[2] >= self._seconds:
            self._next(step)
        self._meter(lambda: self._shown.publish(progress, step=step, policy=policy))

    def show_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """As the publication of the stretch."""
        return self._shown.show_agent(policy, about)

    def _next(self, step: int) -> None:
        processor, clock = time.process_time(), time.perf_counter()
        millions = (step - self._begun[0]) / 1e6
        taken = processor - self._begun[1], clock - self._begun[2], self._meter.seconds
        if self._number >= 0:
            self._ended(Stretch(self.watched, *(seconds / millions for seconds in taken)))
        self._number += 1
        self._shown = self._new()
        self._turn(self.watched)
        self._begin(step)
