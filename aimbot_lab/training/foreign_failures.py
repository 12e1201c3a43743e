"""Trainings that end because a network, an algorithm or an engine of a package raised."""

from aimbot_lab.foundation.errors import ForeignCodeError, packages_of, reason_and_place
from aimbot_lab.foundation.registry import package_of
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.registry import NETWORKS
from aimbot_lab.training.settings import TrainSettings

NOT_NUMBERS = "Expected parameter"  # how torch begins to refuse a distribution of NaN


def foreign_failure(train: TrainSettings, error: BaseException) -> ForeignCodeError | None:
    """What a package's code raised while it learned or played, in one line; None: it was not it."""
    pairs = (ALGORITHMS, train.algo), (NETWORKS, train.network.kind)
    foreign = {
        package_of(registry.group, name): registry.shown(name)
        for registry, name in pairs
        if name not in registry.own
    }
    if not foreign:
        return None
    through = [foreign[package] for package in packages_of(error) if package in foreign]
    culprit = through[0] if through else " or ".join(foreign.values())
    if str(error).startswith(NOT_NUMBERS):
        return ForeignCodeError(f"{culprit} gave NaN or infinity")
    if not through:
        return None
    return ForeignCodeError(f"{culprit} raised {reason_and_place(error)}")
