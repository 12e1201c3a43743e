"""Trainer files, curricula and samplers of ML-Agents before 1.0, in today's form.

What its `upgrade_config` (version 1.1.0) makes of them is the model, which itself writes lessons
that ML-Agents 1.1.0 refuses.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aimbot_lab.experiment.config.settings import SECTION
from aimbot_lab.experiment.config.yaml_reader import Diagnostic, KeyPath, shown_value
from aimbot_lab.experiment.conversion.trainer_file import (
    BEHAVIORS,
    DEFAULTS,
    KEYS,
    WHOLE_FILE,
    ConversionError,
)
from aimbot_lab.foundation.shown_text import nearest_name

OLD_SECTIONS = CURRICULUM, RANDOMIZATION = "curriculum", "parameter_randomization"
RENAMED = {
    "trainer": "trainer_type",
    "pretraining": "behavioral_cloning",
    "play_against_current_self_ratio": "play_against_latest_model_ratio",
    "multirange_uniform": "multirangeuniform",
}
FLAT = {place.rpartition(".")[2]: place for place in KEYS if place.startswith(("hyper", "network"))}
"""Keys that once stood in the behavior itself."""
COURSE = ("measure", "thresholds", "parameters")
COURSE_KEYS = (*COURSE, "signal_smoothing", "min_lesson_length")
FORM = (
    "must be an ML-Agents trainer file: a mapping with behaviors, default_settings or "
    "environment_parameters, brains of its versions before 0.17, or a curriculum or samplers of "
    "before 0.19"
)


class TodaysForm(NamedTuple):
    """The data of a trainer file in the form of 1.1.0, and where they stood."""

    data: dict[str, Any]
    came_from: dict[KeyPath, KeyPath]
    notes: tuple[Diagnostic, ...]

    def origin(self, path: KeyPath) -> KeyPath:
        """Where the value at `path` of the data stands in the file."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.came_from:
                return (*self.came_from[path[:end]], *path[end:])
        return path


def todays_form(data: Mapping[str, Any]) -> TodaysForm:
    """`data` of a file of any version. Raises ConversionError where they are of none."""
    if "lessons" in data and not data.keys() & {BEHAVIORS, DEFAULTS}:
        what = "is a curriculum of aimbot-lab, which needs no conversion"
        raise ConversionError(Diagnostic((), what))
    moved: dict[KeyPath, KeyPath] = {}
    notes: list[Diagnostic] = []
    today = {key: value for key, value in data.items() if key not in OLD_SECTIONS}
    if not data.keys() & {BEHAVIORS, DEFAULTS, SECTION, *OLD_SECTIONS}:
        today, kind = _of_a_part(data, moved, notes)
        notes.append(Diagnostic((), kind))
    for key in (BEHAVIORS, DEFAULTS, SECTION, *OLD_SECTIONS):
        value = today.get(key, data.get(key))
        if not isinstance(value, dict | None):
            what = f"must be a mapping (got {shown_value(value)})"
            raise ConversionError(Diagnostic((key,), what))
    parameters = {**(today.get(SECTION) or {})}
    for name, value in (data.get(RANDOMIZATION) or {}).items():
        moved[SECTION, name] = (RANDOMIZATION, name)
        parameters[name] = value
    for behavior, course in (data.get(CURRICULUM) or {}).items():
        place: KeyPath = (CURRICULUM, behavior)
        _add_lessons(parameters, course, behavior=behavior, path=place, moved=moved, notes=notes)
    if "resampling-interval" in parameters:
        del parameters["resampling-interval"]
        what = "has no counterpart: samplers draw a new value for every episode"
        notes.append(Diagnostic(moved.get((SECTION, "resampling-interval"), ()), what))
    if parameters:
        today[SECTION] = {
            name: _parameter(value, (SECTION, name), moved) for name, value in parameters.items()
        }
    return TodaysForm(today, moved, tuple(notes))


def _of_a_part(
    data: Mapping[str, Any], moved: dict[KeyPath, KeyPath], notes: list[Diagnostic]
) -> tuple[dict[str, Any], str]:
    """Today's data of brains, a curriculum or samplers, which once were files of their own.

    A brain may name another one, whose values it has.
    """
    named = {key: data.get(one, one) if isinstance(one, str) else one for key, one in data.items()}
    sections = {
        key: one for key, one in named.items() if isinstance(one, dict) and key not in WHOLE_FILE
    }
    rest = {key: one for key, one in data.items() if key not in sections}
    found: dict[str, Any] = {}
    if data.keys() >= set(COURSE):
        _add_lessons(found, data, behavior="any", path=(), moved=moved, notes=notes)
        return {SECTION: found}, (
            "a curriculum of ML-Agents before 0.15, which names no brain: all but its lessons is "
            "as ML-Agents has it by default"
        )
    if sections and all(one.keys() >= set(COURSE) for one in sections.values()):
        for brain, course in sections.items():
            moved[BEHAVIORS, brain] = (brain,)
            _add_lessons(found, course, behavior=brain, path=(brain,), moved=moved, notes=notes)
        return {**rest, BEHAVIORS: {name: {} for name in sections}, SECTION: found}, (
            "a curriculum of ML-Agents before 0.17: all but its lessons is as ML-Agents has it by "
            "default"
        )
    if "resampling-interval" in data or any("sampler-type" in one for one in sections.values()):
        for name in data:
            moved[SECTION, name] = (name,)
        return {SECTION: dict(data)}, "samplers of ML-Agents before 0.17: all else is by default"
    usual = {"trainer", "reward_signals", "max_steps", *FLAT}
    if not any(one.keys() & usual for one in sections.values()):
        raise ConversionError(Diagnostic((), FORM))
    brains = [name for name in sections if name != "default"] or ["default"]
    return {**rest, BEHAVIORS: {name: _brain(name, sections, moved) for name in brains}}, (
        "a trainer file of ML-Agents before 0.17"
    )


