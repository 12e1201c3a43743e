"""Plain data as a checked curriculum, or everything that is wrong with them."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.checks import (
    aim_diagnostics,
    cost_diagnostics,
    learner_diagnostics,
    lesson_diagnostics,
    mask_diagnostics,
    network_diagnostics,
    option_diagnostics,
    rollout_diagnostics,
    table_diagnostics,
    world_diagnostics,
)
from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.experiment.config.key_path import KeyPath, is_parameters, starts_with
from aimbot_lab.experiment.config.keys import without_tags
from aimbot_lab.experiment.config.parameter_checks import environment_diagnostics
from aimbot_lab.experiment.config.parameter_lessons import SECTION, Parameters
from aimbot_lab.experiment.config.pydantic_errors import section_diagnostics
from aimbot_lab.experiment.config.self_play.checks import self_play_diagnostics, self_play_env
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.named_code import NamedCode, allow
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.training.algorithms.registry import AnyTrain
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import AnyWorld, code_of, knows_spec, named_type

MayRun = Callable[[NamedCode], bool]


def never(code: NamedCode) -> bool:
    """That code may not run: its file is only read."""
    del code
    return False


def always(code: NamedCode) -> bool:
    """That code may run: this very command names the file that names it."""
    del code
    return True


_ROLLOUT: frozenset[KeyPath] = frozenset(
    {
        ("env",),
        ("env", "num_envs"),
        ("train",),
        ("train", "algo"),
        ("train", "n_steps"),
        ("train", "batch_size"),
    }
)
_COST: frozenset[KeyPath] = frozenset(
    {("env", "rewards"), ("train", "n_epochs"), ("train", "reward_scale"), ("train", "network")}
)
_NETWORK: frozenset[KeyPath] = frozenset({("train",), ("train", "algo"), ("train", "network")})
_ALGORITHM: frozenset[KeyPath] = frozenset({("train",), ("train", "algo")})


def validate(
    data: dict[str, Any], *, may_run: MayRun = never
) -> tuple[CurriculumFile | None, list[Diagnostic]]:
    """The curriculum that `data` describe, None where anything is wrong, and all faults.

    Code that its world names is run where `may_run` says so; elsewhere nothing is held against a
    world whose shape is not known without it.
    """
    config: CurriculumFile | None = None
    faults: list[Diagnostic] = []
    try:
        config = TypeAdapter(CurriculumFile).validate_python(data)
    except ValidationError as error:
        faults = list(section_diagnostics(error, CurriculumFile))
    known = {fault.path for fault in faults}
    rest = _without(data, known)
    lessons, env, parameters, train = _sections(rest)
    if env is not None and (code := code_of(env)) is not None and may_run(code):
        allow(code)
    given = rest.get("self_play")
    self_play = None if given is None else _checked(SelfPlaySettings, given)
    lessons = lessons and _with_known_mixes(lessons, known)
    world = named_type(data.get("env"))
    if unmade := list(world_diagnostics(env)):
        env = world = None
    elif env is not None and not knows_spec(env):
        env, world = None, None
    if unlearned := list(learner_diagnostics(train)):
        train = None
    unmatched = list(self_play_diagnostics(lessons, env, train, self_play))
    if env is not None:
        env = self_play_env(env, self_play)
    floor = None if known & _floor(world) else env
    between = [
        *unmade,
        *unlearned,
        *unmatched,
        *lesson_diagnostics(lessons, floor, world),
        *environment_diagnostics(lessons, parameters, floor, world=world),
        *rollout_diagnostics(None if known & _ROLLOUT else env, train),
        *cost_diagnostics(None if known & (_ROLLOUT | _COST) else env, train),
        *aim_diagnostics(env, train),
        *mask_diagnostics(env, None if known & _ALGORITHM else train),
        *option_diagnostics(None if known & _ALGORITHM else train),
        *network_diagnostics(env, None if known & _NETWORK else train),
        *table_diagnostics(env, None if known & _ALGORITHM else train),
    ]
    for fault in between:
        if not any(starts_with(place, fault.path) for place in known):
            faults.append(fault)
    return (None if faults else config), faults


def _floor(world: WorldType | None) -> frozenset[KeyPath]:
    """What a lesson's parameters are checked against in `world`."""
    keys = () if world is None else world.bounding_keys
    return frozenset({("env",), *(("env", *key.split(".")) for key in keys)})


def _without(data: dict[str, Any], wrong: Iterable[KeyPath]) -> dict[str, Any]:
    """A copy of `data` without the values at `wrong`, to check what the rest says together.

    Lessons keep their places and get names, so that a nameless one is checked as well.
    """
    rest = deepcopy(data)
    for path in wrong:
        _remove(rest, path)
    lessons = rest.get("lessons")
    for number, lesson in enumerate(lessons if isinstance(lessons, list) else []):
        if isinstance(lesson, dict):
            lesson.setdefault("name", f"nameless {number}")
    return rest


def _with_known_mixes(
    lessons: Sequence[Lesson | None], wrong: Iterable[KeyPath]
) -> list[Lesson | None]:
    """`lessons`, None in the place of those whose targets are wrong by themselves."""
    doubtful = {path[1] for path in wrong if path[:1] == ("lessons",) and path[2:3] == ("targets",)}
    return [None if number in doubtful else one for number, one in enumerate(lessons)]


def _remove(data: Any, path: KeyPath) -> None:
    *sections, key = _up_to_whole(path)
    for section in sections:
        inside = isinstance(section, int) or (isinstance(data, dict) and section in data)
        data = data[section] if inside else None
    if isinstance(data, list):
        data[int(key)] = None
    elif isinstance(data, dict):
        data.pop(key, None)


def _up_to_whole(path: KeyPath) -> KeyPath:
    """`path` up to the list or the parameter that it leads into; those are checked whole."""
    length = next((end for end in (1, 3) if is_parameters(path[:end])), None)
    if length is not None:
        return path[: length + 1]
    lists = (place for place, key in enumerate(path) if isinstance(key, int) and place != 1)
    return path[: next(lists, len(path))]


def _sections(
    data: dict[str, Any],
) -> tuple[
    list[Lesson | None] | None, WorldSettings | None, Parameters | None, TrainSettings | None
]:
    """Those sections that are right by themselves."""
    lessons = data.get("lessons")
    return (
        [_checked(Lesson, lesson) for lesson in lessons] if isinstance(lessons, list) else None,
        _checked(AnyWorld, data.get("env", {})),
        _checked(Parameters, data.get(SECTION, {})),
        _checked(AnyTrain, data.get("train", {})),
    )


def _checked(kind: Any, data: Any) -> Any:
    """The section in `data`, if need be without keys that are wrong, None where that won't do."""
    for _ in range(2):
        try:
            return TypeAdapter(kind).validate_python(data)
        except ValidationError as error:
            places = (without_tags(kind, detail["loc"]) for detail in error.errors())
            wrong = {place[0] for place in places if place}
        if isinstance(data, dict):
            data = {key: value for key, value in data.items() if key not in wrong}
    return None
