"""Matrix products inside kernels, at the speed of the processor's vector registers.

A BLAS takes its factors as they come and copies them into order first. At the sizes of a small
network that, and its way through the interpreter, cost a third of the time. Here the columns of
the right factor and of the product come in whole registers, which callers see to by `whole_lanes`.
Sums run in one order, whatever the sizes: an element does not depend on what is computed beside it.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from aimbot_lab.foundation.kernels.jit import called, inlined

Floats = npt.NDArray[np.float32]
LANES = 16  # numbers in a register, or in several where these are smaller
ITEM = 4  # bytes
_COMPILED = not vars(numba.config)["DISABLE_JIT"]
_FLOAT, _WORD, _INDEX = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_LINE = ir.VectorType(_FLOAT, LANES)
# Typed as anything, because these have no annotations and mypy asks for some where they are called.
_new_cell: Any = cgutils.alloca_once_value
_parts_of: Any = cgutils.unpack_tuple
_for_range: Any = cgutils.for_range
_declared: Any = cgutils.get_or_insert_function


def whole_lanes(count: int) -> int:
    """The least multiple of LANES that is no less than `count`."""
    return -(-count // LANES) * LANES


def _line_at(builder: Any, address: Any) -> Any:
    """LANES numbers from `address` on."""
    line = builder.load(builder.inttoptr(address, _LINE.as_pointer()))
    line.align = ITEM
    return line


def _repeated(builder: Any, address: Any) -> Any:
    """The number at `address` in all lanes."""
    nothing = ir.Constant(_LINE, ir.Undefined)
    number = builder.load(builder.inttoptr(address, _FLOAT.as_pointer()))
    line = builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
    places = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(line, nothing, places)


def _added_product(builder: Any, one: Any, two: Any, cell: Any) -> None:
    """Add `one` times `two` to the line in `cell`, rounded once where the processor can."""
    kind = ir.FunctionType(_LINE, [_LINE] * 3)
    function = _declared(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    builder.store(builder.call(function, [one, two, builder.load(cell)]), cell)


def _tile(height: int) -> Any:
    """tile(places, steps, count): `height` rows and LANES columns of a product.

    `places`: of the left factor's first row, of the right's first column, of the result. `steps`
    in bytes: of the left from row to row and from column to column, of the others from row to row.
    """

    @intrinsic
    def tile(typing: Any, places: Any, steps: Any, count: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            left, right, place = _parts_of(builder, values[0])
            by_row, by_column, right_step, step = _parts_of(builder, values[1])
            zero = ir.Constant(_LINE, None)
            sums = [_new_cell(builder, zero) for _ in range(height)]
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

        return types.void(places, steps, count), generate

    return tile


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
                builder.store(builder.add(address, ir.Constant(_WORD, ITEM * LANES)), cell)
        line, lanes = builder.load(total), LANES
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
        alike = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        factors = builder.shuffle_vector(number, nothing, alike)
        with _for_range(builder, values[2]):
            addresses = [builder.load(cell) for cell in cells]
            line, total = (_line_at(builder, address) for address in addresses)
            kind = ir.FunctionType(_LINE, [_LINE] * 3)
            function = _declared(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
            pointer = builder.inttoptr(addresses[1], _LINE.as_pointer())
            builder.store(builder.call(function, [line, factors, total]), pointer).align = ITEM
            for cell, address in zip(cells, addresses, strict=True):
                builder.store(builder.add(address, ir.Constant(_WORD, ITEM * LANES)), cell)
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
_dot: Any = _dot_of_lines
_add: Any = _add_lines
_MANY_REGISTERS = any(
    binding.get_host_cpu_features().get(name, False) for name in ("avx512f", "neon")
)
TALLEST = 8 if _MANY_REGISTERS else 4
_tallest, _four, _two, _one = (_tile(height) for height in (TALLEST, 4, 2, 1))


@called
def _multiply_at(
    places: tuple[int, int, int], steps: tuple[int, int, int, int], sizes: tuple[int, int, int]
) -> None:
    _stays_apart()  # or kernels take half as long again to compile
    left, right, product = places
    rows, columns, count = sizes
    for column in range(0, columns, LANES):
        over, out, left_over = right + column * ITEM, product + column * ITEM, rows
        while left_over > 0:
            row = rows - left_over
            at = left + row * steps[0], over, out + row * steps[3]
            if left_over >= TALLEST:
                _tallest(at, steps, count)
                left_over -= TALLEST
            elif left_over >= 4:
                _four(at, steps, count)
                left_over -= 4
            elif left_over >= 2:
                _two(at, steps, count)
                left_over -= 2
            else:
                _one(at, steps, count)
                left_over -= 1


@inlined
def _compiled_multiply(left: Floats, right: Floats, product: Floats) -> None:
    _multiply_at(
        (left.ctypes.data, right.ctypes.data, product.ctypes.data),
        (left.strides[0], left.strides[1], right.strides[0], product.strides[0]),
        (product.shape[0], product.shape[1], left.shape[1]),
    )


def _plain_multiply(left: Floats, right: Floats, product: Floats) -> None:
    assert product.shape[1] % LANES == 0
    product[...] = left @ right


@inlined
def _compiled_dot(left: Floats, right: Floats) -> np.float32:
    lines = left.size // LANES
    total: np.float32 = _dot((left.ctypes.data, right.ctypes.data), lines)
    for k in range(lines * LANES, left.size):
        total += left[k] * right[k]
    return total


def _plain_dot(left: Floats, right: Floats) -> np.float32:
    return np.float32(np.dot(left, right))


@inlined
def _compiled_add(row: Floats, factor: np.float32, total: Floats) -> None:
    _add((row.ctypes.data, total.ctypes.data), factor, total.size // LANES)


def _plain_add(row: Floats, factor: np.float32, total: Floats) -> None:
    assert total.size % LANES == 0
    total += row * factor


multiply: Any = _compiled_multiply if _COMPILED else _plain_multiply
"""multiply(left [M, K], right [K, N], product [M, N]): write `left` times `right` to `product`.

N is a multiple of LANES; the rows of `right` and of `product` lie side by side in memory, while
`left` may be any view. None may overlap the product."""
dot: Any = _compiled_dot if _COMPILED else _plain_dot
"""dot(left [N], right [N]): the sum of their products; both lie side by side in memory."""
add_multiple: Any = _compiled_add if _COMPILED else _plain_add
"""add_multiple(row [N], factor, total [N]): add `row` times `factor` to `total`.

N is a multiple of LANES; both lie side by side in memory, and do not overlap."""
