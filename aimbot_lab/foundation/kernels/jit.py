"""The one place that compiles: `kernel` for entry points, `inlined` for their parts.

Strict IEEE arithmetic (no fastmath): results do not depend on how a loop was vectorised.
Compiled entry points are kept in the user's cache folder under a hash of all kernel sources,
because numba itself does not notice a change in a function that another file calls.
"""

import atexit
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock

from aimbot_lab.foundation.files import user_cache

F = TypeVar("F", bound=Callable[..., Any])
SECONDS_TO_COMPILE = 120.0  # a kernel, on a busy machine
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
