"""What `bench train --world` measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aimbot_lab.bench.train_plan import SEED
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import NetworkSettings, TrainSettings
from aimbot_lab.training.training import TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with, world_types

SELF_PLAY = "self-play"


class SelfPlayVariant(NamedTuple):
    """One way to train."""

    name: str  # SELF_PLAY, or the target that it is compared with
    threads: int


@dataclass(frozen=True)
class SelfPlayBenchPlan:
    """Trainings by self-play in `world`, by turns with as many rows of the hardest target."""

    world: WorldType
    threads: tuple[int, ...] = (1, 2)
    layers: tuple[int, ...] = (64, 64)
    matches: int = 512
    ratio: float = 0.5  # of the matches that are mirrored
    window: int = 10
    at_once: int = 8  # networks
    n_steps: int = 64
    batch_size: int = 8192
    n_epochs: int = 4
    rollouts: int = 8  # of one repeat, after a first one that is not counted
    repeats: int = 6  # of each variant, of which the best counts
    acting_steps: int = 200  # of one repeat of acting by itself

    @property
    def rows(self) -> int:
        """Of the learner, in every variant: all home seats, and the away ones of mirrored ones."""
        return self.matches + self.mirrored

    @property
    def mirrored(self) -> int:
        """Matches that the learner plays against itself."""
        return round(self.ratio * self.matches)

    @property
    def opposite(self) -> int:
        """Matches in which snapshots sit."""
        return self.matches - self.mirrored

    @property
    def steps(self) -> int:
        """The learner's steps of a rollout."""
        return self.rows * self.n_steps

    @property
    def variants(self) -> tuple[SelfPlayVariant, ...]:
        """All that take turns."""
        names = SELF_PLAY, default_type().hardest_target()
        return tuple(SelfPlayVariant(name, count) for count in self.threads for name in names)

    def training(self, variant: SelfPlayVariant) -> TrainingPlan:
        """All difficulties of one target, in a lesson that never ends."""
        train = self.train(variant.threads)
        if variant.name != SELF_PLAY:
            env = settings_with(num_envs=self.rows, threads=variant.threads)
            return TrainingPlan(SEED, env, _lesson(variant.name), train)
        env = self.world.single_settings(
            self.world.settings(num_envs=self.matches, threads=variant.threads)
        )
        own = SelfPlaySettings(
            play_against_latest_model_ratio=self.ratio, window=self.window, at_once=self.at_once
        )
        lesson = _lesson(self.world.self_play_targets[0])
        return TrainingPlan(SEED, env, lesson, train, self_play=own)

    def train(self, threads: int) -> TrainSettings:
        """The learner, which is the same in all variants."""
        return TrainSettings(
            algo="hybrid_ppo",
            total_steps=self.steps * (1 + self.rollouts),
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            n_epochs=self.n_epochs,
            network=NetworkSettings(layers=self.layers, activation="relu"),
            torch_threads=threads,
        )


def _lesson(target: str) -> tuple[Lesson, ...]:
    return (Lesson(name=target, targets={target: 1.0}),)


def full(world: str) -> SelfPlayBenchPlan:
    """What is measured of `world`. Raises ConfigurationError where it has no self-play."""
    return SelfPlayBenchPlan(_opposed(world_types(), world))


def quick(world: str) -> SelfPlayBenchPlan:
    """Tiny trainings in `world`. Raises ConfigurationError as `full` does."""
    return SelfPlayBenchPlan(
        _opposed(world_types(), world),
        threads=(1,),
        layers=(16,),
        matches=16,
        n_steps=16,
        batch_size=128,
        n_epochs=1,
        rollouts=2,
        repeats=1,
        acting_steps=2,
    )


def _opposed(worlds: Mapping[str, WorldType], name: str) -> WorldType:
    able: Sequence[str] = [one for one, kind in worlds.items() if kind.self_play_targets]
    if name not in able:
        raise ConfigurationError(
            f"--world {name}: it has no self-play; worlds that have are {', '.join(able)}"
        )
    return worlds[name]
