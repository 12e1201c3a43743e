"""Who won the episodes that ended in one message of a build.

Result lines and stats carry no agent's id: they are told in the order in which the agents ended. An
agent that was cut off may have none, and has lost then.
"""

from collections.abc import Mapping, Sequence

from aimbot_lab.foundation.episodes import LOSS, WIN
from aimbot_lab.foundation.result_lines import (
    PREFIX,
    EpisodeResult,
    UnparsedLineError,
    parse_result,
)
from aimbot_lab.foundation.world import BoolArray, WorldSpec
from aimbot_lab.mlagents.exception import UnitySideChannelException
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.side_channel import Message
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS
from aimbot_lab.worlds.unity.channels import ChannelReader
from aimbot_lab.worlds.unity.settings import UnityWinRule

Result = EpisodeResult | str
"""How an episode ended, or why that can't be read."""


class ResultReader:
    """Reads the results of one build, with what reads the channels of all."""

    def __init__(
        self, spec: WorldSpec, win: UnityWinRule | None, *, channels: ChannelReader
    ) -> None:
        self._difficulties: Mapping[str, int] = spec.difficulties
        self._columns = spec.episode_columns
        self._win, self._channels = win, channels
        self._lines: list[str] = []
        self._stats: list[float] = []

    def receive(self, messages: Sequence[Message]) -> None:
        """Keep what `messages` say of results until episodes end."""
        self._lines += self._channels.result_lines(messages)
        if self._win is None or self._win.stat is None:
            return
        for data in (data for channel, data in messages if channel == STATS):
            read = IncomingMessage(data)
            try:
                if read.read_string() == self._win.stat:
                    self._stats.append(read.read_float32())
            except UnitySideChannelException:
                self._channels.ignore_stat(data)

    def results(self, returns: Sequence[float], interrupted: BoolArray) -> list[Result]:
        """How the episodes ended whose agents ended now, in order [n]."""
        if not len(interrupted):
            return []
        lines, stats = self._lines, self._stats
        self._lines, self._stats = [], []
        if self._win is None:
            said = _in_order(lines, interrupted, "result lines")
        elif self._win.stat is not None:
            said = _in_order(
                [PREFIX + ("Win" if value > 0.5 else "Lose") for value in stats],
                interrupted,
                f"values of the stat {self._win.stat!a:.40}",
            )
        else:
            above = self._win.return_above or 0.0
            return [EpisodeResult(WIN if total >= above else LOSS) for total in returns]
        return [self._read(line) for line in said]

    def _read(self, line: str) -> Result:
        if not line.startswith("Warning|"):
            return line
        try:
            result = parse_result(line, self._columns)
        except UnparsedLineError as error:
            return str(error)
        cell = result.cell
        if cell is not None and not 0 <= cell.difficulty <= self._difficulties.get(cell.target, -1):
            return f"a result line names {cell.target!a:.40} {cell.difficulty}, no target of ours"
        return result


def _in_order(said: list[str], interrupted: BoolArray, name: str) -> list[str]:
    """The line of each agent that ended [n], or why there is none."""
    count, whole = len(interrupted), int((~interrupted).sum())
    if len(said) == count:
        return said
    if len(said) == whole:
        lines = iter(said)
        return ["Warning|Result|Lose" if cut else next(lines) for cut in interrupted.tolist()]
    return [f"{name} and ended episodes of a step were not as many"] * count
