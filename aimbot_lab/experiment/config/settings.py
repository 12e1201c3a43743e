"""A curriculum file: everything that one training is made from."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any

from annotated_types import Ge, Le, MinLen

from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson, Name
from aimbot_lab.experiment.config.parameters import EnvironmentParameter, with_parameters
from aimbot_lab.foundation.named_code import NamedCode
from aimbot_lab.foundation.settings import STRICT, Int, dataclass
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.algorithms.registry import AnyTrain, algorithm_of
from aimbot_lab.training.checks import callback_code, with_scaling
from aimbot_lab.training.networks.network import network_of
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import EvaluationSettings, TrainSettings
from aimbot_lab.worlds.registry import (
    AnyWorld,
    code_of,
    default_settings,
    knows_spec,
    spec_of,
    type_of,
)

ONLY_LESSON = Lesson(name="all steps")  # of a file without lessons


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CurriculumFile:
    """A curriculum: the world, the lessons, the learner, and where the run is tracked."""

    name: Name
    """What the training is called in tables and charts."""
    seed: Annotated[Int, Ge(0), Le(2**32 - 1)] = 1
    """Seed of everything random; the same seed gives the same training."""
    env: AnyWorld = field(default_factory=default_settings)
    """The world, the arena where `world` is left out; what else is left out keeps its default."""
    lessons: Annotated[tuple[Lesson, ...], MinLen(1)] = (ONLY_LESSON,)
    """The lessons in the order in which they are learned; left out, in a world with one target, one
    lesson that lasts until all steps are taken."""
    forgetting: ForgettingSettings = ForgettingSettings()
    """How what earlier lessons passed is watched on."""
    evaluation: EvaluationSettings | None = None
    """Evaluation while the agent trains; left out, there is none."""
    self_play: SelfPlaySettings | None = None
    """Matches against oneself, in a world of two sides; left out, there are none."""
    environment_parameters: Mapping[str, EnvironmentParameter] = field(default_factory=dict)
    """Environment parameters of all lessons, in the form of ML-Agents' trainer files. One may have
    a curriculum of its own: its lessons then take the place of the one in `lessons`, whose mix
    they all play."""
    train: AnyTrain = TrainSettings()
    """The algorithm and its hyper-parameters."""
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    """Where the run is tracked."""

    @property
    def learned_env(self) -> WorldSettings:
        """The world as it is trained in: `env`, with the learner's past selves under self-play."""
        return self_play_env(self.env, self.self_play)

    @property
    def codes(self) -> tuple[NamedCode, ...]:
        """The code that a training of it runs: that of its world, and of its callbacks."""
        found = code_of(self.env), callback_code(self.train)
        return tuple(one for one in found if one is not None)

    @property
    def one_core(self) -> tuple[str, ...]:
        """KEY=VALUE as `--set` takes them, so that a training keeps to one core beside others.

        Not every world has threads.
        """
        torch = "train.torch_threads=1"
        return ("env.threads=1", torch) if hasattr(self.env, "threads") else (torch,)

    def resolved(self) -> "CurriculumFile":
        """The same curriculum with its environment parameters worked into the lessons.

        A lesson without targets, of a world that has but one, gets that one, and the network and
        the rewards what they leave to the world. Unchanged where the world's shape is not known
        without code that may not run here.
        """
        if not knows_spec(self.env):
            return self
        env = self.env if self.self_play is None else type_of(self.env).single_settings(self.env)
        lessons = with_parameters(self.lessons, self.environment_parameters)
        only = dict.fromkeys(type_of(env).targets(env), 1.0)
        lessons = tuple(
            lesson if lesson.targets else replace(lesson, targets=only) for lesson in lessons
        )
        train = with_scaling(self.train, bounds_are_ranges=type_of(env).bounds_are_ranges)
        if algorithm_of(train).table is None:  # else it has no network
            network = network_of(train.network).resolved(train.network, spec_of(env))
            train = replace(train, network=network)
        return replace(self, env=env, lessons=lessons, environment_parameters={}, train=train)


def self_play_env(env: WorldSettings, self_play: SelfPlaySettings | None) -> WorldSettings:
    """The world as it is trained in under `self_play`; `env` where that is None or impossible."""
    world = type_of(env)
    if self_play is None or not world.self_play_targets:
        return env
    found: Any = world.self_play_settings(env, self_play.play_against_latest_model_ratio)
    learned: WorldSettings = found
    return learned
