"""What happened in a replay, in words and numbers."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from aimbot_lab.replay.episode import Replay
from aimbot_lab.replay.playback import replay_steps
from aimbot_lab.worlds.arena.core.state import REWARD_TERMS

MOVES = ("", "forward", "back")
SIDES = ("", "right", "left")


@dataclass(frozen=True)
class EpisodeSummary:
    """How an episode went."""

    won: bool
    target: str
    difficulty: int | None  # None: the target has none
    seconds: float
    decisions: int
    shots: int
    hits: int
    episode_return: float
    reward_terms: dict[str, float]  # those that earned something
    trajectory_sha256: str
    about: dict[str, str | int | float]

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}


def summarize(replay: Replay) -> EpisodeSummary:
    """What happened in `replay`. Raises ReplayError where it can't be played."""
    shots = hits = 0
    terms = np.zeros(len(REWARD_TERMS))
    for step in replay_steps(replay.episode):
        shots, hits = shots + step.fired, hits + (step.hit >= 0)
        terms = step.state.terms[0].copy()
    result, episode = replay.episode.result, replay.episode
    return EpisodeSummary(
        won=result.won,
        target=result.target or "",
        difficulty=result.difficulty,
        seconds=round(len(episode.actions) * episode.settings.decision_seconds, 6),
        decisions=len(episode.actions),
        shots=shots,
        hits=hits,
        episode_return=float(terms.sum()),
        reward_terms={
            name: float(value) for name, value in zip(REWARD_TERMS, terms, strict=True) if value
        },
        trajectory_sha256=replay.trajectory_sha256,
        about=dict(replay.about),
    )


def action_words(action: np.ndarray | None, *, fired: bool) -> str:
    """What the agent does, for a person; `action` [4]."""
    if action is None:
        return "begins"
    words = [MOVES[int(action[0])], SIDES[int(action[1])]]
    mouse = float(action[3])
    words.append(f"turns {abs(mouse):.1f} {'right' if mouse > 0 else 'left'}" if mouse else "")
    words.append("SHOOTS" if fired else "")
    return ", ".join(word for word in words if word) or "waits"
