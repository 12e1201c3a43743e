"""The names under which numbers are tracked, so that writers and readers agree.

The form is GROUP/MEASURE, or GROUP/MEASURE/TARGET/DIFFICULTY of a cell. What stands before the last
slash makes a section of the tracking UI, which shows sections and charts by the alphabet and cuts
names after a dozen letters: the most telling group comes first, so `eval` and `learning` hold win
rates over steps and a world's own measures. These are named by the world (`measures` of its spec).
Allowed by MLflow: letters, digits, `_-. :/`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy would come with it
    from aimbot_lab.foundation.episodes import Cell

LEARNING_WIN_RATE = "learning/win_rate"  # of the training's own episodes, since the last report
LEARNING_WIN_RATE_LOWER = "learning/win_rate_lower"
LEARNING_WIN_RATE_UPPER = "learning/win_rate_upper"
EVAL_WIN_RATE = "eval/win_rate"  # of fixed episodes that are played while it trains
EVAL_WIN_RATE_LOWER = "eval/win_rate_lower"
EVAL_WIN_RATE_UPPER = "eval/win_rate_upper"
EVAL_RETURN = "eval/return"  # of the same episodes, where none can be won

LESSON_WIN_RATE = "lesson/win_rate"  # of the last episodes that the lesson counts: often few
LESSON_WIN_RATE_LOWER = "lesson/win_rate_lower"
LESSON_WIN_RATE_UPPER = "lesson/win_rate_upper"
LESSON_NUMBER = "lesson/number"
LESSON_THRESHOLD = "lesson/threshold"
LESSON_LOG_EVIDENCE = "lesson/log_evidence"  # natural; in older runs lesson/evidence
LESSON_MEASURE = "lesson/measure"
LESSON_EPISODES = "lesson/episodes"
EPISODE_LENGTH = "rollout/length"
EPISODE_RETURN = "rollout/return"
EPISODES_ENDED = "rollout/episodes"
DRAW_RATE = "rollout/draw_rate"  # share of these that were drawn, where a world has draws
EPISODES_UNPARSED = "rollout/unparsed_lines"
EPISODES_DROPPED = "rollout/dropped_episodes"  # lost with a program that was started again
ERRORS_LOGGED = "rollout/logged_errors"  # by programs that play the world, so far
STEPS_PER_SECOND = "time/steps_per_second"
BLOCKS_PER_SECOND = "scale/blocks_per_second"  # that actors make
BLOCK_AGE = "scale/block_age"  # updates that those learned from are behind, on average
BLOCKS_DROPPED = "scale/blocks_dropped"  # too old to be learned from, so far
BLOCKS_MADE_TO_TAKEN = "scale/made_to_taken"  # blocks made over those learned from, so far
ACTOR_RESTARTS = "scale/actor_restarts"  # so far
RATING = "rating/elo"  # under self-play, of the learner since its last snapshot
RATING_LOWER = "rating/lower"
RATING_UPPER = "rating/upper"
RATING_GAMES = "rating/games"
RATING_ML_AGENTS = "rating/ml_agents"  # the running one
TEST_WIN_RATE = "test/win_rate"  # of what `evaluate` or a sweep's scoring played, single values
TEST_WIN_RATE_LOWER = "test/win_rate_lower"
TEST_WIN_RATE_UPPER = "test/win_rate_upper"
TEST_DRAW_RATE = "test/draw_rate"
TEST_SECONDS_TO_WIN = "test/seconds"
TEST_RETURN = "test/return"
TEST_TEMPERATURE = "test/temperature"


def of_cell(measure: str, cell: "Cell") -> str:
    """A measure of one cell; of all cells together, whose target is empty, the measure itself."""
    return _joined(measure, *cell)


def episode_column(name: str) -> str:
    """The mean of a column that a world counts of its episodes, such as seconds."""
    return f"rollout/{name}"


def lower_bound(measure: str) -> str:
    """The lower end of the 95 % interval of a measure."""
    return f"{measure}_lower"


def upper_bound(measure: str) -> str:
    """The upper end of the 95 % interval of a measure."""
    return f"{measure}_upper"


def test_measure(name: str) -> str:
    """What a world measures of an evaluation's episodes beside wins, such as the score."""
    return f"test/{name}"


def player_win_rate(player: str) -> str:
    """Win rate, or mean return where none can be won, over all cells of an evaluation of another
    player: the agent's likeliest actions, those sampled as in training, or a baseline."""
    return f"test/{player}"


def cell_share(target: str, difficulty: int) -> str:
    """Share of the episodes drawn of one cell, where the mix is not as the lesson is written."""
    return _joined("mix", target, difficulty)


def reward_term(term: str) -> str:
    """Mean sum of one reward term over an episode."""
    return f"reward/{term}"


def _joined(measure: str, target: str, difficulty: int) -> str:
    level = [str(difficulty)] if difficulty else []
    return "/".join([measure, *[target] * bool(target), *level])
