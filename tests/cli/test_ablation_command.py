"""`aimbot-lab bench ablation`: tables and JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from aimbot_lab.bench import ablation
from aimbot_lab.bench.ablation import ALONE, LEFT_OUT, AblationPlan, Attempt
from aimbot_lab.cli.bench import bench


class Stub:
    """Attempts that no training is needed for."""

    seeds: tuple[int, ...] = (1,)
    clipped: Mapping[str, float] = MappingProxyType({})

    def __call__(self, plan: AblationPlan, say: Any) -> Iterator[Attempt]:
        for name in plan.switches:
            say(f"{name} done")
            reached, steps = name != "masks", 1000 * plan.seeds
            for seed in self.seeds:
                yield Attempt(name, seed, reached, steps=steps, seconds=2.0, **self.clipped)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    stub = Stub()
    monkeypatch.setattr(ablation, "attempts", stub)
    return stub


def run(*arguments: str) -> Result:
    return CliRunner().invoke(bench, ["ablation", *arguments])


def test_the_table_has_a_line_for_every_variant(stub: Stub) -> None:
    result = run("--target", "free", "--threshold", "0.6", "--seeds", "3")
    assert result.exit_code == 0, result.output
    assert "\nFree, all difficulties, until a win rate above 60.0 % is proved" in result.stdout
    for name in ALONE:
        steps = "never" if name == "masks" else r"3,000 \[3,000, 3,000\]"
        assert re.search(rf"^{name} +[01] of 1 +{steps} ", result.stdout, re.MULTILINE), name
        assert f"{name} done" in result.stderr


def test_json_holds_every_attempt(stub: Stub) -> None:
    document = json.loads(run("--json").stdout)
    assert document["schema"] == 1
    assert document["plan"]["task"] == "attack"
    assert document["plan"]["seeds"] == 5
    assert [one["variant"] for one in document["variants"]] == list(ALONE)
    bins, masks = document["variants"][0], document["variants"][2]
    assert bins["steps"] == {"median": 5000, "lowest": 5000, "highest": 5000}
    assert bins["attempts"][0]["seconds"] == 2.0
    assert masks["steps"] == {"median": None, "lowest": None, "highest": None}


def test_variants_are_chosen_by_name_and_left_out_in_turn(stub: Stub) -> None:
    chosen = run("--task", "free", "--variant", "target linear", "--variant", "memory")
    assert re.findall(r"^(target linear|memory|bins) ", chosen.stdout, re.MULTILINE) == [
        "target linear",
        "memory",
    ]
    turned = json.loads(run("--leave-one-out", "--json").stdout)
    assert [one["variant"] for one in turned["variants"]] == list(LEFT_OUT)
    assert "\nRecall, until a win rate above 80.0 % is proved" in run("--task", "recall").stdout


def test_a_variant_that_there_is_not_is_refused_with_those_that_there_are(stub: Stub) -> None:
    result = run("--variant", "without memory")
    assert "--variant without memory: there is no such variant; there are bins" in str(
        result.exception
    )
    assert run("--leave-one-out", "--variant", "without memory").exit_code == 0


def test_ctrl_c_shows_what_is_done_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(plan: AblationPlan, say: Any) -> Iterator[Attempt]:
        yield Attempt("bins", 1, True, steps=1000, seconds=2.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(ablation, "attempts", broken_off)
    result = run()
    assert result.exit_code != 0
    assert "bins" in result.stdout
