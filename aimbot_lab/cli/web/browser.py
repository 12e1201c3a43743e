"""Whether a browser can be opened, and how it opens an address that holds a token."""

import atexit
import os
import sys
import webbrowser
from html import escape
from pathlib import Path
from tempfile import mkstemp
from threading import Thread

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # variables that say there is a browser
REDIRECT = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<a href="{address}">Open the page</a>
"""


def has_browser() -> bool:
    """Whether a window can be opened; a browser in the terminal would take it from the server."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in SCREENS)


def open_privately(address: str, folder: Path) -> Path:
    """The file by which the browser opens `address`; only this account can read it.

    Everyone sees the arguments of a browser's process; a file's name there gives no token away.
    The file redirects to the address, and is deleted when this process ends. It is in `folder`,
    not among temporary files, which a browser that is packaged as a snap does not see.
    Raises OSError where it can't be written.
    """
    descriptor, name = mkstemp(prefix="open-", suffix=".html", dir=folder)  # with mode 0600
    file = Path(name)
    atexit.register(file.unlink, missing_ok=True)
    with open(descriptor, "w", encoding="utf-8") as opened:
        opened.write(REDIRECT.format(address=escape(address)))
    # Some browsers in BROWSER return only once they are closed.
    Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
    return file
