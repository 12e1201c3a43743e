"""Text of others made harmless where it is shown: on a terminal, in Markdown, in HTML.

Names, notes and messages come from files, stores and servers that anyone may have written. What a
reader would take for more than text (escape sequences, line ends, marks that turn the direction of
writing, Markdown, tags) is shown as its code.
"""

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories
_JOINERS = "\u200c\u200d"  # of letters and emoji: they are invisible, and change no direction
_MARKDOWN = re.compile(r"[^\w ,()/%='.-]|_|(?<=[wW]{3})\.")
MAX_LINE = 1_000  # characters of a refusal
MANY_NAMES = 8  # above which a refusal names the nearest alone
MAX_WRONG = 80  # characters of a wrong name that are compared


def is_seen(text: str) -> bool:
    """Whether `text` consists of visible characters and spaces on one line."""
    if text.isascii():
        return text.isprintable()
    return not any(
        unicodedata.category(character) in _UNSEEN and character not in _JOINERS
        for character in text
    )


def one_line(text: str) -> str:
    """`text` on one line, with everything but visible characters escaped."""
    if is_seen(text):
        return text
    return "".join(
        character if is_seen(character) else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def terminal_lines(text: str) -> str:
    """`text` of several lines for a terminal, each of them escaped as `one_line` does."""
    return "\n".join(map(one_line, text.split("\n")))


def refusal_lines(text: str) -> str:
    """As `terminal_lines`, with the middle of very long lines left out."""
    return "\n".join(shortened(one_line(line), MAX_LINE) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """`text`, without its middle where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    kept = (most - 5) // 2
    return f"{text[:kept]} ... {text[-kept:]}"


def nearest_name(wrong: str, names: Iterable[str], what: str = "key") -> str:
    """What to write in place of `wrong`: the nearest of `names`, else all; `what` each is."""
    names = list(names)
    near = _nearest(wrong, names)
    return (
        f"nearest valid {what}: {near}" if near else f"valid {what}s: {', '.join(names) or 'none'}"
    )


def allowed_names(wrong: str, names: Sequence[str], listed: str) -> str:
    """What is allowed in the place of `wrong`: `names`, as they are `listed`.

    Of many the nearest alone, whatever the case of `wrong`; all are listed where none is near.
    """
    near = _nearest(wrong.lower(), names) if len(names) > MANY_NAMES else ""
    return f"one of {len(names)} names, the nearest is {near}" if near else listed


def _nearest(wrong: str, names: Sequence[str]) -> str:
    return "".join(get_close_matches(wrong[:MAX_WRONG], names, n=1))


def markdown_text(text: str) -> str:
    """`text` as one line of Markdown that shows just these characters: no tag, link or table."""
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", one_line(text))


def html_text(text: str) -> str:
    """`text` as one line of HTML, also within an attribute."""
    return html.escape(one_line(text))


MAX_LOG = 700.0  # whose exponential is finite
MIN_SECONDS = 1e-9  # that a speed is taken over


def shown_ends(lower: float, upper: float, *, least: float = 0.0) -> tuple[float, float]:
    """Both ends as three decimals show them, without claiming what is not known.

    A rate that may be lower than 1 does not read as at least 1.000, nor one that may be higher
    than 0 as at most 0.000. `least` is the value that 0 stands for.
    """
    unit = 10.0**-3
    low = 1.0 - unit if lower < 1.0 == round(lower, 3) else lower
    high = least + unit if upper > least == round(upper, 3) else upper
    return low, high


def shown_rate(rate: float | None, lower: float, upper: float) -> str:
    """A rate with its interval, as 91.2 % [88.5, 93.4]."""
    low, high = shown_ends(lower, upper)
    return "-" if rate is None else f"{percent(rate)} [{100 * low:.1f}, {100 * high:.1f}]"


def shown_return(mean: float | None, lower: float | None = None, upper: float | None = None) -> str:
    """A mean return, with its interval where that is known, as -12.5 [-14, -11]."""
    if mean is None:
        return "-"
    ends = "" if lower is None or upper is None else ", ".join(map(shown_number, (lower, upper)))
    return shown_number(mean) + (ends and f" [{ends}]")


def shown_number(value: float, sign: str = "") -> str:
    """A number in four digits, from a thousand on all of the whole ones: 1,308; `sign` as "+"."""
    return format(value, f"{sign}.4g" if abs(value) < 999.95 else f"{sign},.0f")


def shown_difference(difference: float, lower: float | None, upper: float | None) -> str:
    """A difference of rates in percentage points, with its interval, if it has one."""
    if lower is None or upper is None:
        return f"{100 * difference:+.1f} points"
    low, high = shown_ends(lower, upper, least=-1.0)
    return f"{100 * difference:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"


def shown_measure(measure: str, value: float, *, digits: int = 6) -> str:
    """A value of a lesson's measure in a few digits: a win rate as 70 %, others as they are."""
    return f"{100 * value:.{digits}g} %" if measure == "win_rate" else f"{value:.{digits}g}"


def percent(rate: float | None) -> str:
    """A rate, as 91.2 %."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def percent_interval(lower: float, upper: float) -> str:
    """The interval of a rate, as 88.5 % to 93.4 %."""
    low, high = shown_ends(lower, upper)
    return f"{percent(low)} to {percent(high)}"


def speed(steps: float, seconds: float) -> float:
    """Steps a second."""
    return steps / max(seconds, MIN_SECONDS)


def shown_speed(steps_per_second: float) -> str:
    """A speed, as 412,345 steps/s."""
    return f"{steps_per_second:,.0f} steps/s"


def odds(log_evidence: float) -> float:
    """Evidence as odds, cut where a float would not hold it."""
    return math.exp(min(log_evidence, MAX_LOG))


def shown_odds(value: float, needed: float = math.inf) -> str:
    """Odds in few digits; from a million on only that, where no more are `needed`."""
    if value >= max(1e6, needed):
        return "1,000,000+"
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def shown_evidence(found: float, needed: float) -> str:
    """Evidence as odds, as 22.1 of 20."""
    return f"{shown_odds(found, needed)} of {shown_odds(needed)}"


def finite_numbers(value: Any) -> Any:
    """`value` for a JSON document, with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_numbers(one) for key, one in value.items()}
    return [finite_numbers(one) for one in value] if isinstance(value, list | tuple) else value
