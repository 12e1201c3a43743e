"""Matrix products inside kernels, by the BLAS that scipy brings for such use.

One call from Python then does many products, without the interpreter in between, which threads
would have to wait for. An address is handed to the kernel because one that was compiled into it
could not be kept for later processes.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic

from aimbot_lab.foundation.jit import inlined

Floats = npt.NDArray[np.float32]
AS_IT_IS, TRANSPOSED = ord("N"), ord("T")
_new_cell: Any = cgutils.alloca_once
_parts_of: Any = cgutils.unpack_tuple
_INT, _CHAR, _FLOAT = ir.IntType(32), ir.IntType(8), ir.FloatType()


def sgemm_address() -> int:
    """Where BLAS has its matrix product in single precision, for `multiply`."""
    address: int = get_cython_function_address("scipy.linalg.cython_blas", "sgemm")
    return address


@intrinsic
def _sgemm(typing: Any, address: Any, forms: Any, sizes: Any, places: Any, steps: Any) -> Any:
    """Call sgemm at `address`: two forms, sizes (m, n, k), three places and their steps."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def cell(value: Any, kind: Any) -> Any:
            place = _new_cell(builder, kind)
            builder.store(value, place)
            return place

        def parts(value: Any, kind: Any) -> list[Any]:
            return [cell(builder.trunc(number, kind), kind) for number in _parts_of(builder, value)]

        one, zero = (cell(ir.Constant(_FLOAT, number), _FLOAT) for number in (1.0, 0.0))
        left, right, product = (
            builder.inttoptr(place, _FLOAT.as_pointer()) for place in _parts_of(builder, values[3])
        )
        step = parts(values[4], _INT)
        arguments = [*parts(values[1], _CHAR), *parts(values[2], _INT), one]
        arguments += [left, step[0], right, step[1], zero, product, step[2]]
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(address, forms, sizes, places, steps), generate


_call_sgemm: Any = _sgemm


@inlined
def _form(factor: Floats) -> tuple[int, int]:
    """(how BLAS must read `factor`, elements from one row or column to the next)."""
    item = factor.itemsize
    if factor.strides[1] == item:
        return AS_IT_IS, max(factor.strides[0] // item, factor.shape[1])
    return TRANSPOSED, max(factor.strides[1] // item, factor.shape[0])


@inlined
def _compiled_multiply(address: int, left: Floats, right: Floats, product: Floats) -> None:
    (left_form, left_step), (right_form, right_step) = _form(left), _form(right)
    # BLAS reads arrays column by column, and so as their transposes: (L R)^T = R^T L^T.
    _call_sgemm(
        address,
        (right_form, left_form),
        (product.shape[1], product.shape[0], left.shape[1]),
        (right.ctypes.data, left.ctypes.data, product.ctypes.data),
        (right_step, left_step, _form(product)[1]),
    )


def _plain_multiply(address: int, left: Floats, right: Floats, product: Floats) -> None:
    product[...] = left @ right


multiply: Any = _plain_multiply if vars(numba.config)["DISABLE_JIT"] else _compiled_multiply
"""multiply(address, left [M, K], right [K, N], product [M, N]): write `left` times `right` to
`product`, from kernels. Each array has one axis along which its elements lie side by side; the
product's is its last. None may be empty or overlap the product."""
