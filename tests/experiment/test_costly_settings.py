"""Settings that would take for ever, or more than 32 bits: refused, or told before the start."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, faults

from aimbot_lab.cli.commands.run import plan_text
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.plan import plan_curriculum
from aimbot_lab.training.checks import UpdateCost, update_cost


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("train.n_epochs=1e9", "train.n_epochs: must be at most 10000 (got 1000000000"),
        (
            "train.network.layers=[4096,4096,4096,4096,4096,4096,4096,4096]",
            "train.network.layers: must have at most 33,554,432 weights between them (got 117,",
        ),
        (
            "train={n_epochs: 10_000, batch_size: 1024, network: {layers: [2048, 2048]}}",
            "train.n_epochs: is too much work: an update would take 2.1e+15 multiply-adds, must be",
        ),
        (
            "train.reward_scale=1e30",
            "train.reward_scale: times the largest of env.rewards, 999, must be at most 1e+12, as",
        ),
        ("env.time_limit=1e-300", "env.time_limit: must be at least 0.0001 (got 1e-300)"),
    ],
)
def test_what_no_update_could_compute_is_refused(override: str, what: str) -> None:
    (line,) = faults(GOOD, override)
    assert line.startswith(f"--set {override}: {what}")


def cost_of(config: CurriculumFile) -> UpdateCost:
    return update_cost(config.train, config.learned_env)


def test_the_plan_says_what_an_update_costs() -> None:
    Path("c.yaml").write_text(GOOD, encoding="utf-8")
    cheap = load_curriculum("c.yaml")
    dear = load_curriculum("c.yaml", ["train.network.layers=[2048,2048]", "train.n_epochs=100"])
    assert not cost_of(cheap.config).costly
    assert cost_of(dear.config).costly
    text = " ".join("\n".join(plan_text(plan_curriculum(dear), 80)).split())
    assert "an update takes some 2.1e+13 multiply-adds, about" in text
    assert (
        plan_curriculum(cheap).as_json()["update_multiply_adds"]
        == cost_of(cheap.config).multiply_adds
    )
