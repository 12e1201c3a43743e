"""Measurements in processes of their own."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from aimbot_lab.bench.sim_plan import QUICK
from aimbot_lab.bench.timing import fresh_process
from aimbot_lab.bench.timing.first_step import seconds_to_first_step
from aimbot_lab.bench.timing.fresh_process import Starts, measure_plain_python, measure_starts
from aimbot_lab.foundation.errors import LabError

STARTS = replace(QUICK, starts=True)


def test_the_cold_start_has_an_empty_cache_and_the_others_what_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[list[str]] = []

    def start(module: str, *, environment: Mapping[str, str]) -> float:
        assert module == fresh_process.FIRST_STEP
        folder = Path(environment["NUMBA_CACHE_DIR"])
        found.append(sorted(os.listdir(folder)))
        (folder / f"kernel {len(found)}").touch()
        return [9.0, 0.9, 0.7, 0.8][len(found) - 1]

    monkeypatch.setattr(fresh_process, "_number_from", start)
    assert measure_starts(STARTS) == Starts(cold=9.0, cached=0.7)
    assert found[0] == []
    assert all("kernel 1" in folder for folder in found[1:])


def test_the_first_step_is_made() -> None:
    assert seconds_to_first_step() > 0.0


def test_plain_python_runs_with_the_compiler_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def environment_of(module: str, *arguments: float, environment: Mapping[str, str]) -> float:
        assert environment == {"NUMBA_DISABLE_JIT": "1"}
        return 1.0

    monkeypatch.setattr(fresh_process, "_number_from", environment_of)
    assert measure_plain_python(QUICK) == 1.0


def test_a_measurement_that_fails_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_process, "PLAIN_STEP", "aimbot_lab.no_such_module")
    with pytest.raises(LabError, match=r"^aimbot_lab\.no_such_module failed: .*No module named"):
        measure_plain_python(QUICK)
