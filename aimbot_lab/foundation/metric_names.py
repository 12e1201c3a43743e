"""The names under which numbers are tracked, so that writers and readers agree.

What stands before the slash makes a section of the tracking UI, which shows sections and charts
by the alphabet and cuts names after a dozen letters: few sections, the most telling first, and
short names. Allowed by MLflow:
letters, digits, `_-. :/`.
"""

WIN_RATE_POOLED = "lesson/win_rate"
WIN_RATE_LOWER = "lesson/lower"
WIN_RATE_UPPER = "lesson/upper"
LESSON_NUMBER = "lesson/number"
LESSON_THRESHOLD = "lesson/threshold"
LESSON_EVIDENCE = "lesson/evidence"
LESSON_MEASURE = "lesson/measure"
LESSON_EPISODES = "lesson/episodes"
EPISODE_SECONDS = "rollout/seconds"
EPISODE_LENGTH = "rollout/length"
EPISODE_RETURN = "rollout/return"
EPISODES_ENDED = "rollout/episodes"
EPISODES_UNPARSED = "rollout/unparsed_lines"
STEPS_PER_SECOND = "time/steps_per_second"
EVAL_WIN_RATE = "eval/win_rate"
EVAL_WIN_RATE_LOWER = "eval/lower"
EVAL_WIN_RATE_UPPER = "eval/upper"
EVAL_SECONDS_TO_WIN = "eval/seconds"
EVAL_RETURN = "eval/return"
EVAL_TEMPERATURE = "eval/temperature"


def cell_win_rate(target: str, difficulty: int) -> str:
    """Win rate of one cell in the present lesson."""
    return f"lesson/{_cell(target, difficulty)}"


def evaluated_win_rate(target: str, difficulty: int) -> str:
    """Win rate of one cell in an evaluation, by the agent at its temperature."""
    return f"eval/{_cell(target, difficulty)}"


def player_win_rate(player: str) -> str:
    """Win rate over all cells of an evaluation of another player: the agent's likeliest
    actions, those sampled as in training, or a baseline."""
    return f"eval/{player}"


def cell_share(target: str, difficulty: int) -> str:
    """Share of the episodes drawn of one cell, where the mix is not as the lesson is written."""
    return f"mix/{_cell(target, difficulty)}"


def reward_term(term: str) -> str:
    """Mean sum of one reward term over an episode."""
    return f"reward/{term}"


def _cell(target: str, difficulty: int) -> str:
    return f"{target}_{difficulty}" if difficulty else target
