"""Arithmetic on many numbers at once: vectors, exponentials and products of matrices.

**Vectors.** A loop becomes vector code only where the compiler can show that no store changes a
later load and no index is below 0; of arrays that come from outside a kernel it seldom can. Here
each operation is one on all eight lanes of a register by its definition, with strict IEEE
arithmetic: the bits are those of a loop. Where kernels run as plain Python, lanes are arrays of
numpy.

**exp, log and tanh** in single precision are free of calls and branches, so that a loop over them
is done several elements at a time, which one over `math.exp` is not. Relative errors are below
2e-7.

**Products of matrices.** A BLAS takes its factors as they come and copies them into order first. At
the sizes of a small network that, and its way through the interpreter, cost a third of the time.
Here the columns of the right factor and of the product come in whole registers, which callers see
to by `whole_lanes`; only lines of the right factor that lie too far apart for a core's first cache
are copied. Sums run in one order, whatever the sizes: an element does not depend on what is
computed beside it.
"""

import operator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model, type_callable

from aimbot_lab.foundation.kernels.jit import called, inlined, kernel

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


# Adding this rounds to a whole number n, which the lowest bits of the sum then hold.
ROUNDING = np.float32(1.5 * 2**23)
PER_LOG_2 = np.float32(1.4426950408889634)
# log 2 in two parts, of which the first has few bits: its multiples are exact.
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693359375), np.float32(0.6931471805599453 - 0.693359375)
MIN_EXPONENT = np.float32(-87.0)  # exp of less counts as 0
MAX_EXPONENT = np.float32(88.3)
INFINITE = np.float32(np.inf)
MOST = np.float32(20.0)  # tanh of half of it is 1 in single precision
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
MIN_MANTISSA_BITS = 0x3F3504F3  # of the square root of 1/2
S3, S5, S7, S9 = (np.float32(2.0 / k) for k in (3, 5, 7, 9))
T2, T3, T4, T5, T6, T7 = (np.float32(1.0 / f) for f in (2, 6, 24, 120, 720, 5040))


