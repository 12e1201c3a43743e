"""Reading files that someone else may have made."""

import errno
from pathlib import Path


def read_bounded(path: Path, most: int) -> bytes:
    """The bytes of the file at `path`, at most `most` of them.

    Raises OSError for a larger file, and for a pipe or a device, which would never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    with path.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return data
