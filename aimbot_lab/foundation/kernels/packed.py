"""Kernels called again and again with the same arguments, which are handed over once.

Python hands an array to compiled code in some 40 nanoseconds, and a world's state has a hundred
of them: for a small batch more than a step takes. Here they stay in memory, in the form in which
compiled code holds them, and a call passes nothing but their address.
"""

import importlib
import struct
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import accumulate
from operator import getitem, is_
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
)
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype

COMPILED = not vars(numba.config)["DISABLE_JIT"]
WORD = 8  # bytes
# Typed as anything, because numba's stubs leave them out.
_typeof: Any = numba.typeof
_tuple_of: Any = types.Tuple
_array_of: Any = make_array
_fill_array: Any = populate_array
_lowers: Any = lower_builtin
_lowers_fields: Any = lower_getattr_generic


class Stored(types.Type):
    """A tuple of type `kind` in memory, known by its address, whose fields are read when named.

    Compiled code that is handed a tuple has all its numbers in hand, some thousand of a large one,
    in every function that passes it on; of one in memory it has one.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        known_by = f"{getattr(kind, 'instance_class', '')} {getattr(kind, 'fields', '')} {kind}"
        super().__init__(f"Stored({sha256(known_by.encode()).hexdigest()[:16]})")


@register_model(Stored)
class _StoredModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        base: Any = super()
        base.__init__(manager, kind, ir.IntType(8 * WORD))


def _left_there(kind: Any) -> Any:
    """The type of a value that is read from memory without the tuples in it."""
    return Stored(kind) if isinstance(kind, types.BaseTuple) else kind


def _item(builder: Any, address: Any, kind: Any) -> Any:
    """What is at `address`; no kernel changes it, so that it may be read once for a whole loop."""
    item = builder.load(builder.inttoptr(address, kind.as_pointer()))
    item.set_metadata("invariant.load", builder.module.add_metadata([]))
    return item


def _read(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    """The value of type `kind` at `address`."""
    if isinstance(kind, Stored):
        return address
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, _read_parts(context, builder, kind, address))
    if isinstance(kind, types.Array):
        word, data = ir.IntType(8 * WORD), context.get_data_type(kind.dtype).as_pointer()
        count = 2 * kind.ndim
        place, *sizes = [
            _item(builder, _moved(builder, address, k * WORD), word if k else data)
            for k in range(1 + count)
        ]
        array = _array_of(kind)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        shape, strides = sizes[: kind.ndim], sizes[kind.ndim :]
        _fill_array(array, place, shape, strides, size, None)
        return array._getvalue()
    item = _item(builder, address, context.get_data_type(kind))
    return context.data_model_manager[kind].from_data(builder, item)


def _read_parts(
    context: Any, builder: Any, kind: Any, address: Any, found: Any = None
) -> list[Any]:
    """The parts of a tuple of type `kind` at `address`, of the types in `found` where given."""
    return [
        _read(context, builder, part, _moved(builder, address, offset))
        for part, offset in zip(found or kind, _offsets(kind), strict=True)
    ]


def _moved(builder: Any, address: Any, offset: int) -> Any:
    return builder.add(address, ir.Constant(ir.IntType(8 * WORD), offset))


def _offsets(kind: Any) -> list[int]:
    """Where each part of a tuple begins, in bytes."""
    return [0, *accumulate(map(needed_bytes, kind))][:-1]


@intrinsic
def _unpack(_typing: Any, address: Any, kind: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _read(context, builder, signature.return_type, arguments[0])

    return kind.instance_type(address, kind), code


@intrinsic
def _stored(_typing: Any, address: Any, kind: Any) -> Any:
    found = _tuple_of([_left_there(part) for part in kind.instance_type])

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        parts = _read_parts(context, builder, kind.instance_type, arguments[0], found)
        return context.make_tuple(builder, found, parts)

    return found(address, kind), code


@intrinsic
def _stored_like(_typing: Any, address: Any, example: Any) -> Any:
    def code(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return example(address, example), code


@infer_getattr
class _StoredFields(AttributeTemplate):
    key = Stored

    def generic_resolve(self, stored: Any, name: str) -> Any:  # type: ignore[override]
        fields = getattr(stored.kind, "fields", ())
        return _left_there(stored.kind[fields.index(name)]) if name in fields else None


def _field(context: Any, builder: Any, stored: Any, address: Any, name: str) -> Any:
    index = stored.kind.fields.index(name)
    at = _moved(builder, address, _offsets(stored.kind)[index])
    return _read(context, builder, _left_there(stored.kind[index]), at)


@type_callable(getitem)
def _type_of_part(_context: Any) -> Any:
    def typed(stored: Any, _index: Any) -> Any:
        alike = isinstance(stored, Stored) and hasattr(stored.kind, "dtype")
        return _left_there(stored.kind.dtype) if alike else None

    return typed


def _part(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    (stored, kind), (address, index) = signature.args, arguments
    number = context.cast(builder, index, kind, types.intp)
    step = ir.Constant(ir.IntType(8 * WORD), needed_bytes(stored.kind.dtype))
    at = builder.add(address, builder.mul(number, step))
    return _read(context, builder, signature.return_type, at)


_lowers_fields(Stored)(_field)
_lowers(getitem, Stored, types.Integer)(_part)


def _themselves(arguments: Any, _kind: Any) -> Any:
    return arguments


unpacked: Any = _unpack if COMPILED else _themselves
"""unpacked(address, kind): the arguments in the memory of a `PackedCall`."""
stored: Any = _stored if COMPILED else _themselves
"""stored(address, kind): the same, but of tuples among them only where they are.