@intrinsic
def _power_of_bits(typing: Any, rounded: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.bitcast(values[0], word)
        exponent = builder.shl(builder.add(bits, word(127)), word(23))
        return builder.bitcast(exponent, ir.FloatType())

    return types.float32(types.float32), generate


@intrinsic
def _split_of_bits(typing: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.bitcast(values[0], word)
        over_least = builder.sub(bits, word(MIN_MANTISSA_BITS))
        exponent = builder.ashr(over_least, word(23))
        mantissa = builder.sub(bits, builder.shl(exponent, word(23)))
        parts = builder.sitofp(exponent, ir.FloatType()), builder.bitcast(mantissa, ir.FloatType())
        return context.make_tuple(builder, signature.return_type, parts)

    pair: Any = types.UniTuple
    return pair(types.float32, 2)(types.float32), generate


def _plain_split(x: np.float32) -> tuple[np.float32, np.float32]:
    mantissa, exponent = np.frexp(x)
    if mantissa < np.sqrt(0.5):
        mantissa, exponent = mantissa + mantissa, exponent - 1
    return np.float32(exponent), np.float32(mantissa)


def _plain_power(rounded: np.float32) -> np.float32:
    return np.float32(2.0) ** (rounded - ROUNDING)


_power: Any = _power_of_bits if _COMPILED else _plain_power  # 2**n of n + ROUNDING
_halve: Any = _split_of_bits if _COMPILED else _plain_split  # (n, m): 2**n m, 1/2 <= m**2 < 2


@inlined
def _split(x: np.float32) -> tuple[np.float32, np.float32]:
    """(2**n, exp(r) - 1) with x = n log 2 + r and |r| <= log(2) / 2; r's by Taylor's series."""
    rounded = x * PER_LOG_2 + ROUNDING
    n = rounded - ROUNDING
    r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW
    series = T2 + r * (T3 + r * (T4 + r * (T5 + r * (T6 + r * T7))))
    return _power(rounded), r + r * r * series


@inlined
def exp(x: np.float32) -> np.float32:
    """e**x for x <= 88; exactly 0 for x < -87."""
    power, over_one = _split(max(x, MIN_EXPONENT))
    value = power + power * over_one
    return ZERO if x < MIN_EXPONENT else value


@inlined
def any_exp(x: np.float32) -> np.float32:
    """e**x for every x: infinite from 88.3 on, a little before single precision ends."""
    value = exp(MAX_EXPONENT if x > MAX_EXPONENT else x)
    return INFINITE if x > MAX_EXPONENT else value


@inlined
def log(x: np.float32) -> np.float32:
    """The natural logarithm of a normal positive number, log m + n log 2.

    log m = 2 artanh(s) with s = (m - 1) / (m + 1), by its series. The absolute error is below
    1e-7 for 1/2 <= x <= 2, the relative one elsewhere.
    """
    n, m = _halve(x)
    s = (m - ONE) / (m + ONE)
    square = s * s
    series = square * (S3 + square * (S5 + square * (S7 + square * S9)))
    value: np.float32 = n * LOG_2_HIGH + (n * LOG_2_LOW + (s * series + (s + s)))
    return value


@inlined
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, (e**2x - 1) / (e**2x + 1)."""
    power, over_one = _split(min(max(x + x, -MOST), MOST))
    less_one = (power - ONE) + power * over_one
    return less_one / (less_one + TWO)


Floats = npt.NDArray[np.float32]
REGISTER_LANES = 16  # numbers in a register, or in several where these are smaller
ITEM = 4  # bytes
_FLOAT, _WORD, _INDEX = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_LINE = ir.VectorType(_FLOAT, REGISTER_LANES)
# Typed as anything, because these have no annotations and mypy asks for some where they are called.
_new_cell: Any = cgutils.alloca_once_value
_new_cells: Any = cgutils.alloca_once
_parts_of: Any = cgutils.unpack_tuple
_for_range: Any = cgutils.for_range
_declared: Any = cgutils.get_or_insert_function


def whole_lanes(count: int) -> int:
    """The least multiple of REGISTER_LANES that is at least `count`."""
    return -(-count // REGISTER_LANES) * REGISTER_LANES


def _line_at(builder: Any, address: Any) -> Any:
    """REGISTER_LANES numbers from `address` on."""
    line = builder.load(builder.inttoptr(address, _LINE.as_pointer()))
    line.align = ITEM
    return line


def _repeated(builder: Any, address: Any) -> Any:
    """The number at `address` in all lanes."""
    nothing = ir.Constant(_LINE, ir.Undefined)
    number = builder.load(builder.inttoptr(address, _FLOAT.as_pointer()))
    line = builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
    places = ir.Constant(ir.VectorType(_INDEX, REGISTER_LANES), [0] * REGISTER_LANES)
    return builder.shuffle_vector(line, nothing, places)


def _added_product(builder: Any, one: Any, two: Any, cell: Any) -> None:
    """Add `one` times `two` to the line in `cell`, rounded once where the processor can."""
    kind = ir.FunctionType(_LINE, [_LINE] * 3)
    function = _declared(builder.module, kind, f"llvm.fmuladd.v{REGISTER_LANES}f32")
    builder.store(builder.call(function, [one, two, builder.load(cell)]), cell)


def _tile(height: int) -> Any:
    """tile(places, steps, count, fresh): `height` rows and REGISTER_LANES columns of a product.

    `places`: of the left factor's first row, of the right's first column, of the result. `steps`
    in bytes: of the left from row to row and from column to column, of the others from row to row.
    Unless `fresh`, what the result holds is added to.
    """

    @intrinsic
    def tile(typing: Any, places: Any, steps: Any, count: Any, fresh: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            left, right, place = _parts_of(builder, values[0])
            by_row, by_column, right_step, step = _parts_of(builder, values[1])
            zero, sums, at = ir.Constant(_LINE, None), [], place
            for _ in range(height):
                before = builder.select(values[3], zero, _line_at(builder, at))
                sums.append(_new_cell(builder, before))
                at = builder.add(at, step)
            at_left, at_right = _new_cell(builder, left), _new_cell(builder, right)
            with _for_range(builder, values[2]):
                address = builder.load(at_left)
                builder.store(builder.add(address, by_column), at_left)
                line = _line_at(builder, builder.load(at_right))
                builder.store(builder.add(builder.load(at_right), right_step), at_right)
                for cell in sums:
                    _added_product(builder, _repeated(builder, address), line, cell)
                    address = builder.add(address, by_row)
            for cell in sums:
                pointer = builder.inttoptr(place, _LINE.as_pointer())
                builder.store(builder.load(cell), pointer).align = ITEM
                place = builder.add(place, step)
            return context.get_dummy_value()

        return types.void(places, steps, count, fresh), generate

    return tile


@intrinsic
def _room_of_panel(typing: Any) -> Any:
    """Address of DEEPEST lines on the stack."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        room = _new_cells(builder, _LINE, size=DEEPEST)
        room.align = ITEM * REGISTER_LANES
        return builder.ptrtoint(room, _WORD)

    return types.intp(), generate


@intrinsic
def _copied_lines(typing: Any, place: Any, step: Any, count: Any, panel: Any) -> Any:
    """Copy `count` lines, `step` bytes apart from `place` on, side by side to `panel`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source, target = _new_cell(builder, values[0]), _new_cell(builder, values[3])
        with _for_range(builder, values[2]):
            address, out = builder.load(source), builder.load(target)
            line = _line_at(builder, address)
            builder.store(line, builder.inttoptr(out, _LINE.as_pointer())).align = ITEM
            builder.store(builder.add(address, values[1]), source)
            builder.store(builder.add(out, ir.Constant(_WORD, ITEM * REGISTER_LANES)), target)
        return context.get_dummy_value()

    return types.void(place, step, count, panel), generate


@intrinsic
def _dot_of_lines(typing: Any, places: Any, count: Any) -> Any:
    """Sum of the products of `count` pairs of lines that lie side by side at `places`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        cells = [_new_cell(builder, place) for place in _parts_of(builder, values[0])]
        total = _new_cell(builder, ir.Constant(_LINE, None))
        with _for_range(builder, values[1]):
            addresses = [builder.load(cell) for cell in cells]
            one, two = (_line_at(builder, address) for address in addresses)
            _added_product(builder, one, two, total)
            for cell, address in zip(cells, addresses, strict=True):
                builder.store(builder.add(address, ir.Constant(_WORD, ITEM * REGISTER_LANES)), cell)
        line, lanes = builder.load(total), REGISTER_LANES
        while lanes > 1:
            lanes //= 2
            halves = [range(lanes), range(lanes, 2 * lanes)]
            places = [ir.Constant(ir.VectorType(_INDEX, lanes), [*half]) for half in halves]
            line = builder.fadd(*(builder.shuffle_vector(line, line, half) for half in places))
        return builder.extract_element(line, ir.Constant(_INDEX, 0))

    return types.float32(places, count), generate


@intrinsic
def _add_lines(typing: Any, places: Any, factor: Any, count: Any) -> Any:
    """Add to `count` lines at the second of `places` those at the first, times `factor`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        cells = [_new_cell(builder, place) for place in _parts_of(builder, values[0])]
        nothing = ir.Constant(_LINE, ir.Undefined)
        number = builder.insert_element(nothing, values[1], ir.Constant(_INDEX, 0))
        alike = ir.Constant(ir.VectorType(_INDEX, REGISTER_LANES), [0] * REGISTER_LANES)
        factors = builder.shuffle_vector(number, nothing, alike)
        with _for_range(builder, values[2]):
            addresses = [builder.load(cell) for cell in cells]
            line, total = (_line_at(builder, address) for address in addresses)
            kind = ir.FunctionType(_LINE, [_LINE] * 3)
            function = _declared(builder.module, kind, f"llvm.fmuladd.v{REGISTER_LANES}f32")
            pointer = builder.inttoptr(addresses[1], _LINE.as_pointer())
            builder.store(builder.call(function, [line, factors, total]), pointer).align = ITEM
            for cell, address in zip(cells, addresses, strict=True):
                builder.store(builder.add(address, ir.Constant(_WORD, ITEM * REGISTER_LANES)), cell)
        return context.get_dummy_value()

    return types.void(places, types.float32, count), generate


@intrinsic
def _noinline(typing: Any) -> Any:
    """Keep the function that calls this from being copied to where it is called."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


_stays_apart: Any = _noinline
_new_panel: Any = _room_of_panel
_pack: Any = _copied_lines
_dot: Any = _dot_of_lines
_add: Any = _add_lines
_MANY_REGISTERS = any(
    binding.get_host_cpu_features().get(name, False) for name in ("avx512f", "neon")
)
TALLEST = 8 if _MANY_REGISTERS else 6  # rows of a tile: their sums fill most registers
DEEPEST = 256  # lines of a panel: 16 KiB, half of a core's first cache
FAR = 1 << 14  # bytes from the first line to the last, above which they conflict in that cache
_tallest, _four, _two, _one = (_tile(height) for height in (TALLEST, 4, 2, 1))


@called
def _multiply_at(
    places: tuple[int, int, int], steps: tuple[int, int, int, int], sizes: tuple[int, int, int]
) -> None:
    _stays_apart()  # or kernels take half as long again to compile
    left, right, product = places
    rows, columns, count = sizes
    packs = rows >= 4 * TALLEST and steps[2] * count > FAR
    panel = _new_panel()
    for column in range(0, columns, REGISTER_LANES):
        for first in range(0, max(count, 1), DEEPEST if packs else max(count, 1)):
            deep = min(count - first, DEEPEST) if packs else count
            over, step = right + column * ITEM + first * steps[2], steps[2]
            if packs:
                _pack(over, step, deep, panel)
                over, step = panel, ITEM * REGISTER_LANES
            taken = steps[0], steps[1], step, steps[3]
            out, before, left_over = product + column * ITEM, left + first * steps[1], rows
            while left_over > 0:
                row = rows - left_over
                at = before + row * steps[0], over, out + row * steps[3]
                if left_over >= TALLEST:
                    _tallest(at, taken, deep, first == 0)
                    left_over -= TALLEST
                elif left_over >= 4:
                    _four(at, taken, deep, first == 0)
                    left_over -= 4
                elif left_over >= 2:
                    _two(at, taken, deep, first == 0)
                    left_over -= 2
                else:
                    _one(at, taken, deep, first == 0)
                    left_over -= 1


@inlined
def _compiled_multiply(left: Floats, right: Floats, product: Floats) -> None:
    _multiply_at(
        (left.ctypes.data, right.ctypes.data, product.ctypes.data),
        (left.strides[0], left.strides[1], right.strides[0], product.strides[0]),
        (product.shape[0], product.shape[1], left.shape[1]),
    )


def _plain_multiply(left: Floats, right: Floats, product: Floats) -> None:
    assert product.shape[1] % REGISTER_LANES == 0
    product[...] = left @ right


@inlined
def _compiled_dot(left: Floats, right: Floats) -> np.float32:
    lines = left.size // REGISTER_LANES
    total: np.float32 = _dot((left.ctypes.data, right.ctypes.data), lines)
    for k in range(lines * REGISTER_LANES, left.size):
        total += left[k] * right[k]
    return total


def _plain_dot(left: Floats, right: Floats) -> np.float32:
    return np.float32(np.dot(left, right))


@inlined
def _compiled_add(row: Floats, factor: np.float32, total: Floats) -> None:
    _add((row.ctypes.data, total.ctypes.data), factor, total.size // REGISTER_LANES)


def _plain_add(row: Floats, factor: np.float32, total: Floats) -> None:
    assert total.size % REGISTER_LANES == 0
    total += row * factor


multiply: Any = _compiled_multiply if _COMPILED else _plain_multiply
"""multiply(left [M, K], right [K, N], product [M, N]): write `left` times `right` to `product`.

N is a multiple of REGISTER_LANES; the rows of `right` and of `product` lie side by side in memory,
while `left` may be any view. None may overlap the product."""
dot: Any = _compiled_dot if _COMPILED else _plain_dot
"""dot(left [N], right [N]): the sum of their products; both lie side by side in memory."""
add_multiple: Any = _compiled_add if _COMPILED else _plain_add
"""add_multiple(row [N], factor, total [N]): add `row` times `factor` to `total`.

N is a multiple of REGISTER_LANES; both lie side by side in memory, and do not overlap."""


@kernel
def write_actions(
    discrete: npt.NDArray[np.int32],
    continuous: npt.NDArray[np.float32],
    middle: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    limit: np.float32,
    actions: npt.NDArray[np.float32],
) -> None:
    """Write `actions` [n, branches + C]: `discrete` [n, branches], then `continuous` [n, C].

    Continuous numbers are clipped to plus or minus `limit`; -1 and 1 stand for `middle` - `half`
    and `middle` + `half` [C]; NaN stays NaN.
    """
    rows, count = discrete.shape
    for branch in range(count):
        for row in range(rows):
            actions[row, branch] = np.float32(discrete[row, branch])
    for column in range(middle.size):
        for row in range(rows):
            number = continuous[row, column]
            if number < -limit:
                number = -limit
            elif number > limit:
                number = limit
            number *= half[column]
            if middle[column] != np.float32(0.0):  # keeps the sign of zero
                number += middle[column]
            actions[row, count + column] = number
