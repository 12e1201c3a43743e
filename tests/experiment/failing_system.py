"""The system's calls, one of which fails: what writes files is tried against every one of them."""

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

CALLS = ("open", "write", "fsync", "replace", "unlink", "close")


class Killed(BaseException):
    """The process ends here; nothing of it runs any more."""


class FailingSystem:
    """The system's calls, of which the `fatal`-th fails as `fail` says; counted in `made`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fatal: int, fail: Callable[..., None]):
        self.made: list[str] = []
        self._fatal, self._fail = fatal, fail
        for name in CALLS:
            monkeypatch.setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.made.append(name)
            if len(self.made) == self._fatal:
                self._fail(name, real, arguments)
            elif len(self.made) > self._fatal and self._fail is kill:
                raise Killed  # what the dead process would have tidied up
            return real(*arguments, **keywords)

        return call


def full_disk(name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """No room: of a write, a part arrives."""
    if name == "write":
        real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
    if name == "close":
        real(*arguments)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def kill(name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """SIGKILL: before the call, or in the middle of a write."""
    if name == "write":
        real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
    raise Killed
