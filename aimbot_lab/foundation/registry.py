"""Entries by name, and settings of which a key names the entry that validates them.

Entries are those of this package, and those that installed packages bring.

A package brings an entry by an entry point, whose name is the entry's. It is loaded when it is
asked for, so that a package that is broken, or slow to import, hurts only who names its entries.

    env: Annotated[WorldSettings, SettingsByName(WORLDS, default="arena")]

pydantic names the entry in the places of errors, as it does for members of a union.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Protocol, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import (
    CoreSchema,
    PydanticCustomError,
    PydanticKnownError,
    SchemaValidator,
    ValidationError,
    core_schema,
)

from aimbot_lab.foundation.errors import ConfigurationError, LabError, blamed, reason_and_place
from aimbot_lab.foundation.shown_text import one_line, shortened

BROKEN = "broken_entry"
"""The kind of pydantic's error for an entry that can't be loaded; its context has `key`, `what`."""


class Named(Protocol):
    """What every entry has: a name, and the class of its settings."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def settings(self) -> type[Any]:
        """A frozen pydantic dataclass."""


Entry = TypeVar("Entry", bound=Named)


@dataclass(frozen=True)
class Registry(Mapping[str, Entry], Generic[Entry]):
    """The entries of one kind by name; of installed packages the names, until one is asked for."""

    group: str  # of entry points
    noun: str  # what an entry is, for a person
    key: str  # of the settings, whose value is the name
    kind: type  # which all entries are of
    own: Mapping[str, Entry]  # of this package; no other may take their names
    base: type = object  # which the settings of all entries are derived from

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in installed_names(self.group) if name not in self.own)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in installed_names(self.group)

    def __getitem__(self, name: str) -> Entry:
        """The entry of that name; KeyError where there is none.

        Raises ConfigurationError, in one line, where the package that brings it is broken.
        """
        if name in self.own:
            return self.own[name]
        if name not in self:
            raise KeyError(name)
        loaded: Entry = _loaded(self.group, name, self.noun)
        what = _entry_fault(loaded, name, self.key, kind=self.kind, base=self.base)
        if what is not None:
            raise ConfigurationError(f"{self.shown(name)} {what}")
        return loaded

    def shown(self, name: str) -> str:
        """An entry for a person, with the place that brings it where a package does."""
        place = "" if name in self.own else f" of {_place(self.group, name)}"
        return f"the {self.noun} {name}{place}"

    def blamed(self, name: str, what: str) -> AbstractContextManager[None]:
        """Raise ConfigurationError, in one line, for what an entry of a package raises.

        `what` is what it does then, such as "can't be made:".
        """
        if name in self.own:
            return nullcontext()
        return blamed(f"{self.shown(name)} {what}", ConfigurationError)

    def loadable(self) -> tuple[Mapping[str, Entry], tuple[str, ...]]:
        """All entries but the broken ones, and a line for each of those."""
        found: dict[str, Entry] = {}
        faults: list[str] = []
        for name in self:
            try:
                found[name] = self[name]
            except ConfigurationError as error:
                faults += error.faults
        what = "an installed package brings one of that name, which is not used"
        taken = [name for name in installed_names(self.group) if name in self.own]
        return found, (*faults, *(f"the {self.noun} {name}: {what}" for name in taken))


def installed_names(group: str) -> tuple[str, ...]:
    """The names of the entry points of `group`; nothing is loaded."""
    return tuple(dict.fromkeys(entry.name for entry in _installed(group)))


@cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group)))


@cache
def _loaded(group: str, name: str, noun: str) -> Any:
    """The object of the entry point. Raises ConfigurationError, in one line, where it is broken."""
    found = [entry for entry in _installed(group) if entry.name == name]
    if len({entry.value for entry in found}) > 1:
        places = " and ".join(entry.value for entry in found)
        raise ConfigurationError(f"the {noun} {name} is brought by several packages: {places}")
    try:
        return found[0].load()
    except (Exception, SystemExit) as error:  # whatever a stranger's module raises
        where = f"the {noun} {name} of {found[0].value}"
        raise ConfigurationError(f"{where} can't be loaded: {reason_and_place(error)}") from error


