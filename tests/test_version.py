"""The hash of the code: of what shapes results, and of nothing else."""

import shutil
from pathlib import Path

import pytest

from aimbot_lab import version
from tests.installed import said_by


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package in another place, whose hash `hashed` gives; examples are folders of its own."""
    package = tmp_path / "elsewhere" / "aimbot_lab"
    shutil.copytree(version.PACKAGE, package, ignore=shutil.ignore_patterns("*.png", "*.js"))
    monkeypatch.setattr(version, "PACKAGE", package)
    return package


def hashed() -> str:
    return version.code_hash.__wrapped__()


def test_the_place_of_the_package_and_what_is_compiled_or_explained_in_it_do_not_count(
    copied: Path,
) -> None:
    (copied / "curriculum" / "__pycache__").mkdir(exist_ok=True)
    (copied / "curriculum" / "__pycache__" / "mix.cpython-311.pyc").write_bytes(b"other")
    (copied / "README.md").write_text("Other words.")
    (copied / ".ipynb_checkpoints").mkdir()
    (copied / ".ipynb_checkpoints" / "mix.py").write_text("x = 1")
    shutil.rmtree(copied / "shipped" / "curricula")
    assert hashed() == version.code_hash()


@pytest.mark.parametrize(
    "name", ["curriculum/settings.py", "worlds/duel/data/layouts.yaml", "shipped/named_files.py"]
)
def test_a_byte_of_code_or_data_counts(copied: Path, name: str) -> None:
    with (copied / name).open("a") as file:
        file.write("#")
    assert hashed() != version.code_hash()


def test_a_file_that_comes_goes_or_has_another_name_counts(copied: Path) -> None:
    whole = hashed()
    (copied / "curriculum" / "rules.py").rename(copied / "curriculum" / "mixture.py")
    renamed = hashed()
    (copied / "curriculum" / "mixture.py").unlink()
    assert len({whole, renamed, hashed()}) == 3


def test_help_does_not_read_the_code_and_the_version_tells_its_hash() -> None:
    code = """
from aimbot_lab.cli.main import cli
from aimbot_lab.version import code_hash
cli.main({words!r}, standalone_mode=False)
print(code_hash.cache_info().misses)
"""

    def output(*words: str) -> list[str]:
        return said_by("-c", code.format(words=list(words))).splitlines()

    assert output("--help")[-1] == "0"
    assert output("--version")[0] == f"aimbot-lab, version {version.full_version()}"
