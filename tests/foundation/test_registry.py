"""What installed packages bring: loaded when it is asked for, and refused in one line if broken."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.registry import Registry
from aimbot_lab.foundation.settings import STRICT, dataclass

MINE = "things_of_a_package"
MODULE = """
from typing import Literal
from aimbot_lab.foundation.settings import STRICT, dataclass
from test_registry import Thing, ThingSettings


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Settings:
    kind: Literal["good"] = "good"


GOOD = Thing("good", Settings)
OTHER_NAME = Thing("another", Settings)
SETTINGS_OF_ANOTHER = Thing("mine", Settings)
NO_SETTINGS = Thing("none", int)
NO_THING = 7
"""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ThingSettings:
    kind: Literal["built_in"] = "built_in"


class Thing:
    def __init__(self, name: str, settings: type) -> None:
        self.name, self.settings = name, settings


Make = Callable[[str], Registry[Thing]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Make:
    """Makes a registry with the entry points that an installed package has of it."""
    group = f"things.{abs(hash(request.node.name))}"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{MINE}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.delitem(sys.modules, MINE, raising=False)

    def registry(entries: str, package: str = "things") -> Registry[Thing]:
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{entries}\n")
        own = MappingProxyType({"built_in": Thing("built_in", ThingSettings)})
        return Registry(group=group, noun="thing", key="kind", kind=Thing, own=own)

    return registry


def test_names_are_known_before_anything_is_loaded(make: Make) -> None:
    registry = make("good = things_of_a_package:GOOD")
    assert list(registry) == ["built_in", "good"]
    assert ("good" in registry, len(registry)) == (True, 2)
    assert registry["built_in"].name == "built_in"
    assert "things_of_a_package" not in sys.modules
    assert registry["good"].name == "good"
    assert "things_of_a_package" in sys.modules
    with pytest.raises(KeyError):
        registry["nothing"]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("gone = no_such:X", "can't be loaded: ModuleNotFoundError: No"),
        (f"gone = {MINE}:GONE", "can't be loaded: AttributeError: "),
        ("bad = ends_it:X", "can't be loaded: SystemExit: no ("),
        (f"good = {MINE}:NO_THING", "must be a Thing with that name (got 7)"),
        (f"good = {MINE}:OTHER_NAME", "must be a Thing with that name (got "),
        (f"none = {MINE}:NO_SETTINGS", "must have `settings`, a frozen pydantic dataclass"),
        (
            f"mine = {MINE}:SETTINGS_OF_ANOTHER",
            "must have settings with a field `kind` whose default is 'mine'",
        ),
    ],
)
def test_a_broken_entry_is_refused_in_one_line_and_hurts_no_other(
    make: Make, tmp_path: Path, entry: str, line: str
) -> None:
    (tmp_path / "ends_it.py").write_text("import sys\nsys.exit('no\\nlicence')\n")
    registry, (name, _, place) = make(entry), entry.partition(" = ")
    with pytest.raises(ConfigurationError) as refused:
        registry[name]
    assert str(refused.value).startswith(f"the thing {name} of {place} {line}")
    assert "\n" not in str(refused.value)
    found, faults = registry.loadable()
    assert (list(found), len(faults)) == (["built_in"], 1)


def test_settings_must_be_derived_from_those_that_all_have(make: Make) -> None:
    registry = replace(make("good = things_of_a_package:GOOD"), base=ThingSettings)
    with pytest.raises(ConfigurationError, match=r"derived from ThingSettings$"):
        registry["good"]


def test_no_package_takes_the_name_of_a_built_in_entry(make: Make) -> None:
    registry = make("built_in = things_of_a_package:GOOD")
    assert list(registry) == ["built_in"]
    assert registry["built_in"].settings is ThingSettings
    assert registry.loadable()[1] == (
        "the thing built_in: an installed package brings one of that name, which is not used",
    )


def test_a_name_that_two_packages_bring_is_refused(make: Make) -> None:
    make("good = things_of_a_package:GOOD")
    registry = make("good = other:GOOD", "others")
    with pytest.raises(ConfigurationError) as refused:
        registry["good"]
    assert str(refused.value) == (
        "the thing good is brought by several packages: other:GOOD and things_of_a_package:GOOD"
    )
