"""A trained policy that plays a world, at any temperature, and how likely its actions are."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import (
    MaskableCategoricalDistribution,
    MaskableMultiCategoricalDistribution,
)
from stable_baselines3.common.distributions import (
    BernoulliDistribution,
    CategoricalDistribution,
    DiagGaussianDistribution,
    SquashedDiagGaussianDistribution,
    StateDependentNoiseDistribution,
)
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.adapters.spaces import ObservationCodec, learner_codec
from aimbot_lab.evaluation.temperature import ADVISED, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.foundation.display import Mind
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Observations,
    WorldSpec,
    as_observations,
    columns_of,
    seats_of,
)
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.registry import algorithm_of, foreign_failure
from aimbot_lab.training.networks.network_parts import memory_shape
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy
from aimbot_lab.training.settings import TrainSettings, bins_within

Float64Array = npt.NDArray[np.float64]


class Probabilities(NamedTuple):
    """How a policy's actions are distributed for B observations; before tanh, if it has one."""

    choices: tuple[Float64Array, ...]  # of each branch [B, its choices]
    means: Float64Array | None  # [B, C] of continuous columns; None: they have bins, last branches
    deviation: Float64Array  # [C] of these, or [B, C] where it depends on what is seen


@contextmanager
def at_temperature(policy: BasePolicy, temperature: Temperature) -> Iterator[None]:
    """While it lasts, `policy` samples at `temperature`, which is not 0.

    Logits are divided by it and standard deviations multiplied. At 1 nothing is touched: actions
    are those of the training to the bit.
    """
    if temperature in (LIKELIEST, SAMPLED):
        yield
        return
    acting: Any = getattr(policy, "actor", None) or policy
    distribution = acting.action_dist
    made = distribution.proba_distribution

    def tempered(*parameters: th.Tensor, **named: th.Tensor) -> Any:
        if isinstance(distribution, StateDependentNoiseDistribution):
            means, log_std, latent = parameters
            return made(means, log_std + float(th.tensor(temperature).log()), latent)
        if not isinstance(distribution, DiagGaussianDistribution):
            return made(*(logits / temperature for logits in (*parameters, *named.values())))
        outputs, log_std = parameters  # logits and means [N, L + C], and [C]
        count = sum(getattr(distribution, "choices", ()))  # L; 0 where an action is numbers alone
        cooled = th.cat([outputs[:, :count] / temperature, outputs[:, count:]], dim=1)
        return made(cooled, log_std + float(th.tensor(temperature).log()))

    distribution.proba_distribution = tempered  # of this object alone, and only for now
    try:
        yield
    finally:
        del distribution.proba_distribution


def probabilities_of(distribution: Any) -> Probabilities:
    """The probabilities that stable-baselines3's `distribution` holds."""
    if isinstance(distribution, DiagGaussianDistribution | StateDependentNoiseDistribution):
        numbers: Any = distribution.distribution
        squashed = isinstance(distribution, SquashedDiagGaussianDistribution)
        spread = numbers.stddev if squashed else numbers.stddev[0]
        means, deviation = (one.double().numpy() for one in (numbers.mean, spread))
        return Probabilities(_choices(getattr(distribution, "branches", ())), means, deviation)
    if isinstance(distribution, BernoulliDistribution):
        ones: Any = distribution.distribution
        second = ones.logits.double().sigmoid().cpu().numpy()  # [B, branches]
        choices = tuple(np.stack([1.0 - one, one], axis=1) for one in second.T)
        return Probabilities(choices, None, np.zeros(0))
    masked = isinstance(distribution, MaskableMultiCategoricalDistribution)
    branches = distribution.distributions if masked else distribution.distribution
    if isinstance(distribution, CategoricalDistribution | MaskableCategoricalDistribution):
        branches = (branches,)
    return Probabilities(_choices(branches), None, np.zeros(0))