def _brain(name: str, brains: Mapping[str, Any], moved: dict[KeyPath, KeyPath]) -> dict[str, Any]:
    """The brain's values over those of the default one, each in the section that it has today."""
    shared, own = brains.get("default", {}), brains[name]
    given = {**shared, **own}
    remembers = given.get("use_recurrent", False)
    behavior: dict[str, Any] = {"network_settings": {"memory": {}}} if remembers else {}
    for key, value in sorted(given.items(), key=lambda one: one[0] in FLAT):  # sections first
        source: KeyPath = (name if key in own else "default", key)
        today = RENAMED.get(key, key)
        *sections, last = FLAT.get(today, today).split(".")
        if last == "use_recurrent" and type(value) is not bool:
            what = f"must be true or false (got {shown_value(value)})"
            raise ConversionError(Diagnostic(source, what))
        if last == "use_recurrent" or ("memory" in sections and not remembers):
            continue
        if last == "gamma" and "reward_signals" not in given:  # as before 0.6
            sections = ["reward_signals", "extrinsic"]
        _put(behavior, (*sections, last), value)
        moved[BEHAVIORS, name, *sections, last] = source
        if last == "self_play" and isinstance(value, dict):
            behavior[last] = {RENAMED.get(one, one): inner for one, inner in value.items()}
            for inner in map(str, value):
                moved[BEHAVIORS, name, last, RENAMED.get(inner, inner)] = (*source, inner)
    moved[BEHAVIORS, name] = (name,)
    return behavior


def _put(values: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set the value at `path`; what is no mapping on the way there stays, to be refused."""
    *sections, last = path
    for one in sections:
        inner = values.get(one)
        if inner is not None and not isinstance(inner, dict):
            return
        values[one] = inner = {**(inner or {})}
        values = inner
    known = values.get(last)
    if isinstance(known, dict) and isinstance(value, dict):
        value = {**known, **value}
    values[last] = value


def _add_lessons(
    found: dict[str, Any],
    course: Any,
    *,
    behavior: str,
    path: KeyPath,
    moved: dict[KeyPath, KeyPath],
    notes: list[Diagnostic],
) -> None:
    """Add the parameters of one brain's old curriculum to those `found`, which stay as they are."""
    if not isinstance(course, dict) or not course.keys() >= set(COURSE):
        what = f"must have {', '.join(COURSE)} (got {shown_value(course)})"
        raise ConversionError(Diagnostic(path, what))
    thresholds, given = course["thresholds"], course["parameters"]
    if not isinstance(thresholds, list) or not isinstance(given, dict):
        raise ConversionError(Diagnostic(path, "must have a list of thresholds and parameters"))
    if unknown := [key for key in course if key not in COURSE_KEYS]:
        what = f"unknown key ({nearest_name(unknown[0], COURSE_KEYS)})"
        raise ConversionError(Diagnostic((*path, unknown[0]), what, about_key=True))
    for name, values in given.items():
        if name in found:
            what = f"is ignored: {name} has a sampler or other lessons, which go first"
            notes.append(Diagnostic((*path, "parameters", name), what, about_key=True))
            continue
        if not isinstance(values, list) or len(values) != len(thresholds) + 1:
            what = f"must hold {len(thresholds) + 1} values, one more than there are thresholds"
            raise ConversionError(Diagnostic((*path, "parameters", name), what))
        moved[SECTION, name] = (*path, "parameters", name)
        lessons = []
        for number, value in enumerate(values):
            here: KeyPath = (SECTION, name, "curriculum", number)
            moved[here] = moved[*here, "value"] = (*path, "parameters", name, number)
            lessons.append({"name": f"Lesson{number}", "value": value})
            if number == len(thresholds):
                break
            moved[*here, "completion_criteria"] = path
            moved[*here, "completion_criteria", "threshold"] = (*path, "thresholds", number)
            lessons[-1]["completion_criteria"] = {
                "measure": course["measure"],
                "behavior": behavior,
                "signal_smoothing": course.get("signal_smoothing", False),
                "min_lesson_length": course.get("min_lesson_length", 1),
                "threshold": thresholds[number],
            }
        found[name] = {"curriculum": lessons}


def _parameter(value: Any, path: KeyPath, moved: dict[KeyPath, KeyPath]) -> Any:
    """A parameter's `value` with its sampler and its lessons as they are written today."""
    if not isinstance(value, dict):
        return value
    kind = value.get("sampler-type", value.get("sampler_type"))
    if isinstance(kind, str) and "sampler_parameters" not in value:
        types = ("sampler-type", "sampler_type")
        drawn = {key: one for key, one in value.items() if key not in types}
        source = moved.get(path, path)
        moved[*path, "sampler_parameters"] = source
        return {"sampler_type": RENAMED.get(kind, kind), "sampler_parameters": drawn}
    lessons = value.get("curriculum")
    if not isinstance(lessons, list):
        return value
    today = []
    for number, lesson in enumerate(lessons):
        if isinstance(lesson, dict) and len(lesson) == 1:
            ((name, inner),) = lesson.items()
            if isinstance(inner, dict) and "value" in inner:
                moved[*path, "curriculum", number] = (*path, "curriculum", number, name)
                lesson = {"name": name, **inner}  # noqa: PLW2901
        if isinstance(lesson, dict) and type(lesson.get("name")) in (int, float):
            lesson = {**lesson, "name": str(lesson["name"])}  # noqa: PLW2901
        today.append(lesson)
    return {**value, "curriculum": today}
