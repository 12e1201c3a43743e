"""A trainer's end of the wire, called by a session through gRPC itself."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from aimbot_lab.bench.bridge.echo import STOP, Echo
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.mlagents.grpc_link import play
from aimbot_lab.mlagents.trainer_link import TrainerLink

WAIT = 30.0  # seconds, where all goes well


def test_messages_and_answers_take_turns_and_the_build_ends_when_told_to() -> None:
    with TrainerLink() as link, ThreadPoolExecutor(1) as builds:
        build = builds.submit(play, cast(Any, Echo(5)), link.port, wait_s=WAIT)
        for _ in range(3):
            assert link.receive(running=lambda: not build.done(), wait_s=WAIT) == bytes(5)
            link.send(b"on")
        link.receive(running=lambda: not build.done(), wait_s=WAIT)
        link.send(STOP)
        build.result(WAIT)


def test_a_build_that_ended_is_told_at_once() -> None:
    with TrainerLink() as link, pytest.raises(LabError, match="the build ended before it was told"):
        link.receive(running=lambda: False, wait_s=WAIT)


def test_a_build_that_says_nothing_is_told() -> None:
    with TrainerLink() as link, pytest.raises(LabError, match="the build sent nothing for"):
        link.receive(running=lambda: True, wait_s=0.25)


def test_a_port_that_is_taken_is_refused() -> None:
    with (
        TrainerLink() as link,
        pytest.raises(LabError, match=f"port {link.port} of this machine is taken"),
    ):
        TrainerLink(link.port)
