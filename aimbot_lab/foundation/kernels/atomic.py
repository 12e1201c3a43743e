"""Words of an array that two threads hand to and fro, changed in one indivisible step.

Numba calls an intrinsic with the types of its arguments, which its signature then fixes: most
go unread. For kernels alone: threads that wait in Python need the interpreter to see a change.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
SyncFlags = np.ndarray[Any, np.dtype[np.int64]]
ALIGNMENT = 8  # bytes of a word
_ORDER = "seq_cst"
_GIL_IS_NOT_ENOUGH = threading.Lock()  # where kernels run as plain Python


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    item: Any = cgutils.get_item_pointer
    return item(context, builder, kind, view, [index], wraparound=False)


@intrinsic
def _load(typing: Any, sync_flags: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values)
        return builder.load_atomic(address, _ORDER, ALIGNMENT)

    return types.int64(sync_flags, types.intp), generate


@intrinsic
def _store(typing: Any, sync_flags: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values[:2])
        builder.store_atomic(values[2], address, _ORDER, ALIGNMENT)
        return context.get_dummy_value()

    return types.void(sync_flags, types.intp, types.int64), generate


@intrinsic
def _swap(typing: Any, sync_flags: Any, index: Any, old: Any, new: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values[:2])
        changed = builder.cmpxchg(address, values[2], values[3], _ORDER, _ORDER)
        return builder.extract_value(changed, 1)

    return types.boolean(sync_flags, types.intp, types.int64, types.int64), generate


@intrinsic
def _add(typing: Any, sync_flags: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], *values[:2])
        return builder.atomic_rmw("add", address, values[2], _ORDER)

    return types.int64(sync_flags, types.intp, types.int64), generate


@intrinsic
def _give_way(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        declared: Any = cgutils.get_or_insert_function
        builder.call(declared(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def _plain_swap(sync_flags: SyncFlags, index: int, old: int, new: int) -> bool:
    with _GIL_IS_NOT_ENOUGH:
        if sync_flags[index] != old:
            return False
        sync_flags[index] = new
        return True


def _plain_load(sync_flags: SyncFlags, index: int) -> int:
    with _GIL_IS_NOT_ENOUGH:
        return int(sync_flags[index])


def _plain_store(sync_flags: SyncFlags, index: int, value: int) -> None:
    with _GIL_IS_NOT_ENOUGH:
        sync_flags[index] = value


def _plain_add(sync_flags: SyncFlags, index: int, value: int) -> int:
    with _GIL_IS_NOT_ENOUGH:
        sync_flags[index] += value
        return int(sync_flags[index]) - value


def _plain_give_way() -> None:
    time.sleep(0.0)


def _chosen(compiled: Any, plain: F) -> F:
    """`compiled` as it is: an inlined function around it would be compiled for each literal."""
    return plain if vars(numba.config)["DISABLE_JIT"] else cast(F, compiled)


load = _chosen(_load, _plain_load)
"""`sync_flags[index]`, with everything that was written before it."""
store = _chosen(_store, _plain_store)
"""Set `sync_flags[index]`, after everything that was written before."""
swap = _chosen(_swap, _plain_swap)
"""Set `sync_flags[index]` to the last argument where it is the one before; whether it was."""
add = _chosen(_add, _plain_add)
"""Add to `sync_flags[index]`; what it was before."""
yield_core = _chosen(_give_way, _plain_give_way)
"""Let another thread that waits for this one's core have it."""
