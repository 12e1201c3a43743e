"""Messages: each has a schema, and what is told fits it; slow pages cost no memory."""

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from panel_server import PanelUnderTest
from starlette.websockets import WebSocketState

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server.lab import MAX_WAITING, TOO_SLOW, Ask, Lab, PagePart, Session, do
from aimbot_lab.panel.server.messages import Done, Feed, Loader, Nothing, in_thread, written
from aimbot_lab.panel.server.replays import ReplayList
from aimbot_lab.panel.server.serve import PARTS, message_schemas
from aimbot_lab.panel.server.trainings import Curricula
from aimbot_lab.tracking.data_folder import DataFolder


def test_every_message_has_a_schema_without_room_for_more_and_every_part_can_be_left() -> None:
    found = message_schemas()
    assert found["version"] == 1
    for name, part in PARTS.items():
        schemas = found["parts"][name]
        assert schemas["asks"].keys() == schemas["answers"].keys() == part.asks.keys()
        assert schemas["tells"].keys() == part.tells.keys()
        assert "leave" in part.asks
        for group in schemas.values():
            for schema in group.values():
                jsonschema.Draft202012Validator.check_schema(schema)
        assert not any(schema["additionalProperties"] for schema in schemas["asks"].values())


def test_what_is_told_fits_its_schema(panel: PanelUnderTest) -> None:
    served = json.loads(panel.http("/messages.schema.json").text)["parts"]
    with panel.page() as page:
        for part, kind in (("start", "offer"), ("replays", "of_folder"), ("training", "list")):
            jsonschema.validate(page.ask(part, kind), served[part]["answers"][kind])
        page.ask("replays", "list")
        for part, kind in (("start", "holding"), ("training", "runs"), ("replays", "runs")):
            jsonschema.validate(page.wait_for(part, kind), served[part]["tells"][kind])


def test_the_page_waits_for_no_pipe_in_the_folder(tmp_path: Path) -> None:
    for name in ("x.json", "x.yaml"):
        os.mkfifo(tmp_path / name)
    found = ReplayList(DataFolder(tmp_path), here=tmp_path, tracking_uri=None, loader=Loader())
    assert found.of_folder() == []
    assert "own:x.yaml" not in Curricula(tmp_path).find()


def test_the_server_says_how_weights_give_way_and_what_is_no_mix(panel: PanelUnderTest) -> None:
    mix: dict[str, Any] = {"weights": [0.5, 0.3, 0.2], "locked": [False, True, False]}
    with panel.page() as page:
        for wanted, weights in ((0.6, [0.6, 0.3, 0.1]), (1.0, [0.7, 0.3, 0.0])):
            told = page.ask("training", "drag", **mix, place=0, wanted=wanted)
            assert told["weights"] == pytest.approx(weights)
        for place, reason in ((1, "its weight is locked"), (3, "difficulty must lie between")):
            assert reason in page.refused("training", "drag", **mix, place=place, wanted=0.1)
        mix["weights"][0] = 0.6
        assert "must sum to 1" in page.refused("training", "drag", **mix, place=0, wanted=0.1)


def test_numbers_that_json_lacks_are_told_as_null() -> None:
    document = json.loads(written("a", "b", {"x": [float("nan"), (float("inf"), 1.5)]}))
    assert document["body"] == {"x": [None, [None, 1.5]]}


class StuckSocket:
    """A page that reads nothing until it is let go on."""

    client_state = WebSocketState.CONNECTED

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.goes_on = asyncio.Event()
        self.closed: int | None = None

    async def receive_text(self) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def send_text(self, text: str) -> None:
        await self.goes_on.wait()
        self.sent.append(json.loads(text))

    async def close(self, code: int) -> None:
        self.closed = code


async def nothing(session: Session, asked: Any) -> None:
    del session, asked


def served(folder: Path, work: Any = nothing) -> tuple[Any, Session, "asyncio.Task[None]"]:
    """A socket that is stuck, the session of its page, and the task that serves it."""
    socket: Any = StuckSocket()
    session = Session(socket, Lab(DataFolder(folder), here=folder), work)
    return socket, session, asyncio.create_task(session.serve())


