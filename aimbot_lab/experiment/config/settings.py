"""The settings of a curriculum's file, and the environment parameters of ML-Agents' files.

A parameter is a number, a sampler, or has lessons of its own: a curriculum. Names, defaults and
limits are those of ML-Agents' Python package, version 1.1.0 (trainers/settings.py), in which every
parameter goes its own way through its lessons. Here there is one way. So either one parameter has
lessons, or all that have any end them by the same criteria, in which case ML-Agents moves them on
together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Annotated, Any, Literal

from annotated_types import Le, MinLen
from pydantic import BeforeValidator, Discriminator, Tag

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import (
    ForgettingSettings,
    Lesson,
    Name,
    Parameter,
    kind_of_parameter,
)
from aimbot_lab.experiment.config.yaml_reader import Diagnostic, KeyPath, starts_with
from aimbot_lab.foundation.named_code import NamedCode
from aimbot_lab.foundation.settings import (
    STRICT,
    Bool,
    Float,
    Ge,
    Int,
    ParameterValue,
    Sampler,
    dataclass,
)
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.algorithms.algorithm import with_named_encoder
from aimbot_lab.training.algorithms.registry import AnyTrain, algorithm_of
from aimbot_lab.training.checks import callback_code, with_picture_layers, with_scaling
from aimbot_lab.training.networks.network import resolved_network
from aimbot_lab.training.settings import (
    EvaluationSettings,
    SelfPlaySettings,
    TrainingPlan,
    TrainSettings,
)
from aimbot_lab.worlds.registry import (
    AnyWorld,
    code_of,
    default_settings,
    knows_spec,
    spec_of,
    type_of,
)

SECTION = "environment_parameters"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ParameterCriteria:
    """What ends a parameter's lesson, in ML-Agents' words."""

    behavior: Name
    """ML-Agents: whose rewards and steps count. Here there is one agent, whatever its name."""
    measure: Annotated[
        Literal["reward", "progress", "elo"],
        BeforeValidator(lambda value: "elo" if value == "Elo" else value),
    ] = "reward"
    """The mean reward of an episode, the share of all training steps that are taken, or, as `Elo`
    in ML-Agents' documentation, the running rating in self-play."""
    threshold: Float = 0.0
    """Value that the measure must exceed."""
    min_lesson_length: Annotated[Int, Ge(0)] = 0
    """Minimum number of episodes of the lesson; the largest is also that of the mean."""
    signal_smoothing: Bool = True
    """Whether a quarter of the previous measure is mixed into the current one."""
    require_reset: Bool = False
    """ML-Agents ends all episodes. Here the next lesson begins with each row's next episode."""

    def __post_init__(self) -> None:
        if self.measure == "progress" and not 0 <= self.threshold < 1:
            raise ValueError(
                f"threshold must be at least 0.0 and less than 1.0 (got {self.threshold})"
            )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ParameterLesson:
    """One value of a parameter, and what ends its lesson."""

    name: Name
    """Name of the lesson."""
    value: Parameter
    """A number or a sampler."""
    completion_criteria: ParameterCriteria | None = None
    """What ends the lesson; ignored for the last one."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ParameterCurriculum:
    """Lessons of one parameter."""

    curriculum: Annotated[tuple[ParameterLesson, ...], MinLen(1)]
    """The lessons in the order in which they are learned."""


def _kind(value: object) -> str | None:
    if isinstance(value, ParameterCurriculum):
        return "curriculum"
    if isinstance(value, Mapping) and "curriculum" in value:
        return "curriculum"
    return kind_of_parameter(value)


EnvironmentParameter = Annotated[
    Annotated[Float, Tag("number")]
    | Annotated[Sampler, Tag("sampler")]
    | Annotated[ParameterCurriculum, Tag("curriculum")],
    Discriminator(
        _kind,
        custom_error_type="environment_parameter_type",
        custom_error_message="must be a number, a sampler or a curriculum",
    ),
]
"""A constant, a sampler, or lessons of its own."""

Parameters = Mapping[str, EnvironmentParameter]


def with_parameters(lessons: Sequence[Lesson], parameters: Parameters) -> tuple[Lesson, ...]:
    """`lessons` with every value that `parameters` give; a lesson's own parameters go first.

    Where a parameter has lessons, the one lesson in `lessons` is what each of them plays, and the
    last keeps its criterion. Valid where `course_diagnostics` finds nothing.
    """
    fixed = {
        name: value
        for name, value in parameters.items()
        if not isinstance(value, ParameterCurriculum)
    }
    courses = _courses(parameters)
    if not courses:
        return tuple(replace(one, parameters={**fixed, **one.parameters}) for one in lessons)
    steps: list[Lesson] = []
    played, rows = lessons[0], [*zip(*courses.values(), strict=True)]
    for row in rows:
        wanted = " / ".join(dict.fromkeys(lesson.name for lesson in row))[:90]  # what a name may be
        names = (wanted if number == 1 else f"{wanted} ({number})" for number in count(1))
        taken = {step.name for step in steps}
        is_last = len(steps) + 1 == len(rows)
        ends = played.completion_criteria if is_last else _criteria(row[0].completion_criteria)
        values = {name: lesson.value for name, lesson in zip(courses, row, strict=True)}
        step = replace(
            played,
            name=next(name for name in names if name not in taken),
            completion_criteria=ends,
            parameters={**fixed, **values, **played.parameters},
        )
        steps.append(step)
    return tuple(steps)


def course_diagnostics(
    lessons: Sequence[Lesson | None], parameters: Parameters
) -> Iterator[Diagnostic]:
    """Why the lessons of `parameters` make no chain on the mix of `lessons`.

    A lesson that is None is known to be invalid.
    """
    courses = _courses(parameters)
    if not courses:
        return
    for name, course in courses.items():
        if any(lesson is not None and name in lesson.parameters for lesson in lessons):
            yield Diagnostic(
                (SECTION, name), "has lessons of its own, and a lesson sets it as well"
            )
        for number, lesson in enumerate(course[:-1]):
            if lesson.completion_criteria is None:
                path: KeyPath = (SECTION, name, "curriculum", number, "completion_criteria")
                yield Diagnostic(path, "is missing; only the last lesson may do without")
    if len(lessons) != 1:
        what = "has lessons of its own, which all play the mix of the one lesson in `lessons`"
        yield Diagnostic((SECTION, next(iter(courses))), f"{what} (got {len(lessons)})")
    leader, *others = courses
    ends = {
        name: [_criteria(lesson.completion_criteria) for lesson in course[:-1]]
        for name, course in courses.items()
    }
    for name in others:
        if ends[name] != ends[leader]:
            yield Diagnostic(
                (SECTION, name),
                f"has lessons that do not end together with those of {leader}: give both the same "
                "criteria, or write the lessons that you want as `lessons`",
            )


def _courses(parameters: Parameters) -> dict[str, tuple[ParameterLesson, ...]]:
    return {
        name: value.curriculum
        for name, value in parameters.items()
        if isinstance(value, ParameterCurriculum)
    }


def _criteria(criteria: ParameterCriteria | None) -> CompletionCriteria | None:
    if criteria is None:
        return None
    return CompletionCriteria(
        measure=criteria.measure,
        rule="ml-agents",
        threshold=criteria.threshold,
        min_lesson_length=criteria.min_lesson_length,
        signal_smoothing=criteria.signal_smoothing,
    )


def lesson_parameter_diagnostics(
    given: Mapping[str, ParameterValue],
    env: WorldSettings | None,
    path: KeyPath,
    *,
    world: WorldType | None,
) -> Iterator[Diagnostic]:
    """What is wrong with each parameter, or, where nothing is, with all of them together."""
    faults = [
        fault
        for name, value in given.items()
        if (fault := _diagnostic(name, (*path, name), value, env=env, world=world))
    ]
    yield from faults
    crowded = None
    if not faults and env is not None and world is not None:
        crowded = world.together_fault(given, env)
    if crowded is not None:
        yield Diagnostic(path, crowded)


def environment_diagnostics(
    lessons: Sequence[Lesson | None] | None,
    parameters: Parameters | None,
    env: WorldSettings | None,
    *,
    world: WorldType | None,
) -> Iterator[Diagnostic]:
    """What is wrong with `environment_parameters`, by themselves and with the lessons.

    A part that is None is wrong by itself, and nothing is held against it.
    """
    if not parameters:
        return
    faults = [
        fault
        for value in _values(parameters)
        if (fault := _diagnostic(*value, env=env, world=world))
    ]
    if lessons is not None:
        faults += course_diagnostics(lessons, parameters)
    yield from dict.fromkeys(faults)
    known = [lesson for lesson in lessons or () if lesson is not None]
    if faults or env is None or world is None:
        return
    if lessons is None or len(known) < len(lessons):
        return
    for lesson in with_parameters(known, parameters):
        crowded = world.together_fault(lesson.parameters, env)
        if crowded is not None:
            yield Diagnostic((SECTION,), crowded)
            return


def with_reward_terms(faults: Sequence[Diagnostic], data: Any) -> list[Diagnostic]:
    """`faults` with one in the place of all about a `rewards` that nests its terms.

    In lessons the terms are keys of their own, such as rewards.win.
    """
    kept = list(faults)
    lessons = data.get("lessons") if isinstance(data, dict) else None
    for number, lesson in enumerate(lessons if isinstance(lessons, list) else []):
        parameters = lesson.get("parameters") if isinstance(lesson, dict) else None
        terms = parameters.get("rewards") if isinstance(parameters, dict) else None
        if not isinstance(terms, dict) or "sampler_type" in terms:
            continue
        path: KeyPath = ("lessons", number, "parameters", "rewards")
        keys = ", ".join(f"rewards.{term}" for term in [*terms][:8]) or "rewards.win"
        kept = [fault for fault in kept if not starts_with(fault.path, path)]
        kept.append(
            Diagnostic(path, f"each term is a parameter of its own: {keys}", about_key=True)
        )
    return kept


def _values(parameters: Parameters) -> Iterator[tuple[str, KeyPath, ParameterValue]]:
    """Every value that a parameter takes: name, place and value."""
    for name, value in parameters.items():
        path: KeyPath = (SECTION, name)
        if not isinstance(value, ParameterCurriculum):
            yield name, path, value
            continue
        for number, lesson in enumerate(value.curriculum):
            yield name, (*path, "curriculum", number, "value"), lesson.value


def _diagnostic(
    name: str,
    path: KeyPath,
    value: ParameterValue,
    *,
    env: WorldSettings | None,
    world: WorldType | None,
) -> Diagnostic | None:
    if world is None:
        return None
    known = world.parameters(env)
    if known is not None and name not in known:
        key = path[: path.index(name) + 1]
        what = f"unknown environment parameter ({nearest_name(name, known)})"
        return Diagnostic(key, what, about_key=True)
    fault = world.parameter_fault(name, value, env)
    return None if fault is None else Diagnostic(path, fault)


ONLY_LESSON = Lesson(name="all steps")  # of a file without lessons


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CurriculumFile:
    """A curriculum: the world, the lessons, the learner, and where the run is tracked."""

    name: Name
    """Name of the training in tables and charts."""
    seed: Annotated[Int, Ge(0), Le(2**32 - 1)] = 1
    """Seed of everything random; the same seed gives the same training."""
    env: AnyWorld = field(default_factory=default_settings)
    """The world; the arena if `world` is left out. Other keys that are left out keep their
    defaults."""
    lessons: Annotated[tuple[Lesson, ...], MinLen(1)] = (ONLY_LESSON,)
    """The lessons, in order. In a world with one target they may be left out: one lesson then lasts
    until all steps are taken."""
    forgetting: ForgettingSettings = ForgettingSettings()
    """How cells of passed lessons are monitored for forgetting."""
    evaluation: EvaluationSettings | None = None
    """Evaluation during the training; none by default."""
    self_play: SelfPlaySettings | None = None
    """Self-play in a world of two sides; none by default."""
    environment_parameters: Mapping[str, EnvironmentParameter] = field(default_factory=dict)
    """Environment parameters of all lessons, in the form of ML-Agents' trainer files. One of them
    may have a curriculum: its lessons then replace the one in `lessons` and play its mix."""
    train: AnyTrain = TrainSettings()
    """The algorithm and its hyper-parameters."""
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    """Where the run is tracked."""

    @property
    def learned_env(self) -> WorldSettings:
        """The world as it is trained in: `env`, with the learner's past selves under self-play."""
        return self_play_env(self.env, self.self_play)

    @property
    def training_plan(self) -> TrainingPlan:
        """What a training of it is made from."""
        parts = self.seed, self.env, self.lessons, self.train
        return TrainingPlan(*parts, self.forgetting, self.evaluation, self.self_play)

    @property
    def codes(self) -> tuple[NamedCode, ...]:
        """The code that a training of it runs: that of its world, and of its callbacks."""
        found = code_of(self.env), callback_code(self.train)
        return tuple(one for one in found if one is not None)

    @property
    def has_lessons(self) -> bool:
        """Whether it has other lessons than the one of a file without lessons."""
        return [one.name for one in self.lessons] != [ONLY_LESSON.name]

    @property
    def one_core(self) -> tuple[str, ...]:
        """KEY=VALUE as `--set` takes them, so that a training keeps to one core beside others.

        Not every world has threads.
        """
        torch = "train.torch_threads=1"
        return ("env.threads=1", torch) if hasattr(self.env, "threads") else (torch,)

    def resolved(self, *, own_layers: bool = True) -> "CurriculumFile":
        """The same curriculum with its environment parameters worked into the lessons.

        A lesson without targets, of a world that has but one, gets that one, and the network and
        the rewards what they leave to the world. Without `own_layers` their number is left to it,
        too. Unchanged where the world's shape is not known without code that may not run here.
        """
        if not knows_spec(self.env):
            return self
        env = self.env if self.self_play is None else type_of(self.env).single_settings(self.env)
        lessons = with_parameters(self.lessons, self.environment_parameters)
        only = dict.fromkeys(type_of(env).targets(env), 1.0)
        lessons = tuple(
            lesson if lesson.targets else replace(lesson, targets=only) for lesson in lessons
        )
        are_ranges = type_of(env).bounds_are_ranges
        train = with_scaling(self.train, bounds_are_ranges=are_ranges)
        if not (own_layers or are_ranges):
            train = with_picture_layers(train, spec_of(env))
        if algorithm_of(train).table is None:  # else it has no network
            train = with_named_encoder(train)
            network = resolved_network(train.network, spec_of(env))
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