def _choices(branches: Any) -> tuple[Float64Array, ...]:
    return tuple(branch.logits.double().softmax(dim=1).cpu().numpy() for branch in branches)


def _on_cpu(policy: BasePolicy, train: TrainSettings, spec: WorldSpec) -> BasePolicy:
    """A copy of `policy` as it is now."""
    with th.random.fork_rng(devices=[]):  # first weights are drawn
        copy = new_policy(train, spec)
    copy.load_state_dict(policy.state_dict())
    return copy


class Agent:
    """A trained policy with the world's observations as input and its actions as output.

    It acts on the CPU, where `Player` keeps its random numbers apart from a training's. Of a policy
    elsewhere it takes a copy, which does not learn on.
    """

    def __init__(self, policy: BasePolicy, spec: WorldSpec, train: TrainSettings) -> None:
        algorithm = algorithm_of(train)
        adapter = algorithm.adapter(train)
        self.masked = algorithm.masked or adapter.masks_shown
        self.recurrent = algorithm.recurrent or memory_shape(train) is not None
        self._masks_shown = adapter.masks_shown
        self.seen = ObservationCodec(
            spec,
            masks=adapter.masks_shown,
            channels_first=True,
            joined=adapter.joined,
            blocks=adapter.blocks,
        )
        self.policy = policy if policy.device.type == "cpu" else _on_cpu(policy, train, spec)
        self.spec = spec
        self.train, self.samples = train, algorithm.samples
        """And whether its policy has probabilities to sample from."""
        self._codec = learner_codec(
            spec, adapter.actions, bins_within(train, spec.continuous_limit)
        )
        self._choices = sum(spec.branches)
        self._width = len(spec.branches) + spec.continuous

    @property
    def space(self) -> spaces.Space[Any]:
        """The policy's own actions."""
        return self._codec.space

    @property
    def bins(self) -> Float32Array:
        """Values [C, K] of each continuous column; K is 0 where it is a number of its own."""
        return self._codec.bins

    def temperature(self, asked: Temperature | None = None) -> Temperature:
        """The temperature it plays at: what was `asked`, else what is advised.

        An agent without probabilities plays at 0. Raises ConfigurationError where it was asked
        for more.
        """
        if self.samples:
            return ADVISED if asked is None else asked
        if asked:
            ranks = algorithm_of(self.train).ranks_actions
            raise ConfigurationError(
                f"temperature {asked:g}: an agent of {self.train.algo} "
                f"{'ranks actions' if ranks else 'acts without chance'} and has no probabilities "
                "to sample from; it only plays at 0"
            )
        return LIKELIEST

    def act(
        self, observations: Any, *, temperature: Temperature | None = None
    ) -> npt.NDArray[Any] | list[Any]:
        """What each of B environments takes, for their raw observations [B, D].

        Where the agent sees pictures, these are its blocks [B, ...] by name, or a picture alone; a
        batch of a Gymnasium environment's own observations will do, too. Of such an environment
        actions are elements of its action_space, a list where that is a Dict or a Tuple; of other
        worlds their columns [B, branches + continuous]. Random numbers are torch's. Nothing is
        masked, and every observation is taken for the first of its episode; see `player` for an
        agent that learned otherwise. Raises ConfigurationError for observations of another shape.
        """
        seen = as_observations(observations, self.spec)
        actions = self.choose(seen, temperature=temperature)[0]
        taken = self.spec.environment_actions
        return actions if taken is None else taken.of(actions)

    def choose(
        self,
        observations: Observations,
        *,
        state: Any = None,
        starts: BoolArray | None = None,
        branch_masks: BoolArray | None = None,
        temperature: Temperature | None = None,
    ) -> tuple[Float32Array, Any]:
        """(world actions [B, A], memory) from the memory of the step before.

        `starts` [B] is True where an episode begins and forgets the memory; `branch_masks`
        [B, sum of branches] are the world's. What the policy has no use for is left aside.
        Raises LabError where weights are so large that the network has no answer.
        """
        seen, given = self._shown(observations, branch_masks)
        taken = self.temperature(temperature)
        given["deterministic"] = taken == LIKELIEST
        try:
            with at_temperature(self.policy, taken):
                chosen, state = self.policy.predict(seen, state, starts, **given)
        except (Exception, SystemExit) as error:
            failed: LabError | None = foreign_failure(self.train, error)
            if failed is None and isinstance(error, ValueError):  # torch refuses a distribution
                failed = LabError("the agent's network outputs NaN or infinity")
            if failed is None:
                raise
            raise failed from error
        return self.world_actions(chosen, observations), state

    def world_actions(self, chosen: Any, observations: Observations) -> Float32Array:
        """The world's actions [B, A] for the policy's own, `chosen` for `observations` [B, D]."""
        actions = np.zeros((len(observations), self._width), np.float32)
        self._codec.to_world(chosen, actions, columns_of(observations))
        return actions

    def _shown(
        self, observations: Observations, branch_masks: BoolArray | None
    ) -> tuple[Any, dict[str, Any]]:
        """What the policy sees of raw observations, and its further arguments."""
        if branch_masks is None:
            branch_masks = np.ones((len(observations), self._choices), np.bool_)
        if self._masks_shown:
            return self.seen.shown(observations, branch_masks), {}
        masks = {"action_masks": self._codec.masks(branch_masks)} if self.masked else {}
        return self.seen.shown(observations), masks

    def probabilities(
        self,
        observations: Observations,
        *,
        branch_masks: BoolArray | None = None,
        temperature: Temperature = SAMPLED,
    ) -> Probabilities:
        """How likely actions are for raw observations [B, D] at `temperature`, which is not 0.

        For an agent that samples; each observation is taken for the first of its episode.
        """
        return self.likely(observations, branch_masks=branch_masks, temperature=temperature)[0]

    def likely(
        self,
        observations: Observations,
        *,
        state: Any = None,
        starts: BoolArray | None = None,
        branch_masks: BoolArray | None = None,
        temperature: Temperature = SAMPLED,
    ) -> tuple[Probabilities, Any]:
        """(`probabilities`, memory) from the memory of the step before, as `choose` takes it."""
        seen, given = self._shown(observations, branch_masks)
        policy: Any = self.policy
        policy.set_training_mode(False)
        with th.no_grad(), at_temperature(policy, temperature):
            shown = policy.obs_to_tensor(seen)[0]
            if (actor := getattr(policy, "actor", None)) is not None:
                means, log_std, more = actor.get_action_dist_params(shown)
                drawn = actor.action_dist.proba_distribution(means, log_std, **more)
                return probabilities_of(drawn), None
            if not self.recurrent:
                return probabilities_of(policy.get_distribution(shown, **given)), None
            drawn, state = remembering_distribution(policy, shown, state=state, starts=starts)
            return probabilities_of(drawn), state

    def values(
        self, observations: Observations, *, branch_masks: BoolArray | None = None
    ) -> Float64Array | None:
        """What its critic expects of raw observations [B, D] from here on, [B].

        In the units of the rewards that it learned from, which may be scaled. None where it has no
        critic of states, or judges by what it remembers.
        """
        policy: Any = self.policy
        if self.recurrent or not hasattr(policy, "predict_values"):
            return None
        with th.no_grad():
            found = policy.predict_values(
                policy.obs_to_tensor(self._shown(observations, branch_masks)[0])[0]
            )
        values: Float64Array = found.double().cpu().numpy()[:, 0]
        return values

    def mind(self, observations: Observations, branch_masks: BoolArray) -> Mind | None:
        """What it expects of raw observations [B, D], and how likely its choices are there.

        Each is taken for the first of its episode. None for an agent that remembers, for one that
        neither judges states nor draws actions, and where its network has no answer.
        """
        if self.recurrent:
            return None
        values = self.values(observations, branch_masks=branch_masks)
        choices: tuple[Float64Array, ...] = ()
        if self.samples:
            count = len(self.spec.branches)
            try:
                likely = self.probabilities(observations, branch_masks=branch_masks)
            except ValueError:  # torch refuses a distribution of NaN
                return None
            choices = likely.choices[:count]
            if tuple(shares.shape[1] for shares in choices) != tuple(self.spec.branches):
                choices = ()  # of actions that the agent joins or splits
        return None if values is None and not choices else Mind(values, choices)

    def player(
        self, world: BatchWorld, *, temperature: Temperature | None = None, seed: int = 0
    ) -> "Player":
        """This agent in `world`, about to be reset.

        Where actions are sampled, `seed` says which; the random numbers are the player's own.
        Raises ConfigurationError for a world of another shape than the agent's.
        """
        here, own = _shape(world.spec), _shape(self.spec)
        if here != own:
            raise ConfigurationError(
                f"the agent learned in a world that shows and takes {own}; the world here shows "
                f"and takes {here}"
            )
        return Player(self, world, temperature=self.temperature(temperature), seed=seed)


