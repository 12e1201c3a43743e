"""The names under which numbers are tracked, so that writers and readers agree.

A slash makes a section in the tracking UI. Allowed by MLflow: letters, digits, `_-. :/`.
"""

WIN_RATE_POOLED = "win_rate/pooled"
WIN_RATE_LOWER = "win_rate/pooled_lower"
WIN_RATE_UPPER = "win_rate/pooled_upper"
LESSON_NUMBER = "lesson/number"
LESSON_THRESHOLD = "lesson/threshold"
LESSON_EVIDENCE = "lesson/evidence"
LESSON_MEASURE = "lesson/measure"
LESSON_EPISODES = "lesson/episodes"
EPISODE_SECONDS = "episode/seconds"
EPISODE_LENGTH = "episode/length"
EPISODE_RETURN = "episode/return"
EPISODES_ENDED = "episode/ended"
EPISODES_UNPARSED = "episode/unparsed_lines"
STEPS_PER_SECOND = "speed/steps_per_second"


def cell_win_rate(target: str, difficulty: int) -> str:
    """Win rate of one target at one difficulty (0: the target has no difficulties)."""
    return f"win_rate/{target}/{difficulty}" if difficulty else f"win_rate/{target}"


def cell_share(target: str, difficulty: int) -> str:
    """Share of the episodes drawn of one cell, where the mix is not as the lesson is written."""
    return f"mix/{target}/{difficulty}" if difficulty else f"mix/{target}"


def reward_term(term: str) -> str:
    """Mean sum of one reward term over an episode."""
    return f"reward/{term}"
