"""How settings are declared: frozen pydantic dataclasses that check themselves.

    @dataclass(frozen=True, kw_only=True, config=STRICT)
    class GunSettings:
        cooldown: Annotated[Float, Ge(0)] = 0.3
        '''Seconds between two shots.'''

The docstring under a field becomes its description in the JSON Schema. `Float`, `Int` and `Bool`
take numbers as they are: no text, no yes/no for a number, no 1.5 for a whole number.
"""

from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BeforeValidator, ConfigDict, Strict
from pydantic.dataclasses import dataclass

__all__ = ["STRICT", "Bool", "Float", "Ge", "Gt", "Int", "Le", "Lt", "dataclass"]


def _whole(value: object) -> object:
    """`5e6` as a person means it: a whole number, though YAML reads a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

Float = Annotated[float, Strict()]
Int = Annotated[int, Strict(), BeforeValidator(_whole)]
Bool = Annotated[bool, Strict()]
