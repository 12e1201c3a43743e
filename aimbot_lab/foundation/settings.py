"""How settings are declared: frozen pydantic dataclasses that check themselves.

    @dataclass(frozen=True, kw_only=True, config=STRICT)
    class GunSettings:
        cooldown: Annotated[Float, Ge(0)] = 0.3
        '''Seconds between two shots.'''

The docstring under a field becomes its description in the JSON Schema. `Float`, `Int` and `Bool`
take numbers as they are: no text, no yes/no for a number, no 1.5 for a whole number.
"""

from typing import Annotated, TypeGuard

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BeforeValidator, ConfigDict, Strict
from pydantic.dataclasses import dataclass

__all__ = [
    "MAX_DIGITS",
    "STRICT",
    "Bool",
    "Float",
    "Ge",
    "Gt",
    "Int",
    "Le",
    "Lt",
    "dataclass",
    "is_whole",
]

MAX_DIGITS = 18
"""Of a whole number in a file: as many as a signed 64-bit integer surely holds."""


def is_whole(value: object) -> TypeGuard[float]:
    """Whether `value` is a float that means a whole number, such as `5e6`."""
    return isinstance(value, float) and value.is_integer() and abs(value) < 10**MAX_DIGITS


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and not is_whole(value):
        raise ValueError(f"must be a number of at most {MAX_DIGITS} digits (got {value})")
    return int(value) if is_whole(value) else value


STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

Float = Annotated[float, Strict()]
Int = Annotated[int, Strict(), BeforeValidator(_whole)]
Bool = Annotated[bool, Strict()]
