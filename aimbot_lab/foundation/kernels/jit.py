"""The one place that compiles: `kernel` for entry points, `inlined` for parts; packed arguments.

Strict IEEE arithmetic (no fastmath): results do not depend on how a loop was vectorised.
Compiled entry points are kept in the user's cache folder under a hash of all kernel sources,
because numba itself does not notice a change in a function that another file calls.

Python hands an array to compiled code in some 40 nanoseconds, and a world's state has a hundred
of them: for a small batch more than a step takes. A kernel that is called again and again with the
same arguments gets them packed once: they stay in memory, in the form in which compiled code holds
them, and a call passes nothing but their address.
"""

import atexit
import fcntl
import hashlib
import importlib
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import accumulate
from operator import getitem, is_
from pathlib import Path
from typing import IO, Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
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

from aimbot_lab.foundation.files import user_cache

F = TypeVar("F", bound=Callable[..., Any])
SECONDS_TO_COMPILE = 300.0  # a kernel, on a busy machine
KEPT_SECONDS = 30 * 24 * 3600.0
PACKAGE = Path(__file__).parents[2]


def kernel_sources() -> list[Path]:
    """Every file that compiled code may come from, since kernels are inlined into each other."""
    return sorted({*PACKAGE.rglob("core/*.py"), *(PACKAGE / "foundation").glob("kernels/*.py")})


def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in kernel_sources():
        name = path.relative_to(PACKAGE).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _drop_old(used: Path) -> None:
    """Remove the kernels of other versions beside `used` that were not used for long."""
    os.utime(used)
    for folder in used.parent.glob("kernels-*"):
        with suppress(OSError):  # another process may be at the same
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(folder)


def _cache_folder() -> Path:
    """A folder for compiled kernels that can be written; a temporary one as the last resort."""
    folder = user_cache() / f"kernels-{_source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            _drop_old(folder)
            return folder
    except OSError:
        # One of its own each time: another user could have laid code in a folder with a known name.
        temporary = tempfile.mkdtemp(prefix="aimbot-lab-kernels-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return Path(temporary)


if "NUMBA_CACHE_DIR" not in os.environ:
    vars(numba.config)["CACHE_DIR"] = str(_cache_folder())

# Without numba's reference counting a kernel can't allocate, and nested calls that pass a state
# of many arrays do not touch an atomic counter for each of them (measured: 6 times faster).
# Typed as anything, because numba's stubs leave out the options used here.
_njit: Any = numba.njit
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


def kernel(function: F) -> F:
    """`function`, compiled when first called; the compiled code is kept for later processes.

    Of several processes that need it at the same time one compiles, and the others load its code.
    """
    compiled = _njit(cache=True, **_OPTIONS)(function)
    if vars(numba.config)["DISABLE_JIT"]:
        return function
    compiles = compiled.compile

    def compiled_once(signature: Any) -> Any:
        # Numba's lock first: threads that wait for one another's two locks would wait for ever.
        with global_compiler_lock, _alone_with(function):
            return compiles(signature)

    compiled.compile = compiled_once
    kept: F = compiled
    return kept


@contextmanager
def _alone_with(function: Callable[..., Any]) -> Iterator[None]:
    """No other process compiles `function` in the block, where files can be locked.

    One that takes too long may have been halted: it is not waited for any longer.
    """
    name = f"{function.__module__}.{function.__qualname__}.lock"
    try:
        file = (Path(vars(numba.config)["CACHE_DIR"]) / name).open("ab")
    except OSError:
        yield
        return
    with file:
        until = time.monotonic() + SECONDS_TO_COMPILE
        while not _locked(file) and time.monotonic() < until:
            time.sleep(0.05)
        yield


def _locked(file: IO[bytes]) -> bool:
    """Whether `file` is locked now, or can't be here; False: another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


class _PartLibrary(JITCodeLibrary):
    """Code of a part, which is linked into a kernel's and there becomes machine code.

    Numba would make machine code of it in each function on the way to the kernel, too.
    """

    def _finalize_final_module(self) -> None:
        own: Any = self
        own._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> "_PartLibrary":
        """What is asked to `set_env`."""
        return self

    def set_env(self, _name: str, _env: Any) -> None:
        """Leave it; there is no machine code that could need it."""


class _LateLibrary(_PartLibrary):
    """The same, which is optimised in the kernel alone."""

    def _optimize_final_module(self) -> None:
        pass


class _PartCompiler(Compiler):
    new_library: Any = _PartLibrary

    def define_pipelines(self) -> Any:
        base: Any = super()
        state = self.state
        state.library = self.new_library(state.targetctx.codegen(), state.func_id.func_qualname)
        return base.define_pipelines()


class _LateCompiler(_PartCompiler):
    new_library = _LateLibrary


def _part(function: F, *, inline: bool, compiler: type[_PartCompiler] = _PartCompiler) -> F:
    # Wrappers for calls from Python would double the time that compiling takes.
    made: F = _njit(
        forceinline=inline, no_cpython_wrapper=True, pipeline_class=compiler, **_OPTIONS
    )(function)
    return made


def inlined(function: F) -> F:
    """`function` as a part of kernels, which alone can call it."""
    return _part(function, inline=True)


def called(function: F) -> F:
    """`function` as a part of kernels that is long and seldom runs: compiled once and called."""
    # Said outright, since a part of an inlined function would be inlined, too.
    return _part(function, inline=False)


def late_inlined(function: F) -> F:
    """`inlined`, but optimised where it ends up alone.

    A kernel of many parts that call each other then compiles in half the time; worlds' kernels,
    whose loops are short, ran up to 10 % slower.
    """
    return _part(function, inline=True, compiler=_LateCompiler)


def late_called(function: F) -> F:
    """`called`, but optimised where it ends up alone."""
    return _part(function, inline=False, compiler=_LateCompiler)


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


def _stored_part(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    (stored, kind), (address, index) = signature.args, arguments
    number = context.cast(builder, index, kind, types.intp)
    step = ir.Constant(ir.IntType(8 * WORD), needed_bytes(stored.kind.dtype))
    at = builder.add(address, builder.mul(number, step))
    return _read(context, builder, signature.return_type, at)


_lowers_fields(Stored)(_field)
_lowers(getitem, Stored, types.Integer)(_stored_part)


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

    Raises TypeError for anything but arrays, numbers and tuples of these.
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
