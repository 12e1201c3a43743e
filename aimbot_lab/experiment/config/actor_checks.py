"""What actors need of the world, the learner and the training."""

from collections.abc import Iterator

from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.actors.checks import actor_faults
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import TrainSettings


def actor_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None, self_play: SelfPlaySettings | None
) -> Iterator[Diagnostic]:
    """Why there can be no such actors, where neither `env` nor `train` is None."""
    if env is None or train is None:
        return
    for key, what in actor_faults(env, train, self_play):
        yield Diagnostic(("train", *key), what)
