"""Numbers by name that both sides set and read."""

import uuid

from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

FLOAT_PROPERTIES = uuid.UUID("60ccf7d0-4f7e-11ea-b238-784f4387d1f7")


class FloatPropertiesChannel(SideChannel):
    """Numbers by name, shared with the environment. Worlds of this package ignore them."""

    def __init__(self, channel_id: uuid.UUID | None = None) -> None:
        super().__init__(FLOAT_PROPERTIES if channel_id is None else channel_id)
        self._properties: dict[str, float] = {}

    def on_message_received(self, msg: IncomingMessage) -> None:
        """Keep what the environment set."""
        key = msg.read_string()
        self._properties[key] = msg.read_float32()

    def set_property(self, key: str, value: float) -> None:
        """Set `key` here and in the environment."""
        message = OutgoingMessage()
        message.write_string(key)
        message.write_float32(value)
        self._properties[key] = value
        self.queue_message_to_send(message)

    def get_property(self, key: str) -> float | None:
        """The value of `key`; None: it has none."""
        return self._properties.get(key)

    def list_properties(self) -> list[str]:
        """The names of all."""
        return list(self._properties)

    def get_property_dict_copy(self) -> dict[str, float]:
        """All of them."""
        return dict(self._properties)
