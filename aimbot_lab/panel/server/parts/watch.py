"""The part Watch: the newest weights of a run at play."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.feed import Feed
from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.loading import AGENTS, STORE
from aimbot_lab.panel.server.messages import Done, Nothing
from aimbot_lab.panel.server.part import Ask, Part
from aimbot_lab.panel.server.parts.training import OfRun, Runs
from aimbot_lab.panel.server.session import Session, failure_words

if TYPE_CHECKING:
    from aimbot_lab.panel.server.watching.watched_agent import WatchedAgent

LOG = logging.getLogger(__name__)
WANTED_SECONDS = 20.0  # for which one look asks the run for its agents
WAIT_SECONDS = 1.0  # between two looks where there is nothing to show


class _Theatre:
    """One run's play, for all pages that watch it."""

    def __init__(self, lab: Lab, run_id: str) -> None:
        self._lab, self._run = lab, lab.live_run(run_id)
        self._agent: WatchedAgent | None = None
        self._due = 0.0
        self.feed = Feed(self._look, seconds=0.0)

    async def _look(self) -> dict[str, Any]:
        """The next scene, when it is time for it; else why there is none."""
        now = time.monotonic()
        self._run.wants_agent_until = now + WANTED_SECONDS
        await asyncio.sleep(max(0.0, self._due - now))
        try:
            document = await asyncio.to_thread(self._decided)
        except LabError as error:
            return self._waiting(str(error))
        except Exception as error:  # it is begun anew
            LOG.exception("what is watched failed")
            self._agent = None
            return self._waiting(failure_words(error))
        self._due = max(self._due, time.monotonic() - 1.0) + document["period"]
        return document

    def _waiting(self, why: str) -> dict[str, Any]:
        self._due = time.monotonic() + WAIT_SECONDS
        return {"waiting": why}

    def _decided(self) -> dict[str, Any]:
        if self._agent is None:
            lab = self._lab
            lab.loader.need(*STORE, *AGENTS)
            from aimbot_lab.panel.server.watching.watched_agent import WatchedAgent

            self._agent = WatchedAgent(self._run, lab.data_folder, uri=lab.tracking_uri)
        return self._agent.play.decide()


async def list_runs(session: Session, _: Nothing) -> Done:
    """Tell which runs there are, from now on."""

    async def follow() -> None:
        async for lines in session.lab.runs.follow():
            session.show("watch", "runs", Runs(lines, session.lab.run_list.fault))

    session.go_on("watch", follow(), name="runs")
    return Done()


async def watch(session: Session, asked: OfRun) -> Done:
    """Show a run's newest agent at play, from now on."""
    lab = session.lab

    async def follow() -> None:
        theatre = lab.kept(f"watch/{asked.run}", lambda: _Theatre(lab, asked.run))
        async for document in theatre.feed.follow():
            session.show("watch", "scene", {"run": asked.run, **document})

    async def keep_state() -> None:  # the run shows itself while its state is looked at
        async for _ in lab.feed_of(asked.run).follow():
            pass

    session.go_on("watch", follow(), name="scene")
    session.go_on("watch", keep_state(), name="state")
    return Done()


async def leave(session: Session, _: Nothing) -> Done:
    """Tell nothing more."""
    for name in ("runs", "scene", "state"):
        session.stop("watch", name=name)
    return Done()


WATCH = Part(
    name="watch",
    asks={
        "list": Ask(Nothing, list_runs),
        "watch": Ask(OfRun, watch),
        "leave": Ask(Nothing, leave),
    },
    tells={"runs": Runs, "scene": dict[str, Any]},
)
