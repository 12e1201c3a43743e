"""Whether a browser can be opened."""

import os
import sys

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # variables that say there is a browser


def has_browser() -> bool:
    """Whether a window can be opened; a browser in the terminal would take it from the server."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in SCREENS)