def package_of(group: str, name: str) -> str:
    """The package whose entry point `name` of `group` is."""
    return _place(group, name).partition(":")[0].partition(".")[0]


def _place(group: str, name: str) -> str:
    return next(entry.value for entry in _installed(group) if entry.name == name)


def _entry_fault(entry: Any, name: str, key: str, *, kind: type, base: type) -> str | None:
    """What is wrong with what a package brings under `name`; None: nothing is."""
    if not isinstance(entry, kind) or getattr(entry, "name", None) != name:
        got = shortened(one_line(repr(entry)), 80)
        return f"must be a {kind.__name__} with that name (got {got})"
    settings: Any = getattr(entry, "settings", None)
    is_class = isinstance(settings, type) and is_dataclass(settings)
    if not is_class or not hasattr(settings, "__pydantic_fields__"):
        return "must have `settings`, a frozen pydantic dataclass"
    if not issubclass(settings, base):
        return f"must have settings derived from {base.__name__}"
    defaults = {field.name: field.default for field in fields(settings)}
    of_several = settings is getattr(kind, "settings", None) and key in defaults
    if defaults.get(key) != name and not of_several:
        return f"must have settings with a field `{key}` whose default is {name!r}"
    return None


@dataclass(frozen=True, eq=False)
class SettingsByName:
    """The annotation of such settings.

    `default` is meant where the key is left out. `judge` is the entry whose settings are to refuse
    a name that nothing has; without one it is refused here.
    """

    registry: Registry[Any]
    default: str
    judge: str | None = None

    def named(self, data: Any) -> Any:
        """The name in `data`, a mapping or settings; the default where it is neither."""
        key = self.registry.key
        if isinstance(data, Mapping):
            return data.get(key, self.default)
        return getattr(data, key, self.default)

    def settings(self, name: str) -> type:
        """The class of the settings of the entry `name`."""
        found: type = self.registry[name].settings
        return found

    def keys(self) -> tuple[str, ...]:
        """The keys that the settings of any entry may have."""
        found, _ = self.registry.loadable()
        return tuple(
            dict.fromkeys(field.name for one in found.values() for field in fields(one.settings))
        )

    def validate(self, data: Any) -> Any:
        """Settings of the entry that `data` names."""
        name = self.named(data)
        if not isinstance(name, str) or name not in self.registry:
            if self.judge is None:
                raise self._unknown(name)
            name = self.judge
        try:
            settings = self.settings(name)
        except ConfigurationError as error:
            context = {"key": self.registry.key, "what": str(error)}
            raise PydanticCustomError(BROKEN, "{what}", context) from error
        try:
            return _validator(settings, name).validate_python(data)
        except (ValidationError, LabError):
            raise
        except (Exception, SystemExit) as error:
            if name in self.registry.own:
                raise
            what = f"the settings of {self.registry.shown(name)} raised {reason_and_place(error)}"
            context = {"key": self.registry.key, "what": what}
            raise PydanticCustomError(BROKEN, "{what}", context) from error

    def _unknown(self, name: Any) -> PydanticKnownError:
        return PydanticKnownError(
            "union_tag_invalid",
            {
                "discriminator": repr(self.registry.key),
                "tag": str(name),
                "expected_tags": ", ".join(map(repr, self.registry)),
            },
        )

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """How pydantic validates them."""
        del source, handler
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Any of the settings that there are."""
        del schema
        found, _ = self.registry.loadable()
        classes = dict.fromkeys(one.settings for one in found.values())
        return handler(core_schema.union_schema([TypeAdapter(one).core_schema for one in classes]))


@cache
def _validator(settings: type, name: str) -> SchemaValidator:
    """What validates `settings`, and names them in the places of errors."""
    member = TypeAdapter(settings).core_schema
    return SchemaValidator(core_schema.tagged_union_schema({name: member}, lambda _: name))
