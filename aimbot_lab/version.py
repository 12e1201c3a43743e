"""Which code this is: the version, and beside it a hash of the package's own files."""

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import aimbot_lab

PACKAGE = Path(__file__).parent
SUFFIXES = (".py", ".yaml")
EXAMPLES = "shipped"  # whose folders lie elsewhere in a clone; a run keeps its curriculum itself
DIGITS = 8


@cache
def code_hash() -> str:
    """Eight hexadecimal digits that differ where the code or the data of the package does.

    They are the same wherever the package lies, and however it was installed.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_sources()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:DIGITS]


def full_version() -> str:
    """The version with the hash, as in `0.2.0 (3f2a9c01)`."""
    return f"{aimbot_lab.__version__} ({code_hash()})"


def _sources() -> Iterator[tuple[str, Path]]:
    """Every file that may shape a result, by its name within the package."""
    for place, folders, files in os.walk(PACKAGE):
        inside = Path(place).relative_to(PACKAGE)
        hidden = inside.parts == (EXAMPLES,)
        folders[:] = [] if hidden else [name for name in folders if name.isidentifier()]
        for name in files:
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield (inside / name).as_posix(), Path(place) / name
