"""The environment's side of the side channels: what it understands, and what it reports."""

import logging
import math
import uuid
from collections.abc import Iterable, Sequence

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.world import BatchWorld
from aimbot_lab.mlagents.received_parameters import ReceivedParameters, parameters_of
from aimbot_lab.mlagents.side_channel.engine_configuration_channel import (
    ENGINE_CONFIGURATION,
    EngineConfigurationChannel,
)
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import ENVIRONMENT_PARAMETERS
from aimbot_lab.mlagents.side_channel.float_properties_channel import FLOAT_PROPERTIES
from aimbot_lab.mlagents.side_channel.framing import Message
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS, StatsAggregationMethod
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

LOG = logging.getLogger(__name__)
TRAINING_ANALYTICS = uuid.UUID("b664a4a9-d86f-5a5f-95cb-e8353a7e8356")
PREVIEW = 16  # bytes of an unknown message that are shown
_TIME_SCALE = EngineConfigurationChannel.ConfigurationType.TIME_SCALE


class PlayerChannels:
    """Carries out what trainers send to `world`, and writes what is sent to them.

    `log` is the id under which lines of text go; None: none do.
    """

    def __init__(
        self, world: BatchWorld, parameters: ReceivedParameters, *, log: uuid.UUID | None
    ) -> None:
        self._spec = world.spec
        self._parameters, self._log = parameters, log
        self._quiet = {ENVIRONMENT_PARAMETERS, TRAINING_ANALYTICS, log}
        self._warned: set[object] = set()

    def receive(self, messages: list[Message]) -> None:
        """Set parameters and ignore the rest, each kind with a warning when it first comes.

        Raises UnitySideChannelException for a parameter that the world can't take.
        """
        given = parameters_of(messages)
        unknown = self._parameters.receive(given)
        for name, value in given.items():
            if name not in unknown:
                LOG.info("environment parameter %s: %s", name, value)
        for name in unknown:
            known = ", ".join(self._spec.parameters)
            self._warn(name, f"no environment parameter {name!a}, ignored; there are {known}")
        for channel, message in messages:
            if channel not in self._quiet:
                self._ignore(channel, message)

    def _ignore(self, channel: uuid.UUID, message: bytes) -> None:
        if channel == ENGINE_CONFIGURATION:
            if IncomingMessage(message).read_int32() == _TIME_SCALE:
                self._warn(channel, "the time scale has no effect: worlds step as fast as asked")
        elif channel == FLOAT_PROPERTIES:
            self._warn(channel, "float properties have no effect; use environment parameters")
        else:
            text = message[:PREVIEW].hex(" ")
            self._warn(channel, f"unknown side channel {channel}, ignored; it begins with {text}")

    def _warn(self, what: object, text: str) -> None:
        """Warn of each thing once."""
        if what not in self._warned:
            self._warned.add(what)
            LOG.warning("%s", text)

    def reports(self, episodes: EpisodeBatch, wanted: Iterable[uuid.UUID]) -> list[Message]:
        """What is sent of `episodes` over those channels that are `wanted`."""
        messages: list[Message] = []
        if STATS in wanted:
            messages += [(STATS, stat) for stat in self._stats(episodes)]
        if self._log is not None and self._log in wanted:
            columns = self._spec.result_columns
            lines = (result_line(episodes, place, columns) for place in range(len(episodes.cell)))
            messages += [(self._log, text_message(line)) for line in lines]
        return messages

    def _stats(self, episodes: EpisodeBatch) -> list[bytes]:
        """`Result/Win` as 1 or 0, and the columns of the world, of each episode."""
        named: dict[str, Sequence[float]] = {"Win": episodes.won.astype(float).tolist()}
        named |= {name: values.tolist() for name, values in episodes.columns.items()}
        return [
            stat_message(f"Result/{name}", value)
            for name, values in named.items()
            for value in values
            if math.isfinite(value)
        ]


def reports_over(*, stats: bool, text: bool) -> tuple[uuid.UUID, ...]:
    """The channels over which results are told."""
    return (STATS,) * stats + (STRING_LOG,) * text


def stat_message(key: str, value: float) -> bytes:
    """A number to be averaged, as the stats channel reads it."""
    message = OutgoingMessage()
    message.write_string(key)
    message.write_float32(value)
    message.write_int32(StatsAggregationMethod.AVERAGE.value)
    return bytes(message.buffer)


def text_message(text: str) -> bytes:
    """A line of text; what is not ASCII is escaped, because trainers refuse it."""
    message = OutgoingMessage()
    message.write_string(text.encode("ascii", "backslashreplace").decode("ascii"))
    return bytes(message.buffer)
