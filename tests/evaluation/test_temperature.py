"""Temperatures that agents can play at, and those that they can't."""

import copy
import json
from pathlib import Path

import pytest

import aimbot_lab
from aimbot_lab.evaluation.temperature import COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.foundation.errors import ConfigurationError


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 1e-9, 11.0])
def test_what_is_no_temperature_is_refused_in_one_line(value: float) -> None:
    with pytest.raises(ConfigurationError, match=r"must be 0 .* or from 0\.01 to 10") as refused:
        Temperature(value)
    assert "\n" not in str(refused.value)


def test_a_temperature_has_a_label_and_is_a_number_in_json() -> None:
    labels = [way.label for way in (SAMPLED, LIKELIEST, COOLER, Temperature(0.25))]
    assert labels == ["sampled", "deterministic", "temperature 0.5", "temperature 0.25"]
    assert json.dumps({"at": copy.deepcopy(COOLER)}) == '{"at": 0.5}'


def test_python_refuses_what_is_no_temperature_before_it_looks_for_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="temperature 20"):
        aimbot_lab.evaluate("missing", temperature=20, data_dir=tmp_path)
