"""Which trainings `bench scale` measures."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from aimbot_lab.bench.train_plan import SEED
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

STEPS = 10**12  # never reached


@dataclass(frozen=True)
class ScaleTraining:
    """A training as every process makes it; the default is that of goto.yaml on one thread."""

    layers: tuple[int, ...] = (64, 64)
    threads: int = 1
    num_envs: int = 512
    n_steps: int = 64
    batch_size: int = 4096
    n_epochs: int = 4

    @property
    def steps(self) -> int:
        """Environment steps of a rollout, of all processes together."""
        return self.num_envs * self.n_steps

    def plan(self) -> TrainingPlan:
        """The default target in all difficulties, in a lesson that never ends."""
        target = default_type().default_target()
        train = TrainSettings(
            algo="hybrid_ppo",
            total_steps=STEPS,
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            n_epochs=self.n_epochs,
            ent_coef=0.03,
            learning_rate=0.001,
            network=NetworkSettings(layers=self.layers, activation="relu"),
            torch_threads=self.threads,
        )
        env = settings_with(num_envs=self.num_envs, threads=self.threads)
        return TrainingPlan(SEED, env, (Lesson(name=target, targets={target: 1.0}),), train)


class ScaleVariant(NamedTuple):
    """One way to train."""

    processes: int
    threads: int  # of each
    layers: tuple[int, ...]

    @property
    def net(self) -> str:
        """The hidden layers in words."""
        return "x".join(map(str, self.layers))


@dataclass(frozen=True)
class ScaleBenchPlan:
    """Which trainings take turns, net by net, and which exchanges."""

    nets: tuple[tuple[int, ...], ...] = ((64, 64), (128, 128))
    processes: tuple[int, ...] = (1, 2, 4)  # with one thread each; the first is 1
    threads: tuple[int, ...] = (2,)  # of one process
    training: ScaleTraining = field(default_factory=ScaleTraining)
    rollouts: int = 4  # of a turn
    turns: int = 24  # of each variant, after a first one that is not counted
    floats: tuple[int, ...] = (17_000, 100_000)  # of an exchange between two processes
    exchanges: int = 2000  # of each way and number of floats

    def variants(self, layers: tuple[int, ...]) -> Iterator[ScaleVariant]:
        """Those of a net, which take turns: first the one that others are compared with."""
        yield from (ScaleVariant(count, 1, layers) for count in self.processes)
        yield from (ScaleVariant(1, count, layers) for count in self.threads)


FULL = ScaleBenchPlan()
QUICK = ScaleBenchPlan(
    nets=((16, 16),),
    processes=(1, 2),
    threads=(),
    training=ScaleTraining(num_envs=16, n_steps=32, batch_size=512, n_epochs=1),
    rollouts=2,
    turns=2,
    floats=(1000,),
    exchanges=20,
)