def _shape(spec: WorldSpec) -> str:
    """What a network must fit, for a person."""
    actions = [f"{size} choices" for size in spec.branches]
    actions += [f"{spec.continuous} numbers"] if spec.continuous else []
    shown = [f"{len(spec.observation_names)} numbers"] if spec.observation_names else []
    shown += [f"{block.name} {block.shape}" for block in spec.pictures]
    return f"{', '.join(shown)} and {' and '.join(actions)}"


class Player:
    """An agent in a world: it sees the world's masks and remembers each episode."""

    def __init__(
        self, agent: Agent, world: BatchWorld, *, temperature: Temperature, seed: int
    ) -> None:
        self._agent, self._world, self._temperature = agent, world, temperature
        self._random = th.Generator().manual_seed(seed).get_state()
        self._masks = np.ones((seats_of(world), sum(world.spec.branches)), np.bool_)
        self._state: Any = None

    def __call__(self, observations: Observations, starts: BoolArray) -> Float32Array:
        """World actions [N, branches + continuous] in the world's present state.

        `starts` [N] is True where an episode begins with `observations` [N, D]: nothing is
        remembered there.
        """
        if self._agent.masked:
            self._world.action_masks(self._masks)
        with th.random.fork_rng(devices=[]):  # policies know no generator but torch's
            th.set_rng_state(self._random)
            actions, self._state = self._agent.choose(
                observations,
                state=self._state,
                starts=starts,
                branch_masks=self._masks,
                temperature=self._temperature,
            )
            self._random = th.get_rng_state()
        return actions


