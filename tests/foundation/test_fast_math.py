"""Sine, cosine and logarithm of our own, and that kernels take none from elsewhere."""

import ast
import hashlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import mpmath
import numba
import numpy as np

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.lanes import any_exp
from aimbot_lab.foundation.kernels.rng import log, sin_cos, whole_power
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from tests.installed import said_by

PACKAGE = Path(__file__).parents[2] / "aimbot_lab"
KERNEL_FILES = sorted([*PACKAGE.rglob("core/*.py"), *PACKAGE.glob("foundation/kernels/*.py")])
COMPILERS = {"kernel", "inlined", "called"}
# Exact in every libm, and most of them a single instruction.
EXACT = {"sqrt", "ceil", "floor", "rint", "radians"}
INEXACT = (
    "sin|cos|sincos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|exp|exp2|expm1|log|log2|log10|log1p"
    "|pow|hypot|cbrt"
)
FOREIGN = re.compile(rb"\0_?(" + INEXACT.encode() + rb")f?\0")
NEAR_ONE = 1.0 + 2.0**-30
Floats = np.ndarray


@kernel
def all_sin_cos(x: Floats, sines: Floats, cosines: Floats) -> None:
    for n in range(x.size):
        sine, cosine = sin_cos(x[n])
        sines[n] = sine
        cosines[n] = cosine


@kernel
def all_log(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = log(x[n])


@kernel
def all_any_exp(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = any_exp(x[n])


@kernel
def all_products_and_sums(x: Floats, factor: float, out: Floats) -> None:
    for n in range(x.size):
        out[n] = x[n] * factor + out[n]


def angles() -> Floats:
    """Angles of play, those next to quarter turns, and far ones."""
    rng = np.random.default_rng(0)
    quarters = np.arange(-60, 61) * (math.pi / 4)
    far = np.rint(rng.uniform(-6e5, 6e5, 500)) * (math.pi / 2)
    beside = [np.nextafter(quarters, end) for end in (-np.inf, np.inf)]
    spread = [rng.uniform(-end, end, 4000) for end in (0.8, 7.0, 1e6)]
    return np.concatenate([quarters, far, *beside, *spread, 10.0 ** rng.uniform(-300, -1, 500)])


def positives() -> Floats:
    """Numbers of a sampler, those next to 1, and all sizes."""
    rng = np.random.default_rng(0)
    near = 1.0 + rng.normal(0.0, 1e-3, 2000)
    ends = [2.0**-53, 1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0), 2.0**-1022, 1.7e308]
    return np.concatenate(
        [rng.uniform(2**-53, 2, 6000), 2.0 ** rng.uniform(-1e3, 1e3, 2000), near, ends]
    )


def values() -> Floats:
    x, y = angles(), positives()
    sines, cosines, logs = np.empty_like(x), np.empty_like(x), np.empty_like(y)
    all_sin_cos(x, sines, cosines)
    all_log(y, logs)
    return np.concatenate([sines, cosines, logs])


def worst_error(x: Floats, found: Floats, exact) -> float:
    """Largest error in units in the last place of the exact value."""
    with mpmath.workprec(200):
        wanted = [exact(mpmath.mpf(float(number))) for number in x]
        units = np.spacing(np.abs(np.array([float(number) for number in wanted])))
        pairs = zip(found, wanted, units, strict=True)
        return float(max(abs(mpmath.mpf(float(a)) - b) / float(unit) for a, b, unit in pairs))


def test_sine_cosine_and_logarithm_are_within_a_unit_in_the_last_place() -> None:
    x, y = angles(), positives()
    sines, cosines, logs = np.split(values(), [len(x), 2 * len(x)])
    assert worst_error(x, sines, mpmath.sin) < 0.8
    assert worst_error(x, cosines, mpmath.cos) < 0.8
    assert worst_error(y, logs, mpmath.log) < 0.85
    assert (logs[y == 1.0] == 0.0).all()


def test_an_exponential_ends_in_infinity_and_passes_nan_on() -> None:
    x = np.float32([-np.inf, -200.0, 0.0, 88.0, 88.31, 1e30, np.inf, np.nan])
    found = np.empty_like(x)
    all_any_exp(x, found)
    np.testing.assert_allclose(
        found, [0.0, 0.0, 1.0, math.exp(88.0), np.inf, np.inf, np.inf, np.nan], rtol=2e-7
    )


def test_a_whole_power_is_the_power() -> None:
    for base in (0.9, 0.999, 0.0):
        powers = [whole_power(base, exponent) for exponent in range(2000)]
        np.testing.assert_allclose(powers, base ** np.arange(2000.0), atol=1e-13)


def test_functions_give_the_same_bits_uncompiled() -> None:
    there = said_by(__file__, NUMBA_DISABLE_JIT="1")
    assert there.strip() == hashlib.sha256(values().tobytes()).hexdigest()


def test_kernels_round_a_product_before_they_add_to_it() -> None:
    out = np.full(33, -1.0)
    all_products_and_sums(np.full(33, 1.0 - 2.0**-30), NEAR_ONE, out)
    assert (out == 0.0).all(), "fused: -2**-60"


def test_compiled_kernels_call_no_function_of_the_machines_libm() -> None:
    arena = Arena(ArenaSettings(num_envs=1))
    arena.set_scenario(Scenario({"free": 1.0}))
    arena.reset(0, step_buffers(arena).observations)
    arena.action_masks(np.zeros((1, 8), np.bool_))
    files = sorted(Path(vars(numba.config)["CACHE_DIR"]).rglob("*.nbc"))
    assert any("advance_plain_packed" in path.name for path in files)
    found = {path.name: set(FOREIGN.findall(path.read_bytes())) for path in files}
    assert {name: calls for name, calls in found.items() if calls} == {}


def inexact_calls(path: Path) -> Iterator[str]:
    """Functions of `math` and `np` in the kernels of a file that each libm may round its way."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
        for part in ast.walk(node) if marks & COMPILERS else ():
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                known = re.fullmatch(INEXACT, part.attr) and part.attr not in EXACT
                if part.value.id in ("math", "np") and known:
                    yield f"{node.name}: {part.value.id}.{part.attr}"
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow):
                yield f"{node.name}: **"


def test_kernels_name_no_function_of_a_libm() -> None:
    assert KERNEL_FILES
    assert [call for path in KERNEL_FILES for call in inexact_calls(path)] == []


if __name__ == "__main__":
    print(hashlib.sha256(values().tobytes()).hexdigest())  # noqa: T201
