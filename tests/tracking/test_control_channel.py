"""Requests to a training: found soon, and looked for rarely enough to cost nothing."""

import os
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.tracking.control_channel import LOOK_SECONDS, ControlChannel


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_request_is_found_by_the_next_look_of_which_there_are_ten_a_second_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, looks, list_folder = Clock(), list[Any](), os.listdir
    channel = ControlChannel(tmp_path, look_seconds=LOOK_SECONDS, clock=clock)
    assert channel.requests() == []
    key = ControlChannel(tmp_path).send({"kind": "stop"})
    assert not channel.requests()
    clock.now += LOOK_SECONDS
    assert [*channel.requests()] == [(key, {"kind": "stop"})]
    monkeypatch.setattr(os, "listdir", lambda folder: looks.append(folder) or list_folder(folder))
    clock.now += LOOK_SECONDS
    for _ in range(1000):  # steps of a millisecond
        channel.requests()
        clock.now += 0.001
    assert 10 <= len(looks) <= 11


def test_without_a_pause_it_looks_each_time_and_nothing_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    channel = ControlChannel(tmp_path)
    assert channel.requests() == []
    key = channel.send({"kind": "watch"})
    assert [*channel.requests()] == [(key, {"kind": "watch"})]
    channel.answer(key, {"watched_for": 15})
    assert channel.wait(key, 0.0, still_open=lambda: True) == {"watched_for": 15}
    assert waits == []
