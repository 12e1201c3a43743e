"""Eight numbers in one vector register, for loops that a compiler would leave scalar.

A loop becomes vector code only where the compiler can show that no store changes a later load and
no index is below 0; of arrays that come from outside a kernel it seldom can. Here each operation
is one on all lanes by its definition, with strict IEEE arithmetic: the bits are those of a loop.
Where kernels run as plain Python, lanes are arrays of numpy.
"""

import operator
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model, type_callable

LANES = 8
lower_builtin: Any = numba.extending.lower_builtin  # which has no types
Array = np.ndarray[Any, np.dtype[Any]]


class Lanes(types.Type):
    """The type of LANES numbers (or truths) of one scalar type."""

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar
        super().__init__(name=f"Lanes({scalar})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """LANES numbers as LLVM's vector."""

    def __init__(self, managers: Any, kind: Any) -> None:
        scalar = managers.lookup(kind.scalar).get_value_type()
        set_up: Any = super().__init__
        set_up(managers, kind, ir.VectorType(scalar, LANES))


MASK = Lanes(types.boolean)


def _place(context: Any, builder: Any, signature: Any, values: Any) -> tuple[Any, int]:
    """Pointer to the first of the lanes, and how it is aligned in bytes."""
    array = signature.args[0]
    view = context.make_array(array)(context, builder, values[0])
    item: Any = cgutils.get_item_pointer
    pointer = item(context, builder, array, view, list(values[1:3]), wraparound=False)
    vector = ir.VectorType(context.get_value_type(array.dtype), LANES)
    return builder.bitcast(pointer, vector.as_pointer()), array.dtype.bitwidth // 8


@intrinsic
def _load(typing: Any, array: Any, row: Any, first: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer, alignment = _place(context, builder, signature, values)
        return builder.load(pointer, align=alignment)

    return Lanes(array.dtype)(array, types.intp, types.intp), generate


@intrinsic
def _store(typing: Any, array: Any, row: Any, first: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer, alignment = _place(context, builder, signature, values)
        builder.store(values[3], pointer, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, Lanes(array.dtype)), generate


@intrinsic
def _spread(typing: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = context.get_value_type(signature.return_type)
        first = builder.insert_element(
            ir.Constant(vector, ir.Undefined), values[0], ir.Constant(ir.IntType(32), 0)
        )
        order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), order)

    return Lanes(number)(number), generate


@intrinsic
def _where(typing: Any, mask: Any, chosen: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(*values)

    return chosen(MASK, chosen, chosen), generate


def _call(builder: Any, name: str, kind: Lanes, lanes: Any) -> Any:
    """LLVM's own function of that name, lane by lane."""
    name = f"llvm.{name}.v{LANES}f{kind.scalar.bitwidth}"
    declared: Any = cgutils.get_or_insert_function
    function = ir.FunctionType(lanes.type, [lanes.type])
    return builder.call(declared(builder.module, function, name), [lanes])


@intrinsic
def _root(typing: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _call(builder, "sqrt", signature.return_type, values[0])

    return lanes(lanes), generate


@intrinsic
def _bits_of(typing: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits = builder.bitcast(values[0], ir.IntType(LANES))
        return builder.zext(bits, context.get_value_type(types.intp))

    return types.intp(MASK), generate


def _combine(operation: Any, result: Any, generate: Any) -> None:
    """Let kernels write `operation` between two lanes of one type; `result` None is that type."""

    @type_callable(operation)
    def kind(context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            if isinstance(left, Lanes) and left == right:
                return result or left
            return None

        return typer

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return generate(builder, signature.args[0].scalar, *values)

    lower_builtin(operation, Lanes, Lanes)(lower)


def _compared(sign: str) -> Any:
    def generate(builder: Any, scalar: Any, left: Any, right: Any) -> Any:
        if isinstance(scalar, types.Float):
            return builder.fcmp_ordered(sign, left, right)
        return builder.icmp_signed(sign, left, right)

    return generate


for _operation, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _combine(_operation, None, lambda b, _, x, y, name=_name: getattr(b, name)(x, y))
_combine(operator.and_, None, lambda b, _, x, y: b.and_(x, y))
for _operation, _name in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
):
    _combine(_operation, MASK, _compared(_name))


@type_callable(abs)
def _absolute_type(context: Any) -> Any:
    def typer(lanes: Any) -> Any:
        return lanes if isinstance(lanes, Lanes) else None

    return typer


def _absolute(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _call(builder, "fabs", signature.return_type, values[0])


lower_builtin(abs, Lanes)(_absolute)


def _plain_load(array: Array, row: int, first: int) -> Array:
    return array[row, first : first + LANES].copy()


def _plain_store(array: Array, row: int, first: int, lanes: Array) -> None:
    array[row, first : first + LANES] = lanes


def _plain_spread(number: Any) -> Array:
    return np.repeat(number, LANES)


def _plain_bits(mask: Array) -> int:
    return int(np.packbits(mask, bitorder="little")[0])


_COMPILED = not vars(numba.config)["DISABLE_JIT"]
load: Any = _load if _COMPILED else _plain_load
"""`array[row, first : first + LANES]` of a contiguous array [rows, columns]."""
store: Any = _store if _COMPILED else _plain_store
"""Set `array[row, first : first + LANES]` to lanes of its type."""
spread: Any = _spread if _COMPILED else _plain_spread
"""One number in all lanes."""
where: Any = _where if _COMPILED else np.where
"""The second lanes where the mask is true, the third elsewhere; both are computed."""
bits_of: Any = _bits_of if _COMPILED else _plain_bits
"""A number whose bit k is set where the mask is true in lane k."""
root: Any = _root if _COMPILED else np.sqrt
"""Square roots."""
