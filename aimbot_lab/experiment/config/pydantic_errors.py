"""What pydantic refused, as faults at the keys of the file."""

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.experiment.config.error_messages import describe, describe_tag
from aimbot_lab.experiment.config.key_path import KeyPath
from aimbot_lab.experiment.config.keys import (
    advice,
    keys_at,
    kind_of_another_key,
    names_a_kind,
    packages_add_to,
    without_tags,
)
from aimbot_lab.foundation.settings_by_name import BROKEN

UNKNOWN = "unexpected_keyword_argument"


def section_diagnostics(refusal: ValidationError, root: type) -> Iterator[Diagnostic]:
    """The faults for which pydantic refused data of the class `root`."""
    errors = refusal.errors(include_url=False)
    places = [error["loc"] for error in errors if error["type"] != UNKNOWN]
    unnamed = {place[:-1] for place in places if names_a_kind(root, place)}
    for error in errors:
        if error["type"] == UNKNOWN and error["loc"][:-1] in unnamed:
            continue  # whose keys they are is not known
        if error["type"].startswith("union_tag_"):
            yield from _kind_diagnostics(error, root)
        elif error["type"] == BROKEN:
            path = without_tags(root, error["loc"])
            yield Diagnostic((*path, error["ctx"]["key"]), error["ctx"]["what"])
        elif not _is_echo(error):
            for fault in _diagnostics(error, root):
                yield fault._replace(path=without_tags(root, fault.path))


def _is_echo(error: ErrorDetails) -> bool:
    """Whether other faults say it better.

    They do where the file's class itself raised `error`: those between the sections also say
    where it is. And where a list is called too short only because its items are wrong.
    """
    if error["type"] == "too_short":
        return bool(len(error["input"]) >= error["ctx"]["min_length"])
    return error["type"] == "value_error" and not error["loc"]


def _kind_diagnostics(error: ErrorDetails, root: type) -> Iterator[Diagnostic]:
    """The faults of a mapping that may be of several kinds and does not say which it is."""
    path = without_tags(root, error["loc"])
    valid = keys_at(root, error["loc"])
    key, what = describe_tag(error)
    yield Diagnostic((*path, key), what)
    open_ended = packages_add_to(root, error["loc"])
    for other in error["input"]:
        if other not in valid and not open_ended:  # whose keys they are is not known
            yield Diagnostic(
                (*path, other), f"unknown key ({advice(other, valid)})", about_key=True
            )


def _diagnostics(error: ErrorDetails, root: type) -> Iterator[Diagnostic]:
    """The fault of `error`; several where a class refused its values in several lines."""
    path = error["loc"]
    what = describe(error)
    if error["type"] == UNKNOWN:
        valid, key = keys_at(root, path[:-1]), str(path[-1])
        of = kind_of_another_key(root, path)
        yield Diagnostic(path, f"{what}{of} ({advice(key, valid)})", about_key=True)
    elif error["type"] == "value_error":
        yield from (_value_diagnostic(path, line, root) for line in what.splitlines())
    else:
        yield Diagnostic(path, what)


def _value_diagnostic(path: KeyPath, what: str, root: type) -> Diagnostic:
    """The fault of a section, at the key that its message begins with if it does."""
    word, _, rest = what.partition(" ")
    *sections, key = word.split(".")
    if key in keys_at(root, (*path, *sections)):
        return Diagnostic((*path, *sections, key), rest)
    return Diagnostic(path, what)
