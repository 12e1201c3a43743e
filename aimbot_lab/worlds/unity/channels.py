"""What builds say over side channels beside how episodes ended: errors, commands, and the rest.

All `LogType.Warning` and `LogType.Error` logs of a build may come over its log channel. What nobody
reads is named once, so that it can be found.
"""

from collections.abc import Sequence
from uuid import UUID

from aimbot_lab.foundation.metric_names import ERRORS_LOGGED
from aimbot_lab.foundation.result_lines import COMMAND_LINE, ERROR_PREFIX, PREFIX
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.mlagents.exception import UnitySideChannelException
from aimbot_lab.mlagents.handshake import DESCRIPTION
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.side_channel import Message
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS

PREVIEW = 16  # bytes of a message that are shown
MAX_LINE = 200  # characters of a line that are shown
MAX_ERRORS = 10  # different ones that are shown


class ChannelReader:
    """Reads the log channel of builds, whose id is `log`.

    `by_lines`: result lines over that channel say who won.
    """

    def __init__(self, log: UUID, *, by_lines: bool) -> None:
        self._log, self._by_lines = log, by_lines
        self.errors = self.save_commands = 0  # so far
        self._noticed: set[object] = {log, STATS, DESCRIPTION}
        self._shown: set[str] = set()  # errors
        self._notices: list[str] = []

    def result_lines(self, messages: Sequence[Message]) -> list[str]:
        """Those among `messages`; the others are counted or named."""
        lines = []
        for channel, data in messages:
            if channel == self._log:
                line = _text(data)
                if line is None:
                    self._ignore("messages without text", _preview(data))
                elif line.startswith(PREFIX):
                    lines.append(line)
                elif line == COMMAND_LINE:
                    self.save_commands += 1
                elif line.startswith(ERROR_PREFIX):
                    self._count_error(line)
                else:
                    what = "lines that are no results, commands or errors"
                    self._ignore(what, repr(shortened(line, MAX_LINE)))
            else:
                self._notice(
                    channel,
                    f"the build sends over the unknown side channel {channel}: {_preview(data)}; "
                    "if these are its result lines, set env.log_channel",
                )
        return lines

    def ignore_stat(self, data: bytes) -> None:
        """Name a stat that can't be read."""
        what = "the build sends a stat that can't be read, ignored"
        self._notice(what, f"{what}: {_preview(data)}")

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def _count_error(self, line: str) -> None:
        self.errors += 1
        shown = one_line(shortened(line.splitlines()[0], MAX_LINE))
        if len(self._shown) == MAX_ERRORS and shown not in self._shown:
            self._notice(ERROR_PREFIX, f"the build logs more errors, which {ERRORS_LOGGED} counts")
        elif shown not in self._shown:
            self._shown.add(shown)
            self._notices.append(f"the build logs: {shown}")

    def _ignore(self, what: str, shown: str) -> None:
        hint = "; if its results are not lines there, set env.win" if self._by_lines else ""
        self._notice(what, f"the build sends {what} over env.log_channel, ignored: {shown}{hint}")

    def _notice(self, what: object, text: str) -> None:
        """Say `text`, once for each `what`."""
        if what not in self._noticed:
            self._noticed.add(what)
            self._notices.append(text)


def _text(data: bytes) -> str | None:
    """The line that is the whole message; None: it holds something else."""
    message = IncomingMessage(data)
    try:
        line = message.read_string().strip()
    except UnitySideChannelException:
        return None
    return line if line and message.offset == len(data) else None


def _preview(data: bytes) -> str:
    """How a message begins, as numbers and as text."""
    begins = data[:PREVIEW]
    if not begins:
        return "nothing"
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in begins)
    return f"{begins.hex(' ')} ({text})"
