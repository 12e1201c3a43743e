"""What the benchmark of training measures."""

from dataclasses import dataclass
from typing import NamedTuple

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.settings import Algo, NetworkSettings, TrainSettings
from aimbot_lab.training.training import TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

OURS, THEIRS = "hybrid_ppo", "stable-baselines3"
ALGORITHMS: dict[str, Algo] = {OURS: "hybrid_ppo", THEIRS: "ppo"}
SEED = 1


class Variant(NamedTuple):
    """One way to train."""

    name: str  # OURS or THEIRS
    layers: tuple[int, ...]
    threads: int

    @property
    def net(self) -> str:
        """The hidden layers in words."""
        return "x".join(str(units) for units in self.layers)


@dataclass(frozen=True)
class TrainBenchPlan:
    """Which trainings take turns, and how long each is."""

    nets: tuple[tuple[int, ...], ...] = ((64, 64), (128, 128))
    threads: tuple[int, ...] = (1, 2)
    num_envs: int = 512
    n_steps: int = 64
    batch_size: int = 8192
    n_epochs: int = 4
    rollouts: int = 8  # of one repeat, after a first one that is not counted
    repeats: int = 6  # of each variant, of which the best counts
    at_once_rollouts: int = 40  # of two trainings beside each other; 0: not measured

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All that take turns."""
        return tuple(
            Variant(name, layers, threads)
            for layers in self.nets
            for threads in self.threads
            for name in ALGORITHMS
        )

    @property
    def steps(self) -> int:
        """Environment steps of a rollout."""
        return self.num_envs * self.n_steps

    def training(self, variant: Variant) -> TrainingPlan:
        """All targets and difficulties mixed, in a lesson that never ends."""
        train = TrainSettings(
            algo=ALGORITHMS[variant.name],
            total_steps=self.steps * (1 + self.rollouts),
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            n_epochs=self.n_epochs,
            network=NetworkSettings(layers=variant.layers, activation="relu"),
            torch_threads=variant.threads,
        )
        env = settings_with(num_envs=self.num_envs, threads=variant.threads)
        lesson = Lesson(name="everything", targets=dict.fromkeys(default_type().targets(None), 1.0))
        return TrainingPlan(SEED, env, (lesson,), train)


FULL = TrainBenchPlan()
QUICK = TrainBenchPlan(
    nets=((16, 16),),
    threads=(1,),
    num_envs=16,
    n_steps=16,
    batch_size=128,
    n_epochs=1,
    rollouts=2,
    repeats=1,
    at_once_rollouts=0,
)
