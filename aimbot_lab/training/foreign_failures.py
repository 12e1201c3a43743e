"""Trainings that end because a world, a network or an algorithm of a package raised."""

from collections.abc import Iterable
from typing import Any

from aimbot_lab.foundation.errors import ForeignCodeError, packages_of, reason_and_place
from aimbot_lab.foundation.registry import Registry, package_of
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.registry import NETWORKS
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import WORLDS

NOT_NUMBERS = "Expected parameter"  # how torch begins to refuse a distribution of NaN


def foreign_failure(
    train: TrainSettings, error: BaseException, *, env: WorldSettings | None = None
) -> ForeignCodeError | None:
    """What a package's code raised while it learned or played, in one line; None: it was not it."""
    learners = _foreign([(ALGORITHMS, train.algo), (NETWORKS, train.network.kind)])
    foreign = {**({} if env is None else _foreign([(WORLDS, env.world)])), **learners}
    through = [foreign[package] for package in packages_of(error) if package in foreign]
    if str(error).startswith(NOT_NUMBERS) and (through or learners):
        culprit = through[0] if through else " or ".join(learners.values())
        return ForeignCodeError(f"{culprit} gave NaN or infinity")
    if not through:
        return None
    return ForeignCodeError(f"{through[0]} raised {reason_and_place(error)}")


def _foreign(entries: Iterable[tuple[Registry[Any], str]]) -> dict[str, str]:
    """Those entries that packages bring, as a person is shown them, by their packages."""
    return {
        package_of(registry.group, name): registry.shown(name)
        for registry, name in entries
        if name not in registry.own
    }
