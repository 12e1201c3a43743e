"""The program's first moments: nothing heavy is loaded, and Ctrl-C ends it without a traceback."""

import os
import sys

from aimbot_lab.foundation.garbage import collect_seldom

INTERRUPTED = 130


def main() -> None:
    """Run the command line, in UTF-8 whatever the locale says."""
    try:
        if _knows_ascii_only():
            _begin_again_in_utf8()
        collect_seldom()
        from aimbot_lab.cli.main import main as run

        run()
    except KeyboardInterrupt:
        os.write(2, b"stopped\n")
        sys.exit(INTERRUPTED)


def _knows_ascii_only() -> bool:
    """Whether names of files and words of the command line can't hold all letters."""
    return sys.getfilesystemencoding() == "ascii" and not sys.flags.utf8_mode


def _begin_again_in_utf8() -> None:
    environment = {**os.environ, "PYTHONUTF8": "1"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
