"""What all side channels are, and how the messages of several go in one string of bytes.

Each message is 16 bytes of the channel's id (little-endian), an int32 with the length, and itself.
"""

import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from aimbot_lab.mlagents.exception import UnityEnvironmentException
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage

HEAD = 20  # bytes before each message
Message = tuple[uuid.UUID, bytes]
"""The id of a channel and what it says."""


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


def framed(messages: Iterable[Message]) -> bytes:
    """`messages` in one string of bytes."""
    return b"".join(
        part
        for channel, message in messages
        for part in (channel.bytes_le, struct.pack("<i", len(message)), message)
    )


def unframed(data: bytes) -> list[Message]:
    """The messages in `data`. Raises UnityEnvironmentException where it ends within one."""
    messages, place = [], 0
    while place < len(data):
        head = data[place : place + HEAD]
        length = struct.unpack_from("<i", head, 16)[0] if len(head) == HEAD else -1
        end = place + HEAD + length
        if length < 0 or end > len(data):
            raise UnityEnvironmentException(
                f"data of side channels: the message at byte {place} of {len(data)} is cut off "
                "or has no valid length"
            )
        messages.append((uuid.UUID(bytes_le=head[:16]), data[place + HEAD : end]))
        place = end
    return messages


def by_id(channels: Sequence[SideChannel]) -> dict[uuid.UUID, SideChannel]:
    """`channels` by their ids. Raises UnityEnvironmentException where two have the same."""
    found: dict[uuid.UUID, SideChannel] = {}
    for channel in channels:
        if channel.channel_id in found:
            raise UnityEnvironmentException(
                f"side_channels: two have the id {channel.channel_id}; leave one out"
            )
        found[channel.channel_id] = channel
    return found


def take_queued(channels: Iterable[SideChannel]) -> list[Message]:
    """What `channels` want to send; afterwards they have nothing to send."""
    messages = [
        (channel.channel_id, bytes(message))
        for channel in channels
        for message in channel.message_queue
    ]
    for channel in channels:
        channel.message_queue = []
    return messages


def deliver(message: Message, channels: dict[uuid.UUID, SideChannel]) -> bool:
    """Whether one of `channels` is meant by `message`, and has received it."""
    channel = channels.get(message[0])
    if channel is not None:
        channel.on_message_received(IncomingMessage(message[1]))
    return channel is not None
