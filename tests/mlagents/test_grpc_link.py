"""How a session ends with its connection, by a stand-in for gRPC."""

from collections.abc import Callable
from contextlib import nullcontext
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.mlagents import grpc_link
from aimbot_lab.mlagents.messages import (
    TrainerMessage,
    WireError,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.session import PlayerSession
from tests.mlagents.llapi_worlds import GOTO, arena

StatusCode = Enum("StatusCode", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
OVER = write_trainer_message(TrainerMessage(400, 0, {}, b"", b""))


class RpcError(Exception):
    def __init__(self, code: StatusCode) -> None:
        super().__init__()
        self.code = lambda: code


class FutureTimeoutError(Exception):
    pass


def played(
    monkeypatch: pytest.MonkeyPatch, trainer: Callable[..., bytes], *, listens: bool = True
) -> list[Any]:
    """The messages of a player to `trainer`, which takes each and gives its answer."""
    sent: list[Any] = []

    def exchange(message: bytes, timeout: float | None = None) -> bytes:
        sent.append(read_build_message(message))
        return trainer(message)

    def result(timeout: float) -> None:
        if not listens:
            raise FutureTimeoutError

    channel = SimpleNamespace(unary_unary=lambda method: exchange)
    stand_in = SimpleNamespace(
        insecure_channel=lambda address, options: nullcontext(channel),
        channel_ready_future=lambda channel: SimpleNamespace(result=result),
        RpcError=RpcError,
        StatusCode=StatusCode,
        FutureTimeoutError=FutureTimeoutError,
    )
    monkeypatch.setattr(grpc_link, "grpc_module", lambda: stand_in)
    grpc_link.play(PlayerSession(arena(1), GOTO), 5004, wait_s=1.0)
    return sent


def test_a_player_goes_quietly_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    (greeting,) = played(monkeypatch, lambda message: OVER)
    assert greeting.initialization


def test_a_player_goes_quietly_when_its_trainer_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(message: bytes) -> bytes:
        raise RpcError(StatusCode.UNAVAILABLE)

    assert len(played(monkeypatch, gone)) == 1


def test_without_a_trainer_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="no trainer listens on port 5004: start it first"):
        played(monkeypatch, lambda message: OVER, listens=False)


def test_a_message_that_is_too_long_for_the_trainer_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(message: bytes) -> bytes:
        raise RpcError(StatusCode.RESOURCE_EXHAUSTED)

    with pytest.raises(LabError, match="it takes 4 MiB: play fewer agents"):
        played(monkeypatch, full)


@pytest.mark.parametrize("stays", [True, False])
def test_a_trainer_is_told_when_its_message_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    told = []

    def confused(message: bytes) -> bytes:
        told.append(read_build_message(message).status)
        if told[-1] == 400 and not stays:
            raise RpcError(StatusCode.UNAVAILABLE)
        return b"\x08"

    with pytest.raises(WireError, match="a message can't be read"):
        played(monkeypatch, confused)
    assert told == [200, 400]
