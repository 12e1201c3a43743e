"""Agents that runs save while they train, because a page asks them to."""

import asyncio
from typing import TYPE_CHECKING

from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.commands import SHORT, command
from aimbot_lab.panel.server.loading import AGENTS, STORE, in_thread
from aimbot_lab.panel.server.messages import STRICT

if TYPE_CHECKING:
    from aimbot_lab.panel.server.lab import Lab

LOOKS, PAUSE = 40, 0.25  # for the agent in the store, s between two of them


@dataclass(frozen=True, config=STRICT)
class KeptAgent:
    """An agent that a run has saved, and how to use it."""

    run: str
    name: str  # among the agents of the run
    step: int  # environment steps
    lesson: int  # from 1
    stored: bool  # whether it has reached the store; else it does so later
    evaluate: str  # the command


async def keep_agent(lab: "Lab", run_id: str) -> KeptAgent:
    """Have a run save its present agent, and wait a while until others find it.

    Raises ConfigurationError where it does not train or refuses, LabError where it is silent.
    """
    answer = await lab.live_run(run_id).ask({"kind": "keep_agent"})
    name = str(answer["name"])
    lab.run_list.note_saved(run_id, name)
    lab.run_list.ask_store_again()
    stored = False
    for _ in range(LOOKS):
        stored = await in_thread(_is_stored, lab, run_id, name)
        if stored:
            break
        await asyncio.sleep(PAUSE)
    words = "evaluate", run_id[:SHORT], "--agent", name
    return KeptAgent(
        run=run_id,
        name=name,
        step=answer["step"],
        lesson=answer["lesson"],
        stored=stored,
        evaluate=command(lab, *words),
    )


def _is_stored(lab: "Lab", run_id: str, name: str) -> bool:
    lab.loader.need(*STORE, *AGENTS)
    from aimbot_lab.experiment.runs.agents import fetch_agent_files

    try:
        fetch_agent_files(run_id, name, data_folder=lab.data_folder, uri=lab.tracking_uri)
    except LabError:
        return False
    return True
