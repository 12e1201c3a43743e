"""Messages of several side channels in one string of bytes, and apart again.

Each is 16 bytes of the channel's id (little-endian), an int32 with the length, and the message.
"""

import struct
import uuid
from collections.abc import Iterable, Sequence

from aimbot_lab.mlagents.exception import UnityEnvironmentException
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

HEAD = 20  # bytes before each message
Message = tuple[uuid.UUID, bytes]
"""The id of a channel and what it says."""


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
