"""What recorded matches say: goals, events and endings in words."""

from collections.abc import Mapping
from typing import Any

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.worlds.arena.spec import FIRED, HIT
from aimbot_lab.worlds.duel.core.state import HEALTH, NO_SHOT, REFERENCE, SELF, TARGET, DuelState
from aimbot_lab.worlds.duel.core.state import HIT as SHOT_HIT

HURT = "wounds"  # event
SEATS = ("home", "away")
LEARNER = "the learner"
PAST_SELVES = {SELF: "itself, now or before", REFERENCE: "itself when the lesson began"}
ENDINGS = {WIN: "WON", DRAW: "DRAW"}


def goal(state: DuelState, match: int = 0) -> str:
    """What home is to do in `match` of `state`, and how much of it is left."""
    mine, theirs = (int(health) for health in state.health[[match, match + len(state.layout)]])
    return f"shoot the opponent: {theirs} hits left, own health {mine}"


def events(state: DuelState) -> dict[str, int]:
    """What the last decision of match 0 brought the home agent."""
    home, away = (int(shot) for shot in state.shot[:2])
    return {
        FIRED: int(home != NO_SHOT),
        HIT: int(home == SHOT_HIT),
        HURT: int(away == SHOT_HIT),
    }


def verdict(state: DuelState, *, names: tuple[str, str], decides: bool) -> tuple[int, str, str]:
    """Outcome of match 0 of `state`, which has ended, for home; who won; and why.

    `names` are those of home and away; `decides`: health decides at the time limit.
    """
    home, away = (int(health) for health in state.health[:2])
    most = [round(float(health)) for health in state.traits[:2, HEALTH]]
    if home <= 0 and away <= 0:
        return DRAW, "A draw", "each shot the other down in the same moment"
    if home > 0 and away > 0:
        left = f"the time is up: health {home} of {most[0]} against {away} of {most[1]}"
        if home == away or not decides:
            return DRAW, "A draw", left
        winner = int(away > home)
        return LOSS if winner else WIN, f"{names[winner]} wins", left
    winner = int(away > 0)
    health, of = (home, away)[winner], most[winner]
    why = f"{names[1 - winner]} was shot down; {names[winner]} has {health} of {of} health left"
    return LOSS if winner else WIN, f"{names[winner]} wins", why


def seat_names(about: Mapping[str, Any], kind: str) -> tuple[str, str]:
    """Who plays home and away in a match of `kind`, by what a replay says `about` itself."""
    usual = SEATS if kind == TARGET else (LEARNER, PAST_SELVES.get(kind, kind))
    home, away = (str(about.get(seat, name)) for seat, name in zip(SEATS, usual, strict=True))
    return home, away


def ending_words(outcome: int, seconds: float) -> str:
    """How a match of so many seconds ended for the home agent."""
    return f"{ENDINGS.get(outcome, 'LOST')} after {seconds:.1f} s"
