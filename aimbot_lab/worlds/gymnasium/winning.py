"""Which episodes of a Gymnasium environment are won."""

from collections.abc import Mapping
from typing import Any

from aimbot_lab.worlds.gymnasium.settings import WinRule

EPISODES_WITHOUT_INFO = 100  # after which a key that has not come is reported


class WinJudge:
    """Judges episodes by one rule, and notices where that can't be right."""

    def __init__(self, rule: WinRule) -> None:
        self._rule = rule
        self._judged = 0
        self._keys: set[str] = set()  # that infos had
        self._notices: list[str] = []

    def is_won(
        self, info: Mapping[str, Any], *, truncated: bool, total: float, length: int
    ) -> bool:
        """Whether an episode of that return and length is won; `info` is its last step's."""
        rule = self._rule
        if rule.return_above is not None:
            return bool(total >= rule.return_above)
        if rule.length_above is not None:
            return bool(length >= rule.length_above)
        if rule.info is not None:
            self._note_keys(rule.info, info)
            return bool(info.get(rule.info, False))
        return truncated == (rule.terminated == "loss")

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def _note_keys(self, wanted: str, info: Mapping[str, Any]) -> None:
        if self._judged >= EPISODES_WITHOUT_INFO:
            return
        self._judged += 1
        self._keys |= set(map(str, info))
        if self._judged == EPISODES_WITHOUT_INFO and wanted not in self._keys:
            there = ", ".join(sorted(self._keys)[:10]) or "nothing"
            self._notices.append(
                f"env.win.info: none of the first {EPISODES_WITHOUT_INFO} episodes ended with "
                f"{wanted!r} in its info, so none was won; there was {there}"
            )
