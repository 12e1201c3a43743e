"""What all side channels are."""

import uuid
from abc import ABC, abstractmethod

from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage


class SideChannel(ABC):
    """Messages to and from an environment beside observations and actions.

    Derive from it for a channel of your own, under an id that the environment knows.
    """

    def __init__(self, channel_id: uuid.UUID) -> None:
        self._channel_id = channel_id
        self.message_queue: list[bytearray] = []

    @property
    def channel_id(self) -> uuid.UUID:
        """Its id on both sides."""
        return self._channel_id

    def queue_message_to_send(self, msg: OutgoingMessage) -> None:
        """Send `msg` with the next reset or step."""
        self.message_queue.append(msg.buffer)

    @abstractmethod
    def on_message_received(self, msg: IncomingMessage) -> None:
        """Called within reset and step for each message that came."""
