"""Result lines as a page shows them: what Unity sends, and what is added, in rounded numbers."""

from dataclasses import dataclass

from aimbot_lab.foundation.result_lines import PREFIX

MANY = 10_000.0  # from here on whole numbers are shown


@dataclass(frozen=True)
class ResultLine:
    """A line that a game sends, and what this project's own simulator adds to it."""

    line: str  # as Unity sends it: Warning|Result|Win
    detail: str = ""


def readable(full: str) -> ResultLine:
    """A whole result line in its two parts; another line as it is."""
    if not full.startswith(PREFIX):
        return ResultLine(full)
    outcome, *fields = full.removeprefix(PREFIX).split("|")
    return ResultLine(PREFIX + outcome, ", ".join(map(_rounded, fields)))


def in_one(full: str) -> str:
    """A whole result line as one text."""
    found = readable(full)
    return f"{found.line} ({found.detail})" if found.detail else found.line


def _rounded(field: str) -> str:
    """`return=1.2345678` as return=1.235."""
    name, _, value = field.partition("=")
    try:
        number = float(value)
    except ValueError:
        return field
    return f"{name}={number:.0f}" if abs(number) >= MANY else f"{name}={number:.4g}"