def remembering_distribution(
    policy: Any, shown: Any, *, state: Any, starts: BoolArray | None
) -> tuple[Any, Any]:
    """(distribution, memory) for what `policy` is shown [N, D]; memory is as `predict` gives it.

    That is [N, S, H] of our policy, else hidden and cell [K, N, H]. `starts` [N] is True where an
    episode begins; without a `state` all do.
    """
    rows = len(next(iter(shown.values())) if isinstance(shown, dict) else shown)
    began = np.zeros(rows, np.bool_) if starts is None else starts
    begins = th.as_tensor(began, dtype=th.float32)
    if isinstance(policy, RememberingPolicy):
        if state is None:
            before = policy.rollout.empty(rows, th.device("cpu"))
        else:
            before = th.as_tensor(state, dtype=th.float32)
        drawn, after = policy.distribution_after(shown, before, begins.reshape(1, -1))
        return drawn, after.numpy()
    if state is None:
        layers, _, size = policy.lstm_hidden_state_shape
        parts = tuple(th.zeros(layers, rows, size) for _ in range(2))
    else:
        parts = tuple(th.as_tensor(part, dtype=th.float32) for part in state)
    drawn, after = policy.get_distribution(shown, parts, begins)
    return drawn, tuple(part.numpy() for part in after)
