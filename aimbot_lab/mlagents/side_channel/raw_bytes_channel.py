"""Bytes as they are, under an id of the user's."""

import uuid

from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel


class RawBytesChannel(SideChannel):
    """Sends bytes, and keeps those that came until it is asked for them."""

    def __init__(self, channel_id: uuid.UUID) -> None:
        super().__init__(channel_id)
        self._received: list[bytearray] = []

    def on_message_received(self, msg: IncomingMessage) -> None:
        """Keep them."""
        self._received.append(msg.get_raw_bytes())

    def get_and_clear_received_messages(self) -> list[bytearray]:
        """What came since the last call."""
        received, self._received = self._received, []
        return received

    def send_raw_data(self, data: bytes | bytearray) -> None:
        """Send `data` with the next reset or step."""
        message = OutgoingMessage()
        message.set_raw_bytes(data)
        self.queue_message_to_send(message)
