"""Imports point down only, and third-party libraries stay in their homes."""

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "aimbot_lab"
LAYERS = {
    "cli": 9,
    "panel": 8,
    "cluster": 8,
    "league": 7,
    "sweep": 7,
    "bench": 7,
    "experiment": 6,
    "training": 5,
    "adapters": 4,
    "curriculum": 4,
    "tracking": 4,
    "evaluation": 4,
    "replay": 4,
    "worlds": 3,
    "shipped": 3,
    "mlagents": 2,
    "foundation": 1,
}


# Inside experiment: config below conversion and runs, which do not know each other, below analysis.
WINGS = {
    "experiment.config": 1,
    "experiment.conversion": 2,
    "experiment.runs": 2,
    "experiment.analysis": 3,
    "foundation.kernels": 1,
}
HOMES = {
    "numba": ["foundation/kernels/"],
    "llvmlite": ["foundation/kernels/"],
    "scipy": ["foundation/"],
    "torch": ["training/"],
    "safetensors": ["training/"],
    "threadpoolctl": ["bench/train.py"],
    "sb3_contrib": ["training/"],
    "onnx": ["training/"],
    "onnxruntime": ["training/"],
    "imageio_ffmpeg": ["replay/film.py"],
    "stable_baselines3": ["training/", "adapters/sb3.py"],
    "mlflow": ["tracking/mlflow_store.py", "tracking/mlflow_app.py"],
    "optuna": ["sweep/"],
    "ray": ["cluster/"],
    "google": ["mlagents/messages.py"],
    "grpc": ["mlagents/grpc_link.py"],
    "matplotlib": ["sweep/coordinator.py", "experiment/analysis/learning_curve.py"],
    "omegaconf": ["experiment/config/yaml_reader.py"],
    "pettingzoo": ["adapters/duel_v0.py", "worlds/pettingzoo/"],
    "gymnasium": ["adapters/", "training/", "worlds/gymnasium/", "worlds/pettingzoo/"],
    "starlette": ["panel/"],
    "uvicorn": ["panel/"],
    "click": ["cli/"],
    "rich": ["cli/"],
}
CORE_MAY_IMPORT = (
    "math",
    "typing",
    "numpy",
    "aimbot_lab.foundation.kernels.",
    "aimbot_lab.worlds.arena.core.",  # the duel is made of it
)
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def read(path: Path) -> tuple[list[str], set[object]]:
    """Full names of the modules that the file at `path` imports, and its constants."""
    names, constants = list[str](), set[object]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Constant):
            constants.add(node.value)
    return names, constants


def faults(path: Path, package: Path) -> list[str]:
    inside = path.relative_to(package)
    here = inside.parent.parts or (inside.stem,) * (inside.stem in LAYERS)
    found = []
    for name in dict.fromkeys(read(path)[0]):
        parts = name.split(".")
        inner = parts[0] == "aimbot_lab" and len(parts) > 1 and here
        if inner and points_up(here, parts[1:]):
            found.append(f"{inside} imports {name}: points up or sideways")
        homes = HOMES.get(parts[0])
        if homes is not None and not any(inside.as_posix().startswith(home) for home in homes):
            found.append(f"{inside} imports {name}: its home is {', '.join(homes)}")
        if "core" in here and not name.startswith(
            (*CORE_MAY_IMPORT, ".".join(["aimbot_lab", *here]))
        ):
            found.append(f"{inside} imports {name}: kernels import each other and the generator")
    return found


def points_up(here: Sequence[str], there: Sequence[str]) -> bool:
    """Whether a module in the package `here` must not import the module `there`."""
    if there[0] != here[0]:
        return LAYERS.get(there[0], 0) >= LAYERS[here[0]]
    mine, other = ".".join(here[:2]), ".".join(there[:2])
    return mine != other and other in WINGS and WINGS[other] >= WINGS.get(mine, 0)


def test_imports_point_down_and_libraries_stay_at_home() -> None:
    assert [fault for path in FILES for fault in faults(path, PACKAGE)] == []


def test_every_package_has_a_layer() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert packages <= set(LAYERS)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("curriculum/bad.py", "from aimbot_lab.experiment.runs.run import run_curriculum"),
        ("experiment/runs/bad.py", "import aimbot_lab.experiment.analysis.learning_curve"),
        ("worlds/bad.py", "from aimbot_lab import cli"),
        ("league.py", "import aimbot_lab.panel"),
        ("curriculum/bad.py", "def f():\n    import torch"),
        ("worlds/bad.py", "from numba import njit"),
        ("worlds/arena/core/bad.py", "import json"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line, encoding="utf-8")
    assert faults(path, tmp_path)


def circles(files: dict[str, Path]) -> list[str]:
    """Modules of `files`, by name, that import themselves through others, function-level too."""
    left = {name: set(read(path)[0]) & files.keys() - {name} for name, path in files.items()}
    while ends := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in ends:
            del left[name]
    return sorted(left)


def module_names(package: Path) -> dict[str, Path]:
    """Each module of `package`, but the packages' own files, by its full name."""
    paths = (path for path in package.rglob("*.py") if path.name != "__init__.py")
    root = package.parent
    return {".".join(path.relative_to(root).with_suffix("").parts): path for path in paths}


def test_no_module_imports_itself_through_others() -> None:
    assert circles(module_names(PACKAGE)) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "aimbot_lab"
    package.mkdir()
    (package / "a.py").write_text("def f():\n    from aimbot_lab.b import g")
    (package / "b.py").write_text("from aimbot_lab import a, c")
    (package / "c.py").write_text("import json")
    assert circles(module_names(package)) == ["aimbot_lab.a", "aimbot_lab.b"]


def knows_a_world(path: Path) -> bool:
    """Whether the file at `path` imports a world, or names a target of the arena."""
    imports, constants = read(path)
    names = ("arena", "duel", "gorge", "gymnasium", "pettingzoo", "unity")
    worlds = tuple(f"aimbot_lab.worlds.{name}" for name in names)
    return bool(constants & {"goto", "attack", "free"}) or any(
        name.startswith(worlds) for name in imports
    )


def test_worlds_are_known_through_the_registry_alone() -> None:
    outside = [path for path in FILES if not path.is_relative_to(PACKAGE / "worlds")]
    assert outside
    assert [path for path in outside if knows_a_world(path)] == []


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("def f():\n    from aimbot_lab.worlds.arena.spec import arena_spec", True),
        ("target = 'goto'", True),
        ("from aimbot_lab.worlds.registry import make_world\ngoto = 1", False),
    ],
)
def test_a_world_that_is_known_is_found(tmp_path: Path, text: str, known: bool) -> None:
    (tmp_path / "some.py").write_text(text, encoding="utf-8")
    assert knows_a_world(tmp_path / "some.py") == known


REPLACED = re.compile(r"setattr\(\s*[^)]*\btime\b[\"',.\s]+monotonic")


def replacing(folder: Path) -> list[Path]:
    """The files that replace the clock, but for this one."""
    files = [path for path in folder.rglob("*.py") if path != Path(__file__)]
    return [path for path in files if REPLACED.search(path.read_text("utf-8"))]


def test_no_test_replaces_the_clock_of_the_process() -> None:
    assert replacing(Path(__file__).parent) == []


@pytest.mark.parametrize("what", ['costs.time, "monotonic"', '"aimbot_lab.costs.time.monotonic"'])
def test_a_replaced_clock_is_found(tmp_path: Path, what: str) -> None:
    file = tmp_path / "test_costs.py"
    file.write_text(f"monkeypatch.setattr({what}, lambda: 0.0)", encoding="utf-8")
    assert replacing(tmp_path) == [file]
