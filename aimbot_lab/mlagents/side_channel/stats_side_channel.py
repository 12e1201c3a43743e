"""Numbers that the environment reports, such as who won."""

import uuid
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum

from aimbot_lab.mlagents.exception import UnitySideChannelException
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

STATS = uuid.UUID("a1d8f7b7-cec8-50f9-b78b-d3e165a78520")


class StatsAggregationMethod(Enum):
    """How several values of one number become one."""

    AVERAGE = 0
    MOST_RECENT = 1
    SUM = 2
    HISTOGRAM = 3


EnvironmentStats = Mapping[str, list[tuple[float, StatsAggregationMethod]]]
"""By the numbers' names, every value with how it is to be aggregated."""


class StatsSideChannel(SideChannel):
    """Keeps what the environment reports until it is asked for."""

    def __init__(self) -> None:
        super().__init__(STATS)
        self.stats: EnvironmentStats = defaultdict(list)

    def on_message_received(self, msg: IncomingMessage) -> None:
        """Keep a number."""
        key, value, code = msg.read_string(), msg.read_float32(), msg.read_int32()
        try:
            method = StatsAggregationMethod(code)
        except ValueError:
            raise UnitySideChannelException(
                f"the number {key!a:.40} came with the unknown aggregation {code}"
            ) from None
        self.stats[key].append((value, method))

    def get_and_reset_stats(self) -> EnvironmentStats:
        """What was reported since the last call."""
        stats, self.stats = self.stats, defaultdict(list)
        return stats
