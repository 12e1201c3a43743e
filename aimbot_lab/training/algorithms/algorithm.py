"""What an algorithm is: its classes, and which settings reach them under which names.

Loading this module loads no torch, so that files are checked fast.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.settings import TrainSettings, value_at

if TYPE_CHECKING:
    from gymnasium import spaces
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    from aimbot_lab.adapters.spaces import LearnerActions

Arguments = dict[str, Any]
NUMBERS = frozenset({"ent_coef"})
"""Arguments that the classes take as numbers only; a schedule gives its first value."""
POLICY_KWARGS = "policy_kwargs"
"""The option that holds arguments of the policy's class."""
REPLAY, HER = "replay_buffer", "her"
"""The option that names a replay buffer, and the one of hindsight experience replay."""
HER_ARGUMENTS = "replay_buffer_kwargs"


class AdapterOptions(NamedTuple):
    """How the world is shown to an algorithm."""

    actions: "LearnerActions" = "own"
    masks_shown: bool = False  # in the observation's last columns
    blocks: bool = False  # whether there is a Dict of blocks without pictures, too
    joined: bool = False  # whether columns stay together beside pictures, not block by block


class Classes(NamedTuple):
    """The classes of stable-baselines3, sb3-contrib or your own that do the work."""

    model: "type[BaseAlgorithm]"
    policy: "type[BasePolicy]"


class Memory(NamedTuple):
    """What a policy that remembers has between its features and its layers."""

    outputs: int
    weights: int  # at least


def same_names(*names: str) -> Mapping[str, str]:
    """Settings whose arguments have the same names."""
    return MappingProxyType({name: name for name in names})


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """An algorithm as a curriculum names it by `train.algo`.

    `shared` maps settings to the arguments that take them as they are; a setting that is
    neither there nor in `derived` does nothing here. `policy_options` are options that go to
    the policy's class instead of the model's.
    """

    name: str
    classes: Callable[[], Classes]
    """Imports and gives them; asked where a training or an agent is made, not by `check`."""
    shared: Mapping[str, str]
    settings: type[TrainSettings] = TrainSettings
    """The settings of `train`; one's own class adds fields to these."""
    of_own_worlds: Mapping[str, Any] = field(default_factory=dict)
    """Settings that a file leaves out, by their dotted keys, in worlds whose bounds are no ranges:
    the defaults of its class, where they are others than those of `settings`."""
    picture_layers: tuple[int, ...] | None = None
    """Layers there where a picture is all that is seen; None: as many as elsewhere."""
    one_row: bool = False
    """Whether a file that names no number of copies of an environment has one, as the scripts of
    stable-baselines3; else as many as the world says."""
    adapter: Callable[[Any], AdapterOptions] = lambda _: AdapterOptions()
    masked: bool = False  # predictions take masks of the choices
    recurrent: bool = False  # the policy remembers
    self_play: bool = False  # snapshots of its policy can be met in self-play
    ranks_actions: bool = False
    """Whether the policy values all combinations of choices, and has no probabilities."""
    deterministic: bool = False
    """Whether the policy acts without chance; exploration is added to it."""
    candidates: bool = False
    """Whether it plays whole episodes of candidates, one after the other, in a single row."""
    numbers_only: bool = False  # acts by numbers alone, each between two bounds
    replay_buffer: bool = False  # learns from one, not from each rollout in whole minibatches
    policy_options: tuple[str, ...] = ()
    derived: frozenset[str] = frozenset()
    """Settings that `more`, `more_policy` or `adapter` read."""
    more: "Callable[[Any, spaces.Space[Any], int], Arguments]" = lambda *_: {}
    """Further arguments from the settings, the observation space and the number of rows."""
    more_policy: Callable[[Any, WorldSpec], Arguments] = lambda *_: {}
    """Further arguments of the policy's class."""
    fixed: frozenset[str] = frozenset()
    """Arguments that `more` gives and no option may change."""
    any_threads: Callable[[Any], bool] = lambda _: False
    """Whether any number of threads surely learns the same."""
    sees_pictures: bool = True
    """Whether its classes take observations that are pictures, or have some among them."""
    table: Callable[[Any, WorldSpec], int] | None = None
    """How many values it keeps in a table, in place of a network; None: it learns a network."""
    memory: Callable[[Any, int], Memory] = lambda _, inputs: Memory(inputs, 0)
    """The memory between features and layers, by the number of inputs; without one, the inputs."""

    def load(self) -> Classes:
        """Its classes. Raises ConfigurationError, in one line, where they can't be imported."""
        where = f"train.algo: the algorithm {self.name} can't be loaded:"
        with blamed(where, ConfigurationError):
            classes = self.classes()
        if not (isinstance(classes, Classes) and all(isinstance(one, type) for one in classes)):
            raise ConfigurationError(f"{where} its classes must be Classes(MODEL, POLICY)")
        return classes

    def chooses_bins(self, settings: TrainSettings, spec: WorldSpec) -> bool:
        """Whether the learner sees choices alone: bins where the world of `spec` has numbers."""
        actions = self.adapter(settings).actions
        if actions in ("own", "numbers"):
            return bool(spec.branches)
        return actions in ("bins", "flat", "target_bins")

    @property
    def knows_hindsight(self) -> bool:
        """Whether it may learn from goals that were reached in the place of those that were not."""
        return self.replay_buffer and self.sees_pictures  # which are entries of a Dict, too

    @property
    def samples(self) -> bool:
        """Whether agents may draw actions from probabilities."""
        return not (self.ranks_actions or self.deterministic)

    def rollout_steps(self, settings: TrainSettings) -> int:
        """Steps of every environment between two updates; 1 where episodes are counted instead."""
        usual = settings.n_steps if "n_steps" in self.takes else 1
        frequency = settings.options.get("train_freq", usual)
        return frequency if isinstance(frequency, int) else 1

    @property
    def takes(self) -> frozenset[str]:
        """The settings that do something."""
        return self.derived.union(self.shared)

    def model_arguments(
        self, settings: TrainSettings, observations: "spaces.Space[Any]", rows: int
    ) -> Arguments:
        """Keyword arguments of the model's class, its policy's and the seed left out."""
        shared = {name: getattr(settings, key) for key, name in self.shared.items()}
        for name in NUMBERS & shared.keys():
            shared[name] = value_at(shared[name], 1.0)
        # None means the class's own default where the class does not take None itself.
        given = {name: value for name, value in shared.items() if value is not None}
        of_policy = {*self.policy_options, POLICY_KWARGS}
        options = {k: v for k, v in settings.options.items() if k not in of_policy}
        return {**given, **self.more(settings, observations, rows), **options}

    def policy_arguments(self, settings: TrainSettings, spec: WorldSpec) -> Arguments:
        """Keyword arguments of the policy's class, those of its network left out."""
        options = {k: v for k, v in settings.options.items() if k in self.policy_options}
        return {**self.more_policy(settings, spec), **options}
