"""Settings of which a key says whose they are: validated by the class of the entry it names.

    env: Annotated[WorldSettings, SettingsByName(WORLDS, default="arena")]

pydantic names the entry in the places of errors, as it does for members of a union.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

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

from aimbot_lab.foundation.errors import ConfigurationError, LabError, reason_and_place
from aimbot_lab.foundation.registry import Registry

BROKEN = "broken_entry"
"""The kind of pydantic's error for an entry that can't be loaded; its context has `key`, `what`."""


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
