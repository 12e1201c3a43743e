"""Whether an episode is won, by the rule of the settings."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.worlds.gymnasium.settings import WinRule
from aimbot_lab.worlds.gymnasium.spaces import MisfitError

EPISODES_WITHOUT_INFO = 20  # after which a key that has not come is reported
SHOWN = 10  # keys that a message names


class WinJudge:
    """Judges episodes by one rule, and notices where that can't be right."""

    def __init__(self, rule: WinRule) -> None:
        self._rule = rule
        self._judged = 0
        self._came = False  # whether an info had the key
        self._keys: set[str] = set()  # that infos had
        self._notices: list[str] = []

    def is_won(
        self, info: Mapping[str, Any], *, truncated: bool, total: float, length: int
    ) -> bool:
        """Whether an episode of that return and length is won; `info` is its last step's.

        Raises MisfitError where what `info` has under the rule's key is neither true nor false.
        """
        rule = self._rule
        if rule.return_above is not None:
            return bool(total >= rule.return_above)
        if rule.length_above is not None:
            return bool(length >= rule.length_above)
        if rule.info is not None:
            found = info_entry(info, rule.info)
            self._note_keys(rule.info, info, came=found is not None)
            return _truth(found, rule.info)
        return truncated == (rule.terminated == "loss")

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def _note_keys(self, wanted: str, info: Mapping[str, Any], *, came: bool) -> None:
        if self._judged >= EPISODES_WITHOUT_INFO:
            return
        self._judged += 1
        self._came |= came
        self._keys |= set(info_keys(info))
        if self._judged == EPISODES_WITHOUT_INFO and not self._came:
            there = ", ".join(sorted(self._keys)[:SHOWN]) or "nothing"
            self._notices.append(
                f"env.win.info: none of the first {EPISODES_WITHOUT_INFO} episodes ended with "
                f"{wanted!r} in its info, so none was won; there was {there}"
            )


def info_entry(info: Mapping[str, Any], key: str) -> Any:
    """What `info` has under `key`, in which dots may lead into dicts; None: nothing."""
    if key in info:
        return info[key]
    first, _, rest = key.partition(".")
    inner = info.get(first)
    return info_entry(inner, rest) if rest and isinstance(inner, Mapping) else None


def _truth(found: Any, key: str) -> bool:
    if isinstance(found, Mapping):
        entries = ", ".join(f"{key}.{name}" for name in islice(found, SHOWN)) or "nothing"
        raise MisfitError(
            f"has a dict at {key!r}, which is always true: env.win.info must name an entry of it "
            f"(there is {entries})"
        )
    if isinstance(found, np.ndarray) and found.size == 1:
        found = found.item()
    if found is None:
        return False
    if isinstance(found, bool | np.bool_ | int | float | np.number) and found in (0, 1):
        return bool(found)
    shown = shortened(one_line(str(found)), 40)
    what = f"{shown} ({type(found).__name__}) at {key!r}"
    raise MisfitError(f"has {what}: env.win.info must name what is true or false, 1 or 0")


def info_keys(info: Mapping[str, Any]) -> Iterator[str]:
    """Every key, those of dicts within with the way to them."""
    for key, value in info.items():
        inner = value if isinstance(value, Mapping) and value else None
        yield from [str(key)] if inner is None else (f"{key}.{name}" for name in inner)
