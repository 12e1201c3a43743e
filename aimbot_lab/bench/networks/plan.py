"""Which trainings `bench train --network` measures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from aimbot_lab.bench.train_plan import SEED
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.networks.settings import MemorySettings, UnitsSettings
from aimbot_lab.training.settings import NetworkSettings, TrainSettings
from aimbot_lab.training.training import TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

PLAIN, RECURRENT, SHARED = "plain", "recurrent_ppo", "recurrent_ppo, shared"
NETWORKS = "memory", "units", "all"
"""The networks that are asked for by name."""
SWITCHES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "memory": {},
        "units": {"target": "attention"},
        "all": {
            "target": "attention",
            "aim": "hybrid",
            "masks": True,
            "objective": "per_branch",
            "dual_clip": 3.0,
        },
        PLAIN: {},
        RECURRENT: {},
        SHARED: {},
    }
)
"""Settings of `train` beside the network, by the network's name."""


class NetworkVariant(NamedTuple):
    """One way to train."""

    network: str  # one of NETWORKS, or what it is compared with
    threads: int


@dataclass(frozen=True)
class NetworkBenchPlan:
    """Trainings of one network and of those that it is compared with, which take turns."""

    network: str
    threads: tuple[int, ...] = (1, 2)
    units: int = 64  # of a memory and of each layer
    sequence_length: int = 16
    num_envs: int = 512
    n_steps: int = 64
    batch_size: int = 4096
    n_epochs: int = 4
    rollouts: int = 2  # of one repeat, after a first one that is not counted
    repeats: int = 4  # of each variant, of which the best counts

    @property
    def variants(self) -> tuple[NetworkVariant, ...]:
        """All that take turns."""
        names = (self.network, PLAIN, RECURRENT, SHARED)
        return tuple(NetworkVariant(name, count) for count in self.threads for name in names)

    @property
    def steps(self) -> int:
        """Environment steps of a rollout."""
        return self.num_envs * self.n_steps

    def training(self, variant: NetworkVariant) -> TrainingPlan:
        """The hardest target in all difficulties, in a lesson that never ends."""
        theirs = variant.network in (RECURRENT, SHARED)
        train = TrainSettings(
            algo="recurrent_ppo" if theirs else "hybrid_ppo",
            total_steps=self.steps * (1 + self.rollouts),
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            n_epochs=self.n_epochs,
            network=self._network(variant.network),
            torch_threads=variant.threads,
            options=dict(self._options(variant.network)),
            **SWITCHES[variant.network],
        )
        shown = {} if self.network == "memory" else {"observation": {"units": True}}  # for all
        env = settings_with(num_envs=self.num_envs, threads=variant.threads, **shown)
        target = default_type().hardest_target()
        return TrainingPlan(SEED, env, (Lesson(name=target, targets={target: 1.0}),), train)

    def _network(self, name: str) -> NetworkSettings:
        """One layer after a memory or encoders, as their LSTM has it, or two."""
        units, layer = self.units, (self.units,)
        if name == PLAIN:
            return NetworkSettings(layers=layer * 2, activation="relu")
        parts: dict[str, Any] = {}
        if name in ("units", "all"):
            size = max(units // 2, 1)
            parts |= {"scalars": layer, "units": UnitsSettings(layers=(size, size))}
        if name in ("memory", "all"):
            parts["memory"] = MemorySettings(size=units, sequence_length=self.sequence_length)
        if name == "all":
            parts["scaling"] = "running"
        return NetworkSettings(layers=layer, activation="relu", **parts)

    def _options(self, name: str) -> Iterator[tuple[str, Any]]:
        if name in (RECURRENT, SHARED):
            yield "lstm_hidden_size", self.units
        if name == SHARED:  # one memory for actor and critic, as ours has it
            yield from {"shared_lstm": True, "enable_critic_lstm": False}.items()


def full(network: str) -> NetworkBenchPlan:
    """What is measured of `network`."""
    return NetworkBenchPlan(network)


def quick(network: str) -> NetworkBenchPlan:
    """Tiny trainings of `network`."""
    return NetworkBenchPlan(
        network,
        threads=(1,),
        units=8,
        sequence_length=8,
        num_envs=8,
        n_steps=16,
        batch_size=64,
        n_epochs=1,
        rollouts=1,
        repeats=1,
    )
