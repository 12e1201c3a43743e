"""Every number of a converted trainer file is the one that ML-Agents' settings code reads."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from aimbot_lab.experiment.conversion.ml_agents import convert
from aimbot_lab.experiment.conversion.trainer_file import KEYS
from aimbot_lab.worlds.unity.settings import UnitySettings
from tests.experiment.trainer_samples import HEAD, READ
from tests.mlagents.real_programs import told_by

pytestmark = pytest.mark.real_ml_agents
ELSEWHERE = (  # keys of other trainers, and of before
    *("gamma", "tau", "target_update_interval", "init_entcoef", "save_replay_buffer", "framework"),
    *("buffer_init_steps", "steps_per_update", "reward_signal_steps_per_update"),
    *("exploration_schedule", "exploration_initial_eps", "exploration_final_eps"),
)


def read(*texts: str) -> list[Any]:
    """What ML-Agents reads in each."""
    found: list[Any] = told_by("settings_read.py", input=json.dumps(texts), timeout=120)
    assert [one for one in found if isinstance(one, str)] == []
    return found


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """ML-Agents' settings by place in our table."""
    (behavior,) = settings["behaviors"].values() or [settings["default_settings"]]
    rest = {key: one for key, one in settings.items() if key not in ("behaviors", "parameters")}
    return dict(_leaves("", {**behavior, **rest}))


def _leaves(section: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        place = f"{section}.{name}".lstrip(".")
        if place not in KEYS and isinstance(value, dict):
            yield from _leaves(place, value)
        else:
            yield place, value


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    """What ML-Agents reads in every sample, by name."""
    whole = HEAD + "    self_play: {}\n    network_settings: {memory: {}}\n"
    return dict(zip(["whole", *READ], read(whole, *READ.values()), strict=True))


def test_the_table_has_every_key_of_ml_agents_and_its_default(theirs: dict[str, Any]) -> None:
    found = flat(theirs["whole"])
    known = {place: one for place, one in found.items() if place in KEYS}
    assert found.keys() - known.keys() == {"default_settings", "environment_parameters"}
    lacking = KEYS.keys() - known.keys()
    assert {place for place in lacking if place.rpartition(".")[2] not in ELSEWHERE} == {
        *("reward_signals.curiosity", "reward_signals.gail", "reward_signals.rnd")
    }
    usual = {place: KEYS[place].usual for place in known if KEYS[place].usual not in (None, ())}
    assert {place: known[place] for place in usual} == usual


@pytest.mark.parametrize("name", READ)
def test_numbers_are_those_that_ml_agents_reads(
    name: str, theirs: dict[str, Any], tmp_path: Path
) -> None:
    settings = theirs[name]
    theirs = flat(settings)
    file = tmp_path / "t.yaml"
    file.write_text(READ[name], encoding="utf-8")
    text, notes = convert(file)
    ours = yaml.safe_load(text)
    for place, key in KEYS.items():
        value = theirs.get(place)
        if key.fate == "copied" and value is not None:
            found = _at(ours, key.ours)
            of_env = key.ours.startswith("env.")
            if of_env and ours["env"].get("world") != "unity":
                continue
            if found is None and (of_env or key.ours == "seed"):
                usual = getattr(UnitySettings(), key.ours.removeprefix("env."), None)
                found = key.usual if usual is None else usual
            assert found == value, place
    train, hyper = ours["train"], settings_of(theirs, "hyperparameters")
    network = settings_of(theirs, "network_settings")
    for their, our in {"learning_rate": "learning_rate", "epsilon": "clip_range"}.items():
        assert _start(train[our], hyper[f"{their}_schedule"]) == hyper[their]
    assert _start(train["ent_coef"], hyper["beta_schedule"]) == hyper["beta"]
    assert train["network"]["layers"] == [network["hidden_units"]] * network["num_layers"]
    memory = {key: theirs.get(f"network_settings.memory.{key}") for key in ("memory_size",)}
    if memory["memory_size"]:
        assert 2 * train["network"]["memory"]["size"] == memory["memory_size"]
    changes = "\n".join(notes)
    sizes = {
        "time_horizon": (train["n_steps"], theirs["time_horizon"]),
        "batch_size": (train["batch_size"], hyper["batch_size"]),
    }
    for size, (taken, given) in sizes.items():
        assert taken == given or f"{size}: {taken} replaces {given}" in changes
    _same_lessons(ours["lessons"], settings["environment_parameters"] or {})


def _same_lessons(lessons: list[dict[str, Any]], parameters: Mapping[str, Any]) -> None:
    for name, of in parameters.items():
        chain = of["curriculum"]
        for number, lesson in enumerate(lessons):
            theirs = chain[min(number, len(chain) - 1)]
            value = lesson["parameters"][name]
            if isinstance(value, dict):
                drawn = dict(theirs["value"]["sampler_parameters"])
                assert value["sampler_type"] == theirs["value"]["sampler_type"]
                assert value["sampler_parameters"] == {
                    key: one for key, one in drawn.items() if (key, one) != ("seed", -1)
                }
            else:
                assert value == theirs["value"]["sampler_parameters"]["value"]
            ends = theirs["completion_criteria"]
            if len(chain) > 1 and ends is not None:
                ours = lesson["completion_criteria"]
                assert {key: ours[key] for key in ours if key != "rule"} == {
                    key: ends[key] for key in ours if key != "rule"
                }


def settings_of(flat: Mapping[str, Any], section: str) -> dict[str, Any]:
    """The leaves of a section by name."""
    return {
        place.rpartition(".")[2]: value
        for place, value in flat.items()
        if place.rpartition(".")[0] == section
    }


def _at(data: Any, place: str) -> Any:
    for key in place.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _start(value: Any, schedule: str) -> Any:
    assert isinstance(value, dict) == (schedule == "linear")
    return value["start"] if isinstance(value, dict) else value
