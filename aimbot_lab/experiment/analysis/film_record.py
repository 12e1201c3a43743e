"""What a run keeps of a film of its agent: the file, and a line of its note."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import section_of, with_section
from aimbot_lab.replay.episode import Replay
from aimbot_lab.tracking.runs.history import Addition
from aimbot_lab.tracking.tracker import NOTE_TAG
from aimbot_lab.tracking.ui import page_of_artifact

FOLDER = "videos"  # among a run's artifacts
TITLE = "Films"
MAX_FILMS = 6  # in the note, which has room for so much only; all are among the files
_ODD = re.compile(r"[^\w.-]+")  # what Markdown, addresses or stores may read as something else


def film_record(
    film: Path, replays: Sequence[Replay], *, agent: TrackedAgent, note: str
) -> Addition:
    """What the run of `agent` is to keep; `note` is its note so far.

    A film of the same name is replaced, in the note as well, which names the newest.
    """
    name = f"{FOLDER}/{_ODD.sub('-', film.name)}"
    link = f"[{Path(name).name}]({page_of_artifact(agent.run, name)})"
    lines = [*_others(section_of(note, TITLE), link), f"- {link}: {_described(replays, agent)}"]
    tags = {NOTE_TAG: with_section(note, TITLE, "\n".join(lines[-MAX_FILMS:]))}
    return Addition(files={name: film}, tags=tags)


def _others(section: str, link: str) -> Iterator[str]:
    return (line for line in section.splitlines() if not line.startswith(f"- {link}:"))


def _described(replays: Sequence[Replay], agent: TrackedAgent) -> str:
    won = sum(replay.episode.result.won for replay in replays)
    ways = " and ".join(sorted({str(replay.about["player"]) for replay in replays}))
    return (
        f"{agent.which} agent, saved at step {agent.step:,}; "
        f"won {won} of {len(replays)} episodes, {ways}"
    )
