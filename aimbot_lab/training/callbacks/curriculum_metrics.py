"""A training's numbers under their tracked names."""

from stable_baselines3.common.logger import Logger

from aimbot_lab.curriculum.reports import CurriculumView
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.statistics.intervals import MIN_EPISODES

LEARNER_PREFIX = "train/"


def curriculum_metrics(view: CurriculumView) -> dict[str, float]:
    """Win rates, lesson and evidence as the curriculum counts them."""
    metrics = {
        names.LESSON_NUMBER: view.lesson + 1.0,
        names.LESSON_EPISODES: float(view.episodes),
    }
    if view.win_rate.win_rate is not None and view.window >= MIN_EPISODES:
        metrics[names.LESSON_WIN_RATE] = view.win_rate.win_rate
        metrics[names.LESSON_WIN_RATE_LOWER] = view.win_rate.lower
        metrics[names.LESSON_WIN_RATE_UPPER] = view.win_rate.upper
    if view.threshold is not None:
        metrics[names.LESSON_THRESHOLD] = view.threshold
    if view.log_evidence is not None:
        metrics[names.LESSON_LOG_EVIDENCE] = view.log_evidence
    if view.measured is not None and view.measured.value is not None:
        metrics[names.LESSON_MEASURE] = view.measured.value
        metrics[names.LESSON_THRESHOLD] = view.measured.threshold
    for (target, difficulty), share in (view.shares or {}).items():
        metrics[names.cell_share(target, difficulty)] = share
    return metrics


def learner_metrics(logger: Logger) -> dict[str, float]:
    """What the algorithm recorded in its last update (losses, entropy, divergence, ...)."""
    return {
        key: float(value)
        for key, value in logger.name_to_value.items()
        if key.startswith(LEARNER_PREFIX)
    }
