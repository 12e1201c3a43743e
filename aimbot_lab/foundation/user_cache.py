"""What is made once on a machine and used by every project of a user."""

import os
from pathlib import Path


def user_cache() -> Path:
    """The folder for it, which need not exist: `$XDG_CACHE_HOME/aimbot-lab`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "aimbot-lab"
