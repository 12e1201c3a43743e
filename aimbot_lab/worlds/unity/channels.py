"""What builds say over side channels that nobody reads: named once, so that it can be found."""

from collections.abc import Collection, Sequence
from uuid import UUID

from aimbot_lab.mlagents.side_channel.framing import Message

PREVIEW = 16  # bytes of an unknown message that are shown


class ChannelReader:
    """Notices channels that are not `known`, each once."""

    def __init__(self, known: Collection[UUID]) -> None:
        self._known = set(known)
        self._notices: list[str] = []

    def receive(self, messages: Sequence[Message]) -> None:
        """Look at the channels of `messages`."""
        for channel, data in messages:
            if channel not in self._known:
                self._known.add(channel)
                begins = data[:PREVIEW].hex(" ")
                text = data[:PREVIEW].decode("ascii", "replace").replace("\ufffd", ".")
                shown = "".join(sign if sign.isprintable() else "." for sign in text)
                self._notices.append(
                    f"the build sends over the unknown side channel {channel}: {begins} ({shown}); "
                    "if these are its result lines, set env.log_channel"
                )

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        taken, self._notices = self._notices, []
        return taken
