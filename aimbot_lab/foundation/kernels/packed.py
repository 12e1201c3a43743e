"""Kernels called again and again with the same arguments, which are handed over once.

Python hands an array to compiled code in some 40 nanoseconds, and a world's state has a hundred
of them: for a small batch more than a step takes. Here they stay in memory, in the form in which
compiled code holds them, and a call passes nothing but their address.
"""

import importlib
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

COMPILED = not vars(numba.config)["DISABLE_JIT"]
WORD = 8  # bytes
_typeof: Any = numba.typeof  # numba's stubs do not type it


@intrinsic
def _pack(_typing: Any, value: Any, address: Any) -> Any:
    """Write `value` to the memory at `address`."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = context.get_data_type(value).as_pointer()
        memory = builder.inttoptr(arguments[1], pointer)
        context.pack_value(builder, value, arguments[0], memory)
        return context.get_dummy_value()

    return numba.void(value, address), code


@intrinsic
def _unpack(_typing: Any, address: Any, kind: Any) -> Any:
    """The value of type `kind` in the memory at `address`."""
    value = kind.instance_type

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = context.get_data_type(value).as_pointer()
        return context.unpack_value(builder, value, builder.inttoptr(arguments[0], pointer))

    return value(address, kind), code


@intrinsic
def _unpack_like(_typing: Any, address: Any, example: Any) -> Any:
    """The value in the memory at `address`, which is of the type of `example`."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = context.get_data_type(example).as_pointer()
        return context.unpack_value(builder, example, builder.inttoptr(arguments[0], pointer))

    return example(address, example), code


def _themselves(arguments: Any, _kind: Any) -> Any:
    return arguments


pack: Any = _pack
unpacked: Any = _unpack if COMPILED else _themselves
unpacked_like: Any = _unpack_like if COMPILED else _themselves
"""unpacked_like(table.places[k], example): value k of a `PackedTable`, in a kernel."""


def needed_bytes(kind: Any) -> int:
    """Bytes that a value of type `kind` takes at most (numba's own answer takes half a second).

    Raises TypeError for what is no array, number or tuple of these.
    """
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return sum([needed_bytes(part) for part in parts])
    if isinstance(kind, types.Array):  # two objects, two sizes, the address; shape and strides
        return WORD * (5 + 2 * kind.ndim)
    if isinstance(kind, types.Number | types.Boolean):
        return WORD
    raise TypeError(f"no array, number or tuple of these: {kind}")


class Packed:
    """A kernel for one caller, whose arguments have the same types in every call.

    Two kernels of the caller's own module (numba keeps compiled code by module): `keep` takes
    (arguments, address) and does no more than `pack(arguments, address)`, `work` takes (address,
    kind) and works on `unpacked(address, kind)`. Types are looked at once: later arguments of
    other types would be read as what they are not, and arrays that may not be written would be.
    """

    def __init__(self, keep: Callable[..., Any], work: Callable[..., Any]) -> None:
        self._keep, self._work = keep, work
        self._kind: Any = None
        self._size = 0
        self._store, self._run = keep, work

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, perhaps in another process, looks for itself."""
        return _packed, (self._work.__module__, self._keep.__name__, self._work.__name__)

    def call_with(self, *arguments: Any) -> "PackedCall":
        """What runs the kernel on `arguments`: arrays, numbers and tuples of these.

        Numbers and the places of arrays are read now, what is in the arrays in each call.
        """
        if self._kind is None:
            self._look_at(arguments)
        return PackedCall(self, arguments)

    def _look_at(self, arguments: tuple[Any, ...]) -> None:
        self._kind = _typeof(arguments)
        if not COMPILED:
            return
        self._size = needed_bytes(self._kind)
        keep: Any = self._keep
        work: Any = self._work
        self._store = keep.compile((self._kind, numba.int64))
        self._run = work.compile((numba.int64, _typeof(self._kind)))


class PackedCall:
    """A kernel together with what it works on."""

    def __init__(self, packed: Packed, arguments: tuple[Any, ...]) -> None:
        self._packed, self.arguments = packed, arguments
        self._run, self._kind = packed._run, packed._kind
        self._address: Any = arguments
        if COMPILED:
            self._memory = np.zeros(packed._size, np.uint8)
            self._address = self._memory.ctypes.data
            packed._store(arguments, self._address)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is for the copies of the arguments, and looks at these itself."""
        return _call_with, (self._packed, self.arguments)

    def __call__(self) -> None:
        """Run the kernel."""
        self._run(self._address, self._kind)


class RepeatedCall:
    """A kernel for a caller whose arguments are mostly the same objects as the last time."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._last: PackedCall | None = None

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel on `arguments`, which are handed over where one is another object."""
        last = self._last
        if last is None or not all(map(is_, last.arguments, arguments)):
            last = self._last = self._packed.call_with(*arguments)
        last()


class PackedTable:
    """Values of one type, of which a kernel takes one by its number.

    `keep` is a kernel that takes (a value, address) and does no more than `pack(value, address)`.
    """

    def __init__(self, keep: Callable[..., Any], values: Sequence[Any]) -> None:
        self._values = tuple(values)  # whose arrays must live
        self.places: Any = self._values
        if COMPILED:
            kind = _typeof(self._values[0])
            compiled: Any = keep
            store = compiled.compile((kind, numba.int64))
            self._memory = np.zeros((len(self._values), needed_bytes(kind)), np.uint8)
            first, step = self._memory.ctypes.data, self._memory.strides[0]
            self.places = first + step * np.arange(len(self._values), dtype=np.int64)
            for value, place in zip(self._values, self.places.tolist(), strict=True):
                store(value, place)


def _packed(module: str, keep: str, work: str) -> Packed:
    home = importlib.import_module(module)
    return Packed(getattr(home, keep), getattr(home, work))


def _call_with(packed: Packed, arguments: tuple[Any, ...]) -> PackedCall:
    return packed.call_with(*arguments)
