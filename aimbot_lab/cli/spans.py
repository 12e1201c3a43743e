"""Numbers of processes as the command line says them: N, or MIN:MAX."""

from typing import Any, NamedTuple

import click

MAX_DIGITS = 18  # which Python reads at once


class Span(NamedTuple):
    """At least and at most so many."""

    least: int
    most: int

    @property
    def is_elastic(self) -> bool:
        """Whether there may be fewer or more."""
        return self.least < self.most

    def __str__(self) -> str:
        return f"{self.least}:{self.most}" if self.is_elastic else str(self.most)


ONE = Span(1, 1)


class SpanType(click.ParamType[Span]):
    """N or MIN:MAX, both from 1 to `highest`."""

    name = "N|MIN:MAX"

    def __init__(self, highest: int) -> None:
        self._highest = highest

    def convert(self, value: Any, param: Any, ctx: Any) -> Span:
        """The span that `value` says."""
        if isinstance(value, Span):
            return value
        first, colon, last = str(value).partition(":")
        span = Span(self._number(first, param, ctx), self._number(last or first, param, ctx))
        if (colon and not last) or span.least > span.most:
            self.fail(f"{value!r} is not MIN:MAX with MIN at most MAX.", param, ctx)
        return span

    def _number(self, text: str, param: Any, ctx: Any) -> int:
        if not (text.isascii() and text.isdigit()):
            self.fail(f"{text!r} is not a number; N or MIN:MAX is.", param, ctx)
        if len(text) > MAX_DIGITS or not 1 <= int(text) <= self._highest:
            self.fail(f"{text} is not in the range 1<=x<={self._highest}.", param, ctx)
        return int(text)
