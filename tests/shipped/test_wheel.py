"""What is installed without the clone: the wheel, from the folder and by way of an sdist."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import aimbot_lab
from aimbot_lab import version
from aimbot_lab.shipped.named_files import FILES

ROOT = Path(__file__).parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "aimbot_lab", "curricula", "sweeps")


def build(folder: Path, what: str, into: Path) -> Path:
    """A `what` (wheel or sdist) of the project in `folder`, by setuptools alone."""
    code = f"from setuptools import build_meta as b; print(b.build_{what}({str(into)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return into / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel that is built from a copy of the project, and of its sdist."""
    folder, out = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("out")
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        options = {"symlinks": True} if (ROOT / part).is_dir() else {}
        copy(ROOT / part, folder / part, **options)
    direct = build(folder, "wheel", out)
    with tarfile.open(build(folder, "sdist", out)) as sdist:
        sdist.extractall(out, filter="data")
    (unpacked,) = (path for path in out.iterdir() if path.is_dir())
    (out / "again").mkdir()
    return [direct, build(unpacked, "wheel", out / "again")]


@pytest.fixture(scope="module")
def wheels(built: list[Path]) -> list[set[str]]:
    """The names in the wheel that is built from a copy of the project, and of its sdist."""
    return [{*zipfile.ZipFile(file).namelist()} for file in built]


def test_the_wheel_holds_curricula_sweeps_and_their_schemas(wheels: list[set[str]]) -> None:
    there = [
        f"aimbot_lab/shipped/{path.parent.name}/{path.name}"
        for folder in ("curricula", "sweeps")
        for path in (ROOT / folder).iterdir()
        if path.name.endswith((".yaml", ".schema.json"))
    ]
    there += [f"aimbot_lab/shipped/{name}" for name in FILES.values()]
    assert "aimbot_lab/shipped/curricula/goto.yaml" in there
    assert "aimbot_lab/shipped/sweeps/sweep.schema.json" in there
    for wheel in wheels:
        assert {*there} <= wheel


def test_the_wheel_holds_all_of_the_package_and_nothing_beside_it(wheels: list[set[str]]) -> None:
    package = ROOT / "aimbot_lab"
    modules = {f"aimbot_lab/{path.relative_to(package)}" for path in package.rglob("*.py")}
    for wheel in wheels:
        assert modules <= wheel
        assert {name.partition("/")[0] for name in wheel} == {
            "aimbot_lab",
            f"aimbot_lab-{aimbot_lab.__version__}.dist-info",
        }
        assert not [name for name in wheel if "__pycache__" in name or name.endswith(".pyc")]
    assert wheels[0] == wheels[1]


def test_the_installed_wheel_is_the_code_that_is_here(
    built: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = version.code_hash()
    for file in built:
        zipfile.ZipFile(file).extractall(tmp_path)
        monkeypatch.setattr(version, "PACKAGE", tmp_path / "aimbot_lab")
        assert version.code_hash.__wrapped__() == here
