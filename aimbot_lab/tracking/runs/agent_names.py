"""How the agents that a run has kept are named, among its artifacts and its tags.

`best` and `last` are there once it has ended; `step-N` was saved on request at environment step N.
"""

from collections.abc import Mapping

AGENT_FOLDER = "agent"  # of the artifacts; a folder of that agent's name is in it
BEST, LAST = "best", "last"
ALLOWED = "best, last, or step-N for an agent that was saved on request at step N"
MAX_DIGITS = 18
_SAVED = "step-"
_TAG = "lab.agent."


def saved_name(step: int) -> str:
    """The name of an agent that is saved on request at environment step `step`."""
    return f"{_SAVED}{step}"


def is_agent_name(name: object) -> bool:
    """Whether an agent can bear that name."""
    return name in (BEST, LAST) or _step(name) is not None


def saved_tag(name: str, *, lesson: int) -> dict[str, str]:
    """The tag by which a run lists an agent that was saved on request in `lesson` (from 1)."""
    return {_TAG + name: f"lesson {lesson}"}


def saved_agents(tags: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the agents that were saved on request, by rising step, by the run's `tags`."""
    steps = (_step(key.removeprefix(_TAG)) for key in tags if key.startswith(_TAG))
    return tuple(saved_name(step) for step in sorted(step for step in steps if step is not None))


def _step(name: object) -> int | None:
    if not isinstance(name, str) or not name.startswith(_SAVED):
        return None
    digits = name.removeprefix(_SAVED)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) if is_number and str(int(digits)) == digits else None
