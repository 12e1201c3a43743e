"""Engines: which one computes for a policy, and that one of one's own fits in."""

import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import torch as th
from guessing import new_model

from aimbot_lab.training.algorithms.hybrid_ppo import (
    AUTO,
    ENGINES,
    EngineType,
    engine_types,
    suited_engine,
)
from aimbot_lab.training.algorithms.ppo_update import UnsuitedError
from aimbot_lab.training.settings import TrainSettings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "aimbot_lab" / "training" / "EXTENDING.md").read_text(encoding="utf-8")


def code_of(heading: str, language: str) -> list[str]:
    """The blocks of code in a section of the page."""
    (section,) = re.findall(rf"(?ms)^## {heading}\n(.*?)(?=^## |\Z)", PAGE)
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", section)


def refusing(name: str) -> EngineType:
    def make(policy: Any) -> Any:
        raise UnsuitedError(f"{name} is not for this")

    return EngineType(name, make, any_threads=False)


def test_settings_name_the_engines_that_there_are() -> None:
    named = get_args(get_type_hints(TrainSettings)["engine"])
    assert set(named) == {AUTO, *(one.name for one in ENGINES)}
    assert [one.name for one in engine_types(AUTO)] == ["fused", "torch"]
    assert [one.name for one in engine_types("torch")] == ["torch"]


def test_the_first_that_suits_computes_and_the_others_say_why_not() -> None:
    policy = new_model("torch", "hybrid", batch_size=320).policy
    engine, passed_over = suited_engine(policy, (refusing("gpu"), refusing("lstm"), *ENGINES))
    assert engine.name == "fused"
    assert passed_over == (("gpu", "gpu is not for this"), ("lstm", "lstm is not for this"))
    with pytest.raises(ValueError, match=r"^engine gpu: gpu is not for this$"):
        suited_engine(policy, (refusing("gpu"),))


def test_the_engine_of_the_page_learns_what_torch_learns() -> None:
    (code,) = code_of("Add an engine", "python")
    names: dict[str, Any] = {}
    exec(code, names)
    torch_model, model = (new_model("torch", "multi_discrete", batch_size=320) for _ in range(2))
    clocked = EngineType("clocked", names["ClockedEngine"], any_threads=False)
    model.engine, _ = suited_engine(model.policy, (clocked, *ENGINES))
    for one in (torch_model, model):
        one.set_random_seed(3)
        one.learn(2 * one.n_steps * one.n_envs)
    ours, theirs = model.policy.state_dict(), torch_model.policy.state_dict()
    assert all(th.equal(ours[name], theirs[name]) for name in theirs)
    assert model.engine.seconds > 0


@pytest.mark.parametrize("heading", ["Add a network", "Add an algorithm"])
def test_the_code_of_the_page_is_that_of_the_package_that_is_tested(heading: str) -> None:
    package = ROOT / "tests" / "package"
    module = (package / "lab_extras.py").read_text(encoding="utf-8")
    metadata = (package / "pyproject.toml").read_text(encoding="utf-8")
    for language, tested in (("python", module), ("toml", metadata)):
        blocks = code_of(heading, language)
        assert blocks
        assert [block for block in blocks if block not in tested] == []
