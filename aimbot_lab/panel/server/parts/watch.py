"""The part Watch: the newest weights of a run at play."""

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import require_allowed
from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.loading import AGENTS, STORE, Feed, failure_words, in_thread
from aimbot_lab.panel.server.messages import Done
from aimbot_lab.panel.server.own_process import OwnProcess, PlayedRun
from aimbot_lab.panel.server.parts.runs import OfAgent, Runs, listing
from aimbot_lab.panel.server.session import Ask, PagePart, Session, leaving

if TYPE_CHECKING:
    from aimbot_lab.panel.server.watched_agent import WatchedAgent

LOG = logging.getLogger(__name__)
WANTED_SECONDS = 20.0  # for which one look asks the run for its agents
WAIT_SECONDS = 1.0  # between two looks where there is nothing to show


class _Theatre:
    """The play of a run's agent, for all pages that watch it."""

    def __init__(self, lab: Lab, run_id: str, name: str) -> None:
        self._lab, self._run, self._name = lab, lab.live_run(run_id), name
        self._agent: WatchedAgent | OwnProcess | None = None
        self._deciding = threading.Lock()  # a look that was broken off decides to the end
        self._due = 0.0
        self.feed = Feed(self._look, seconds=0.0)

    async def _look(self) -> dict[str, Any]:
        """The next scene, when it is time for it; else why there is none."""
        now = time.monotonic()
        if not self._name:
            self._run.wants_agent_until = now + WANTED_SECONDS
        await asyncio.sleep(max(0.0, self._due - now))
        try:
            document = await in_thread(self._decided)
        except LabError as error:
            return self._waiting(str(error))
        except (Exception, SystemExit) as error:  # it is begun anew
            LOG.exception("what is watched failed")
            self._agent = None
            return self._waiting(failure_words(error))
        self._due = max(self._due, time.monotonic() - 1.0) + document["period"]
        return document

    def _waiting(self, why: str) -> dict[str, Any]:
        self._due = time.monotonic() + WAIT_SECONDS
        return {"waiting": why}

    def _decided(self) -> dict[str, Any]:
        self._lab.loader.need(*STORE, *AGENTS)
        with self._deciding:
            agent = self._agent
            if agent is None or (isinstance(agent, OwnProcess) and agent.is_over):
                agent = self._begun()
            if isinstance(agent, OwnProcess):
                return agent.decide(self._run.status)
            return agent.play.decide()

    def _begun(self) -> "WatchedAgent":
        """The agent, to play here. Raises LabError where it is begun in a process of its own."""
        from aimbot_lab.panel.server.watched_agent import WatchedAgent, code_of_run

        folder, uri = self._lab.data_folder, self._lab.tracking_uri
        code = code_of_run(self._run, folder, uri=uri)
        if code is None:
            self._agent = WatchedAgent(self._run, folder, uri=uri, name=self._name)
            return self._agent
        if not self._lab.may_run(code):
            require_allowed(code)
        played = PlayedRun(self._run.run_id, self._name, str(folder.root), uri)
        self._agent = OwnProcess(played, code)
        raise LabError(f"the {code.shown} is started, in a process of its own")


async def watch(session: Session, asked: OfAgent) -> Done:
    """Show an agent of a run at play, from now on."""
    lab, what = session.lab, f"watch/{asked.run}/{asked.agent}"
    line = await in_thread(lab.run_list.line, asked.run)
    if asked.agent and (line is None or asked.agent not in line.saved):
        raise ConfigurationError(f"{asked.agent}: the run has saved no such agent")

    def body(document: dict[str, Any]) -> dict[str, Any]:
        return {"run": asked.run, "agent": asked.agent, **document}

    async def keep_state() -> None:  # the run shows itself while its state is looked at
        async for _ in lab.feed_of(asked.run).follow():
            pass

    theatre = lab.kept(what, lambda: _Theatre(lab, asked.run, asked.agent))
    session.follow("watch", "scene", theatre.feed, body)
    session.go_on("watch", keep_state(), name="state")
    return Done()


WATCH = PagePart(
    name="watch",
    asks={
        "list": listing("watch"),
        "watch": Ask(OfAgent, watch),
        "leave": leaving("watch"),
    },
    tells={"runs": Runs, "scene": dict[str, Any]},
)
