"""Files that are read within bounds and written whole, and the folder for what a user keeps."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aimbot_lab.foundation.errors import DiskError

_KERNEL = tuple(map(Path, ("/proc", "/sys", "/dev")))


def is_of_the_kernel(path: Path) -> bool:
    """Whether the kernel makes up what is at `path`: reading it may wait for ever."""
    found = path.resolve()
    return any(folder in found.parents for folder in _KERNEL) and not (
        found.is_file() and found.stat().st_size > 0
    )


def is_there(path: Path) -> bool:
    """Whether anything is at `path`; nothing is at a name that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or one that holds a NUL
        return False


def open_file(path: Path) -> BinaryIO:
    """The file at `path`, to be read. Raises OSError for a pipe and a device, which never end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    if not found.st_size and is_of_the_kernel(path):  # which takes longer than all the rest
        raise OSError(errno.EINVAL, "is not a file on a disk", str(path))
    return path.open("rb")


def read_start(path: Path, most: int = -1) -> bytes:
    """The first `most` bytes of the file at `path`, by default all. Raises as `open_file`."""
    with open_file(path) as stream:
        return stream.read(most)


def read_bounded(path: Path, most: int) -> bytes:
    """The bytes of the file at `path`. Raises OSError for more than `most`, and as `open_file`."""
    data = read_start(path, most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return data


def user_cache() -> Path:
    """The folder for it, which need not exist: `$XDG_CACHE_HOME/aimbot-lab`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "aimbot-lab"


def append_whole(descriptor: int, data: bytes) -> None:
    """Append all of `data` to an open file and wait until it is on the disk."""
    _write_whole(descriptor, data)
    os.fsync(descriptor)


def _write_whole(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old content or the new, never a part."""
    _replace(path, data, append_whole)


def swap_file(path: Path, data: bytes) -> None:
    """As `replace_file`, without waiting for the disk: for what is not needed after a crash."""
    _replace(path, data, _write_whole)


def _replace(path: Path, data: bytes, write: Callable[[int, bytes], None]) -> None:
    temporary = _temporary(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(temporary, flags, 0o600)
    except FileExistsError:  # left by a kill, or by others: a link, or a file that they can read
        temporary.unlink()
        descriptor = os.open(temporary, flags, 0o600)
    try:
        write(descriptor, data)
    finally:
        os.close(descriptor)
    temporary.replace(path)


def _temporary(path: Path) -> Path:
    """Where this process writes what will be at `path`: others may write there at the same time."""
    return path.with_name(f".{path.name}.{os.getpid()}.new")


def put_file(path: Path, data: bytes) -> None:
    """As `replace_file`; on the disk under its name when this returns, and no rest if it fails."""
    try:
        replace_file(path, data)
    except OSError:
        with suppress(OSError):
            _temporary(path).unlink(missing_ok=True)
        raise
    sync_file(path.parent)


@contextmanager
def replaced_whole(path: Path) -> Iterator[Path]:
    """Where to write what `path`, a file that a user names, is to hold.

    It appears there whole once the block has ended, or what was there stays. A link, a pipe and a
    device are written to themselves, as is a file in a folder that takes no other one.
    """
    is_plain = not os.path.lexists(path) or (path.is_file() and not path.is_symlink())
    if not is_plain or not os.access(path.absolute().parent, os.W_OK):
        yield path
        return
    fresh = path.with_name(f".{path.stem}.{os.getpid()}.new{path.suffix}")
    try:
        yield fresh
        if path.exists():
            fresh.chmod(path.stat().st_mode)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_error(path: Path, error: OSError) -> DiskError:
    """The one line for a disk that refuses to keep `path`."""
    return DiskError(f"{path}: {error.strerror or error}; tracking needs to write there")


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock file `path` alone; waits for its holder if `wait`. Not re-entrant.

    Raises StoreError where the file can't be made, the disk knows no locks, or another process
    holds it and this one does not wait.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            raise disk_error(path, error) from error
        yield
