"""Reading files that others may have made."""

import errno
from pathlib import Path

_KERNEL = tuple(map(Path, ("/proc", "/sys", "/dev")))


def is_of_the_kernel(path: Path) -> bool:
    """Whether the kernel makes up what is at `path`: reading it may wait for ever."""
    found = path.resolve()
    return any(folder in found.parents for folder in _KERNEL) and not (
        found.is_file() and found.stat().st_size > 0
    )


def read_bounded(path: Path, most: int) -> bytes:
    """The bytes of the file at `path`, at most `most` of them.

    Raises OSError for a larger file, and for a pipe or a device, which would never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    if is_of_the_kernel(path):
        raise OSError(errno.EINVAL, "is no file of a disk", str(path))
    with path.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return data
