"""What an update costs, estimated before a training begins."""

from typing import NamedTuple

from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.algorithms.rollout_algorithms import HYBRID_PPO
from aimbot_lab.training.networks.parts.network_parts import network_parts
from aimbot_lab.training.networks.parts.network_summary import network_summary
from aimbot_lab.training.networks.registry import network_of
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import seats_in, spec_of, type_of

PASSES = 3  # over the weights for a sample: forwards, and backwards for weights and for inputs
NETWORKS = 2  # the policy and the value function; for dqn the network and its target
PER_SECOND = 2e10  # multiply-adds of one core, roughly
MAX_WEIGHTS = 2**25  # of one network: with gradients and Adam's moments some 0.5 GB
MAX_MULTIPLY_ADDS = 1e15  # of an update: half a day and more
COSTLY_SECONDS = 60.0  # of an update that is worth a line


class UpdateCost(NamedTuple):
    """Estimates, which leave out what is small beside the layers."""

    weights: int  # of one network's layers
    multiply_adds: float  # of an update
    of_minibatch: float  # of one of its gradient steps

    @property
    def seconds(self) -> float:
        """What an update takes on one core, roughly."""
        return self.multiply_adds / PER_SECOND

    @property
    def costly(self) -> bool:
        """Whether a person should know before it starts."""
        return self.seconds >= COSTLY_SECONDS

    def __str__(self) -> str:
        """A line for a person."""
        minibatch = self.of_minibatch / PER_SECOND
        return (
            f"an update takes some {self.multiply_adds:.2g} multiply-adds, about "
            f"{_duration(self.seconds)} on a core that makes {PER_SECOND:.0e} a second; Ctrl-C is "
            f"heeded between minibatches, of about {_duration(minibatch)} each"
        )


def update_cost(train: TrainSettings, env: WorldSettings) -> UpdateCost:
    """The cost of an update by a rollout of `env`."""
    if algorithm_of(train).table is not None:
        return UpdateCost(0, 0.0, 0.0)  # a value a step
    weights, per_pass = _of_network(train, env)
    per_sample = float(PASSES * per_pass)
    samples = seats_in(env) * train.n_steps * train.samples.keep
    return UpdateCost(
        weights,
        per_sample * samples * train.n_epochs,
        per_sample * min(train.batch_size, samples),
    )


def _of_network(train: TrainSettings, env: WorldSettings) -> tuple[int, int]:
    """Weights, and multiply-adds of a pass over an observation: units of a kind share weights."""
    if train.algo == HYBRID_PPO.name and network_parts(train.network):
        parts = network_summary(train, spec_of(env))
        return sum(one.weights for one in parts), sum(one.weights * one.times for one in parts)
    inputs = type_of(env).observation_size(env)
    weights = network_of(train.network).weights(train.network, inputs, 0)
    return weights, NETWORKS * weights


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{max(seconds, 0.1):.1f} s"
