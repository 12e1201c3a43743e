"""Settings of the engine: screen, quality, speed of time."""

import uuid
from enum import IntEnum
from typing import NamedTuple

from aimbot_lab.mlagents.exception import UnityCommunicationException, UnitySideChannelException
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

ENGINE_CONFIGURATION = uuid.UUID("e951342c-4f7e-11ea-b238-784f4387d1f7")


class EngineConfig(NamedTuple):
    """Settings of the engine; None leaves one as it is."""

    width: int | None  # pixels
    height: int | None  # pixels
    quality_level: int | None
    time_scale: float | None  # seconds of the game in one of the clock
    target_frame_rate: int | None  # pictures a second; -1: as many as possible
    capture_frame_rate: int | None  # pictures in a second of the game

    @staticmethod
    def default_config() -> "EngineConfig":
        """What ML-Agents sets for training."""
        return EngineConfig(80, 80, 1, 20.0, -1, 60)


class EngineConfigurationChannel(SideChannel):
    """Sends settings of the engine. Worlds of this package have no engine and ignore them."""

    class ConfigurationType(IntEnum):
        """Kinds of messages."""

        SCREEN_RESOLUTION = 0
        QUALITY_LEVEL = 1
        TIME_SCALE = 2
        TARGET_FRAME_RATE = 3
        CAPTURE_FRAME_RATE = 4

    def __init__(self) -> None:
        super().__init__(ENGINE_CONFIGURATION)

    def on_message_received(self, msg: IncomingMessage) -> None:
        """Raise UnityCommunicationException: an environment never sends one."""
        raise UnityCommunicationException(
            f"the environment sent {len(msg.buffer)} bytes over EngineConfigurationChannel, "
            "which goes to the environment only"
        )

    def set_configuration_parameters(
        self,
        width: int | None = None,
        height: int | None = None,
        quality_level: int | None = None,
        time_scale: float | None = None,
        target_frame_rate: int | None = None,
        capture_frame_rate: int | None = None,
    ) -> None:
        """Send what is given. Raises UnitySideChannelException for a width without a height."""
        self.set_configuration(
            EngineConfig(
                width, height, quality_level, time_scale, target_frame_rate, capture_frame_rate
            )
        )

    def set_configuration(self, config: EngineConfig) -> None:
        """Send all that is not None, each as a message."""
        if (config.width is None) != (config.height is None):
            raise UnitySideChannelException(
                "width and height of the screen go together: set both, or none"
            )
        kinds = self.ConfigurationType
        self._send(kinds.SCREEN_RESOLUTION, config.width, config.height)
        self._send(kinds.QUALITY_LEVEL, config.quality_level)
        self._send(kinds.TIME_SCALE, config.time_scale)
        self._send(kinds.TARGET_FRAME_RATE, config.target_frame_rate)
        self._send(kinds.CAPTURE_FRAME_RATE, config.capture_frame_rate)

    def _send(self, kind: ConfigurationType, *values: float | None) -> None:
        if values[0] is None:
            return
        message = OutgoingMessage()
        message.write_int32(kind)
        for value in values:
            if kind == self.ConfigurationType.TIME_SCALE:
                message.write_float32(value or 0.0)
            else:
                message.write_int32(value)  # type: ignore[arg-type]
        self.queue_message_to_send(message)
