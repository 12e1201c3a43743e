"""What a training is made from, and how it ended."""

from dataclasses import dataclass, field

from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import EvaluationSettings, TrainSettings


@dataclass(frozen=True)
class TrainingPlan:
    """What a training is made from."""

    seed: int
    env: WorldSettings
    lessons: tuple[Lesson, ...]
    train: TrainSettings
    forgetting: ForgettingSettings = field(default_factory=ForgettingSettings)
    evaluation: EvaluationSettings | None = None  # while it trains; None: none
    self_play: SelfPlaySettings | None = None  # None: it never meets itself


@dataclass(frozen=True)
class TrainingOutcome:
    """How a training ended."""

    steps: int  # environment steps
    seconds: float
    stopped: bool  # ended by request, before its time
    state_sha256: str
