"""What a replay is of and what happened in it, in words and numbers."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.replay.episode import Replay, replay_steps

OUTCOMES = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


def lesson_title(replay: Replay) -> str:
    """The lesson that `replay` is of, else the run's name."""
    about = replay.about
    if "lesson" not in about:
        return str(about.get("name", ""))
    name = about.get("lesson_name")
    return f"lesson {about['lesson']}" + (f": {name}" if name else "")


def player_words(replay: Replay) -> str:
    """Who played `replay`, as far as it says: which agent, and how its actions were drawn."""
    about = replay.about
    agent = f"{about['agent']} agent" if "agent" in about else ""
    return ", ".join(str(words) for words in (agent, about.get("player")) if words)


def cell_words(replay: Replay) -> str:
    """Target and difficulty of `replay` in words."""
    result = replay.episode.result
    level = f", difficulty {result.difficulty}" if result.difficulty else ""
    return f"{result.target}{level}"


@dataclass(frozen=True)
class EpisodeSummary:
    """How an episode went."""

    won: bool
    outcome: str  # of OUTCOMES
    target: str
    difficulty: int | None  # None: the target has none
    seconds: float
    took: str  # the same with its unit, for a person
    decisions: int
    events: dict[str, int]  # how often each thing happened
    episode_return: float
    reward_terms: dict[str, float]  # those that earned something
    trajectory_sha256: str
    about: dict[str, str | int | float]

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        named = {"schema": 1, **asdict(self)}
        events = named.pop("events")
        del named["took"]
        place = [*named].index("decisions") + 1
        items = [*named.items()]
        return dict([*items[:place], *events.items(), *items[place:]])


def summarize(replay: Replay) -> EpisodeSummary:
    """What happened in `replay`. Raises ReplayError where it can't be played."""
    events: Counter[str] = Counter()
    terms: npt.NDArray[np.float64] = np.zeros(0)
    for step in replay_steps(replay.episode):
        events.update(step.scene.events)
        terms = step.scene.terms
    result, episode, spec = replay.episode.result, replay.episode, replay.episode.spec
    seconds = round(len(episode.actions) * spec.decision_seconds, 6)
    named = zip(spec.reward_terms, terms.tolist(), strict=True)
    return EpisodeSummary(
        won=result.won,
        outcome=OUTCOMES[result.outcome],
        target=result.target or "",
        difficulty=result.difficulty,
        seconds=seconds,
        took=f"{seconds:.1f} s" if spec.time_unit == "s" else f"{seconds:g} {spec.time_unit}",
        decisions=len(episode.actions),
        events=dict(events),
        episode_return=float(terms.sum()),
        reward_terms={name: value for name, value in named if value},
        trajectory_sha256=replay.trajectory_sha256,
        about=dict(replay.about),
    )
