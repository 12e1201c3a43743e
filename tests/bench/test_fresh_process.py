"""Measurements in processes of their own."""

import os
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from aimbot_lab.bench import sim
from aimbot_lab.bench.turns import group, printed_number
from aimbot_lab.foundation.errors import LabError


def test_the_cold_start_has_an_empty_cache_and_the_others_what_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[list[str]] = []

    def number(code: str, **environment: str) -> float:
        if code != sim.START:
            assert environment == {"NUMBA_DISABLE_JIT": "1"}
            return 1.0
        folder = Path(environment["NUMBA_CACHE_DIR"])
        found.append(sorted(os.listdir(folder)))
        (folder / f"kernel {len(found)}").touch()
        return [9.0, 0.9, 0.7, 0.8][len(found) - 1]

    monkeypatch.setattr(sim, "printed_number", number)
    report = sim.bench_sim(replace(sim.QUICK, num_envs=(1,), starts=True), lambda _: None)
    assert report.document["compile_seconds"] == {"cold": 9.0, "cached": 0.7}
    assert found[0] == []
    assert all("kernel 1" in folder for folder in found[1:])


def test_a_measurement_that_fails_is_an_error_in_one_line() -> None:
    with pytest.raises(
        LabError, match=r"^a measurement in .* failed: .*No module named 'nothing'$"
    ):
        printed_number("import nothing")
    assert printed_number("import os; print(os.environ['NUMBER'])", NUMBER="2.5") == 2.5


def echo(end: Connection, word: str) -> None:
    while (asked := end.recv()) != "break":
        end.send({word: asked, "rank": os.environ["RANK"]})
    raise ValueError("it broke")


def test_all_processes_of_a_group_answer_until_one_fails_in_a_line() -> None:
    with group(echo, ("said",), ({"RANK": "0"}, {"RANK": "1"})) as ask:
        assert ask(7) == [{"said": 7, "rank": "0"}, {"said": 7, "rank": "1"}]
        with pytest.raises(LabError, match=r"^a process of the benchmark failed: .*it broke"):
            ask("break")
