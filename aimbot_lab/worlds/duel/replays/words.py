"""What happens in a recorded match, in words."""

from aimbot_lab.foundation.episodes import DRAW, WIN
from aimbot_lab.worlds.arena.replays.words import FIRED, HIT
from aimbot_lab.worlds.duel.core.state import HIT as SHOT_HIT
from aimbot_lab.worlds.duel.core.state import NO_SHOT, DuelState

HURT = "wounds"  # event
ENDINGS = {WIN: "WON", DRAW: "DRAW"}


def goal(state: DuelState) -> str:
    """What is to be done in match 0 of `state`, and how much of it is left."""
    mine, theirs = (int(health) for health in state.health[:2])
    return f"shoot the opponent: {theirs} hits left, own health {mine}"


def events(state: DuelState) -> dict[str, int]:
    """What the last decision of match 0 brought the home agent."""
    home, away = (int(shot) for shot in state.shot[:2])
    return {
        FIRED: int(home != NO_SHOT),
        HIT: int(home == SHOT_HIT),
        HURT: int(away == SHOT_HIT),
    }


def ending_words(outcome: int, seconds: float) -> str:
    """How a match of so many seconds ended for the home agent."""
    return f"{ENDINGS.get(outcome, 'LOST')} after {seconds:.1f} s"
