"""Lines of text: results of episodes from the environment, commands to it.

ML-Agents has no such class; its documentation shows one as an example, under the id that is the
default here. A build may use another.
"""

import uuid

from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

STRING_LOG = uuid.UUID("621f0a70-4f87-11ea-a6bf-784f4387d1f7")


class StringLogChannel(SideChannel):
    """Sends lines, and keeps those that came, such as `Warning|Result|Win`."""

    def __init__(self, channel_id: uuid.UUID = STRING_LOG) -> None:
        super().__init__(channel_id)
        self._received: list[str] = []

    def on_message_received(self, msg: IncomingMessage) -> None:
        """Keep a line."""
        self._received.append(msg.read_string())

    def get_and_clear_received_lines(self) -> list[str]:
        """What came since the last call."""
        received, self._received = self._received, []
        return received

    def send_string(self, text: str) -> None:
        """Send `text` with the next reset or step. Raises NotAsciiError for what is not ASCII."""
        message = OutgoingMessage()
        message.write_string(text)
        self.queue_message_to_send(message)
