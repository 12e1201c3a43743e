"""Standard streams that outlive their readers: a training must not die with a terminal."""

import ctypes
import errno
import io
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


STDOUT, STDERR = 1, 2
DOCUMENT = "aimbot_lab.document"  # in click's context, the stream of a command's document


class MessageFile(io.FileIO):
    """A descriptor for messages: what can't be written is dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: "ReadableBuffer") -> int:
        """All of `data` counts as written, whatever became of it."""
        try:
            return super().write(data) or _size(data)  # None: it would have to wait
        except OSError:
            return _size(data)


class DataFile(io.FileIO):
    """A descriptor for data: once the reader has left, what follows is dropped.

    Any other error, for example a full disk, is raised once.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._is_terminal = self.isatty()  # a terminal that was closed does not count as one
        self._broken = False

    def write(self, data: "ReadableBuffer") -> int:
        """How much of `data` was written; all of it once the reader has left."""
        if self._broken:
            return _size(data)
        try:
            return super().write(data)
        except OSError as error:
            # Else the interpreter tries again as it leaves, and changes the exit code.
            self._broken = True
            if error.errno == errno.EPIPE or (self._is_terminal and error.errno == errno.EIO):
                return _size(data)
            raise


def guard_streams() -> None:
    """Make standard output and standard error outlive their readers; call it once."""
    # Else the next file that is opened, a database say, gets what is meant for a closed stream.
    for descriptor in range(STDERR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _text(DataFile(STDOUT), sys.stdout)
    sys.stderr = _text(MessageFile(STDERR), sys.stderr)


def print_apart(ctx: click.Context) -> None:
    """Keep standard output for the document of the command of `ctx`: `document_stream` gives it.

    Whatever else is printed from here on goes to standard error, by this process or by those that
    it starts, in Python or in C: code of users prints where it likes.
    """
    stdout = document = sys.stdout
    if _descriptor(stdout) == STDOUT:
        stdout.flush()
        document = _text(DataFile(os.dup(STDOUT)), stdout)
        os.dup2(STDERR, STDOUT)
    sys.stdout = sys.stderr
    ctx.meta[DOCUMENT] = document
    ctx.call_on_close(partial(setattr, sys, "stdout", stdout))


def print_together() -> None:
    """Undo `print_apart`, before other processes print the document in place of this one."""
    document: TextIO | None = click.get_current_context().meta.pop(DOCUMENT, None)
    if document is None:
        return
    if (descriptor := _descriptor(document)) is not None:
        ctypes.CDLL(None).fflush(None)  # what C holds back would come to the document
        os.dup2(descriptor, STDOUT)
    sys.stdout = document


def document_stream() -> TextIO:
    """Where a command prints its document."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or DOCUMENT not in ctx.meta:
        return sys.stdout
    document: TextIO = ctx.meta[DOCUMENT]
    return document


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # it is no file
        return None


def _text(file: io.FileIO, like: TextIO) -> io.TextIOWrapper:
    """A text stream over `file` with the encoding and buffering of `like`."""
    raw = io.BufferedWriter(file)
    if not isinstance(like, io.TextIOWrapper):  # None where the descriptor was closed
        return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace")
    return io.TextIOWrapper(
        raw,
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )


def _size(data: "ReadableBuffer") -> int:
    return memoryview(data).nbytes