Fields and items of such a tuple are read in code as those of any other; what is a tuple again stays
where it is, too. An item by its number needs parts of one type."""
stored_like: Any = _stored_like if COMPILED else _themselves
"""stored_like(table.places[k], example): value k of a `PackedTable`, left where it is."""


def needed_bytes(kind: Any) -> int:
    """Bytes that a value of type `kind` takes.

    Raises TypeError for what is no array, number or tuple of these.
    """
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return sum([needed_bytes(part) for part in parts])
    if isinstance(kind, types.Array):  # where it is, its shape and strides
        return WORD * (1 + 2 * kind.ndim)
    if isinstance(kind, types.Number | types.Boolean):
        return WORD
    raise TypeError(f"no array, number or tuple of these: {kind}")


def _bytes_of(value: Any, kind: Any) -> bytes:
    """`value` of type `kind` as `unpacked` reads it."""
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return b"".join(map(_bytes_of, value, parts))
    if isinstance(kind, types.Array):
        return struct.pack(f"{1 + 2 * kind.ndim}q", value.ctypes.data, *value.shape, *value.strides)
    return np.array(value, as_dtype(kind)).tobytes().ljust(WORD, b"\0")


class Packed:
    """A kernel for one caller, whose arguments have the same types in every call.

    `work` takes (address, kind) and works on `unpacked(address, kind)`, or `stored(address, kind)`.
    Types are looked at once: later arguments of other types would be read as what they are not, and
    arrays that may not be written would be.
    """

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = self._run = work
        self._kind: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, perhaps in another process, looks for itself."""
        return _packed, (self._work.__module__, self._work.__name__)

    def call_with(self, *arguments: Any) -> "PackedCall":
        """What runs the kernel on `arguments`: arrays, numbers and tuples of these.

        Numbers and the places of arrays are read now, what is in the arrays in each call.
        """
        if self._kind is None:
            self._look_at(arguments)
        return PackedCall(self, arguments)

    def _look_at(self, arguments: tuple[Any, ...]) -> None:
        self._kind = kind = _typeof(arguments)
        if COMPILED:
            needed_bytes(kind)
            work: Any = self._work
            self._run = work.compile((numba.int64, _typeof(kind)))


class PackedCall:
    """A kernel together with what it works on."""

    def __init__(self, packed: Packed, arguments: tuple[Any, ...]) -> None:
        self._packed, self.arguments = packed, arguments
        self._run, self._kind = packed._run, packed._kind
        self._address: Any = arguments
        if COMPILED:
            self._memory = np.frombuffer(_bytes_of(arguments, self._kind), np.uint8)
            self._address = self._memory.ctypes.data

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
    """Values of one type, of which a kernel takes one by its number."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)  # whose arrays must live
        self.places: Any = self._values
        if COMPILED:
            kind = _typeof(self._values[0])
            data = b"".join([_bytes_of(value, kind) for value in self._values])
            self._memory = np.frombuffer(data, np.uint8)
            first, step = self._memory.ctypes.data, needed_bytes(kind)
            self.places = first + step * np.arange(len(self._values), dtype=np.int64)


def _packed(module: str, work: str) -> Packed:
    return Packed(getattr(importlib.import_module(module), work))


def _call_with(packed: Packed, arguments: tuple[Any, ...]) -> PackedCall:
    return packed.call_with(*arguments)