def test_a_slow_page_gets_the_newest_frame_and_skips_the_others(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        socket, session, serving = served(tmp_path)
        for number in range(1000):
            session.show("watch", "scene", {"number": number})
            await asyncio.sleep(0)
        socket.goes_on.set()
        while len(socket.sent) < 2:
            await asyncio.sleep(0)
        serving.cancel()
        return [message["body"]["number"] for message in socket.sent]

    first, last = asyncio.run(run())
    assert first < 5
    assert last == 999


def test_an_answer_comes_after_what_was_shown_before_it(tmp_path: Path) -> None:
    """Else a frame of the game before would stand in the place of the game that has begun."""

    async def run() -> list[str]:
        socket, session, serving = served(tmp_path)
        session.show("play", "frame", {})
        session.tell("play", "begin", {}, reply=1)
        session.show("play", "frame", {})
        socket.goes_on.set()
        for _ in range(20):
            await asyncio.sleep(0)
        serving.cancel()
        return [message["kind"] for message in socket.sent]

    assert asyncio.run(run()) == ["frame", "begin", "frame"]


def test_a_page_that_reads_no_answers_is_cut_off(tmp_path: Path) -> None:
    async def run() -> int | None:
        socket, session, serving = served(tmp_path)
        await asyncio.sleep(0)
        for _ in range(MAX_WAITING + 2):
            session.tell("start", "offer", {})
        socket.goes_on.set()
        await serving
        return socket.closed

    assert asyncio.run(run()) == TOO_SLOW


def test_a_feed_looks_once_for_all_and_ends_with_its_last_follower() -> None:
    async def run() -> tuple[list[int], list[int], int]:
        looked = 0

        async def look() -> int:
            nonlocal looked
            looked += 1
            return looked

        feed = Feed(look, seconds=0.0)

        async def first(wanted: int) -> list[int]:
            found = []
            follower: AsyncIterator[int] = feed.follow()
            async for value in follower:
                found.append(value)
                if len(found) == wanted:
                    break
            await follower.aclose()
            return found

        one, other = await asyncio.gather(first(3), first(3))
        at_end = looked
        for _ in range(5):
            await asyncio.sleep(0)
        return one, other, looked - at_end

    one, other, after = asyncio.run(run())
    assert one == sorted(set(one))
    assert set(one) & set(other)
    assert after <= 1


def test_what_a_feed_can_not_look_up_is_told_to_each_follower() -> None:
    async def look() -> int:
        raise ConfigurationError("gone")

    async def run() -> None:
        async for _ in Feed(look, seconds=0.0).follow():
            raise AssertionError

    with pytest.raises(ConfigurationError, match="gone"):
        asyncio.run(run())


def test_a_request_that_fails_ends_neither_page_nor_panel(tmp_path: Path) -> None:
    async def broken(session: Session, asked: Nothing) -> None:
        raise KeyError("inside")

    told = told_of(broken, tmp_path)
    assert (told["kind"], told["reply"]) == ("error", 1)
    assert told["body"]["message"] == "the panel failed: KeyError: 'inside'"


def test_a_disk_that_refuses_is_told_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(session: Session, asked: Nothing) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "a\x1bb"))

    told = told_of(full, tmp_path)
    assert told["body"]["message"] == rf"{tmp_path}/a\x1bb: No space left on device"
    assert caplog.records == []


ENDS = SystemExit(3), asyncio.CancelledError(), StopIteration(), BaseException("odd")


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_code_of_others_that_ends_its_process_ends_neither_page_nor_panel(
    tmp_path: Path, error: BaseException
) -> None:
    """A user's module or environment, in a thread."""

    def raising() -> None:
        raise error

    async def asked_for(session: Session, asked: Nothing) -> None:
        await in_thread(raising)

    async def followed(session: Session, asked: Nothing) -> None:
        async for _ in Feed(lambda: in_thread(raising), seconds=0.0).follow():
            pass

    async def going_on(session: Session, asked: Nothing) -> Done:
        session.go_on("odd", asked_for(session, asked))
        return Done()

    async def at_once(session: Session, asked: Nothing) -> None:
        raise SystemExit(3)

    for work in (asked_for, followed, going_on, at_once):
        told = told_of(work, tmp_path)
        assert told["kind"] == "error", work
        assert "\n" not in told["body"]["message"]


@pytest.mark.parametrize("in_turn", [True, False])
def test_the_last_choice_counts_where_requests_are_done_in_turn(
    tmp_path: Path, in_turn: bool
) -> None:
    async def run() -> list[bool]:
        slow = asyncio.Event()
        waits = [slow]  # the first request alone

        async def choose(session: Session, asked: Nothing) -> Done:
            if waits:
                await waits.pop().wait()
            return Done()

        parts = {"odd": PagePart("odd", {"do": Ask(Nothing, choose, in_turn=in_turn)})}
        socket: Any = StuckSocket()
        lab = Lab(DataFolder(tmp_path), here=tmp_path)
        session = Session(socket, lab, lambda session, asked: do(session, asked, parts))
        message = {"v": 1, "part": "odd", "kind": "do", "body": {}}
        asked = [session._answer(json.dumps({**message, "id": number})) for number in (1, 2)]
        answering = [asyncio.create_task(one) for one in asked]
        for _ in range(20):
            await asyncio.sleep(0)
        done = [one.done() for one in answering]
        slow.set()
        await asyncio.gather(*answering)
        return done

    assert asyncio.run(run()) == [False, not in_turn]


def told_of(work: Any, folder: Path) -> dict[str, Any]:
    """The first error that a page is told of a request that does `work`."""

    async def run() -> dict[str, Any]:
        parts = {"odd": PagePart("odd", {"do": Ask(Nothing, work)})}
        socket, session, serving = served(folder, lambda one, asked: do(one, asked, parts))
        socket.goes_on.set()
        message = {"v": 1, "id": 1, "part": "odd", "kind": "do", "body": {}}
        answering = asyncio.create_task(session._answer(json.dumps(message)))
        while all(one["kind"] != "error" for one in socket.sent):
            await asyncio.sleep(0)
        serving.cancel()
        await answering
        return next(one for one in socket.sent if one["kind"] == "error")

    return asyncio.run(asyncio.wait_for(run(), 300))
