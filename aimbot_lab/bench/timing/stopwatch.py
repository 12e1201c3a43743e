"""Which part of a program takes how much time, by its calls."""

import time
from collections.abc import Callable
from typing import Any

REST = "rest"


class Stopwatch:
    """Seconds by part. What a watched call does in another watched one counts there."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._parts = [REST]
        self._since = time.perf_counter()

    def begin(self) -> None:
        """Forget what was measured; from now on all counts, as the rest where not watched."""
        self.seconds = {}
        self._since = time.perf_counter()

    def watch(self, owner: object, names: str, part: str) -> None:
        """From now on count calls of the methods `names` of `owner` as `part`."""
        for name in names.split():
            setattr(owner, name, self._watched(getattr(owner, name), part))

    def _watched(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self._turn()
            self._parts.append(part)
            try:
                return function(*arguments, **named)
            finally:
                self._turn()
                self._parts.pop()

        return watched

    def _turn(self) -> None:
        now = time.perf_counter()
        part = self._parts[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now

    def end(self) -> dict[str, float]:
        """Seconds by part since `begin`."""
        self._turn()
        return self.seconds
