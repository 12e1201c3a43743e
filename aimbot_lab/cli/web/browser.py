"""Whether a browser can be opened, and an address in it that is nobody else's business."""

import html
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

from aimbot_lab.tracking.journal.durable import put_file

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # variables that say there is a browser
ENTRANCE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>aimbot-lab</title>
<p><a href="{address}">Open the page</a></p>
</html>
"""


def has_browser() -> bool:
    """Whether a window can be opened; a browser in the terminal would take it from the server."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in SCREENS)


def open_privately(address: str, entrance: Path) -> None:
    """Open `address`, which holds a secret, by the file `entrance`, which leads a browser there.

    A browser's command line, which everyone on the machine may read, names the file alone, and
    only its owner reads that. Where it can't be written nothing is opened.
    """
    with suppress(OSError):
        put_file(entrance, ENTRANCE.format(address=html.escape(address)).encode())
        # Some browsers keep their caller waiting.
        threading.Thread(target=webbrowser.open, args=(entrance.as_uri(),), daemon=True).start()
