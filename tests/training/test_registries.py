"""Algorithms and networks are known through their registries alone."""

import ast
from pathlib import Path

from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.network import NETWORKS
from aimbot_lab.training.settings import ALGOS, NetworkSettings, TrainSettings

PACKAGE = Path(__file__).parents[2] / "aimbot_lab"
HOMES = (
    "training/algorithms/",
    "training/networks/",
    "training/settings.py",
    "training/agents/library_zip.py",  # which knows the libraries' own files
    "bench/",
    "experiment/conversion/",  # which turns trainer files into these
    "experiment/config/schema.py",  # which names what was renamed
)
FILES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.relative_to(PACKAGE).as_posix().startswith(HOMES)
]


def named_in(text: str) -> set[str]:
    """Names of algorithms and networks that the source `text` holds as constants."""
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {*constants} & {*ALGORITHMS, *NETWORKS}


def test_no_module_but_their_own_names_an_algorithm_or_a_network() -> None:
    named = {path: named_in(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: names for path, names in named.items() if names} == {}


def test_the_registries_hold_what_the_settings_name_by_default() -> None:
    assert set(ALGORITHMS.own) == set(ALGOS)
    assert TrainSettings().algo in ALGORITHMS
    assert NetworkSettings().kind in NETWORKS
    assert all(one.name == name for name, one in {**ALGORITHMS.own, **NETWORKS.own}.items())
