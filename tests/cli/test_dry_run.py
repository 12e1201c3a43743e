"""`aimbot-lab run --dry-run` shows the plan and creates nothing; `--on ray` with actors."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tiny_runs import invoke_plainly

from aimbot_lab.cli.commands.run import plan_text
from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs import plan
from aimbot_lab.experiment.runs.plan import plan_curriculum, tried_speed

GOTO = Path(__file__).parents[2] / "curricula" / "goto.yaml"


pytestmark = pytest.mark.usefixtures("here")


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["run", str(GOTO), *words])


@pytest.fixture
def short_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests/experiment/test_plan.py asserts breaks off soon."""
    monkeypatch.setattr(plan, "LONGEST", 20)


def test_it_tells_each_lesson_and_creates_nothing(here: Path) -> None:
    result = run("--dry-run")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "lesson 6/6 'all levels'\n  mix        goto 1 20 %, goto 2 20 %" in result.stdout
    assert "in every cell that win rate exceeds 99.5 %" in result.stdout
    assert "gae_lambda: 0.95" in result.stdout
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(("steps", "rest"), [(512, ""), (500, " and the rest of the last rollout")])
def test_steps_that_end_within_a_rollout_are_told_with_its_rest(
    here: Path, steps: int, rest: str
) -> None:
    train = f"train: {{algo: ppo, total_steps: {steps}, n_steps: 64, batch_size: 64}}"
    lines = "name: c", "env: {world: gymnasium, id: CartPole-v1}", train
    (here / "c.yaml").write_text("\n".join(lines), "utf-8")
    said = CliRunner().invoke(cli, ["run", "c", "--dry-run"]).stdout
    assert f"at most {steps} steps{rest}, seed 1;" in said


@pytest.mark.usefixtures("short_forecasts")
def test_the_json_document_is_the_plan(here: Path) -> None:
    document = json.loads(run("--dry-run", "--json", "--seed", "5").stdout)
    expected = plan_curriculum(load_curriculum(GOTO, ["seed=5"])).as_json()
    assert document == json.loads(json.dumps(expected))


def test_warnings_are_told_on_standard_error_and_in_the_document() -> None:
    result = run("--dry-run", "--json", "--set", "train.total_steps=300")
    warnings = json.loads(result.stdout)["warnings"]
    assert len(warnings) == 2
    assert result.stderr.splitlines() == [f"warning: {warning}" for warning in warnings]


def test_a_forecast_tries_the_speed_and_creates_nothing(here: Path) -> None:
    lines = "name: c", "env: {world: gymnasium, id: CartPole-v1}", "train: {algo: a2c}"
    (here / "c.yaml").write_text("\n".join(lines), "utf-8")
    speed = tried_speed(load_curriculum("c.yaml").config, 1.0)
    assert speed is not None
    assert speed > 0
    assert [path.name for path in here.iterdir()] == ["c.yaml"]


@pytest.mark.usefixtures("short_forecasts")
def test_a_forecast_says_how_long_the_steps_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aimbot_lab.experiment.runs.plan.tried_speed", lambda config: 10_000.0)
    said = run("--forecast")
    assert "here: 10,000 steps/s, so all steps take 33:20;" in said.stdout
    assert json.loads(run("--forecast", "--json").stdout)["steps_per_second"] == 10_000
    assert run("--forecast", "--processes", "2").exit_code == 2
    monkeypatch.setattr("aimbot_lab.experiment.runs.plan.tried_speed", lambda config: None)
    said = run("--forecast")
    assert (said.exit_code, said.stderr.startswith("no forecast: ")) == (0, True)


@pytest.mark.usefixtures("short_forecasts")
def test_no_line_is_wider_than_asked_for() -> None:
    lessons = [*plan_text(plan_curriculum(load_curriculum(GOTO.with_name("mix.yaml"))), 72)][1:-1]
    lines = [line for lesson in lessons for line in lesson.splitlines()]
    assert max(map(len, lines)) <= 72


@pytest.mark.usefixtures("short_forecasts")
def test_of_several_processes_also_of_torchrun_s_it_tells_their_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("--dry-run", "--processes", "3")
    assert "\nprocesses: 3, each with 5 to 6 of 16 shards\n" in run(*words).stdout
    document = json.loads(run(*words, "--json").stdout)
    assert document["sharing"] == {"shards": 16, "processes": [3, 3]}
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "processes: 2, each with 8 of 16 shards" in run("--dry-run").stdout


@pytest.mark.usefixtures("short_forecasts")
@pytest.mark.parametrize(("samples", "warned"), [(16_384, False), (32_768, True)])
def test_large_minibatches_are_warned_of(samples: int, warned: bool) -> None:
    result = run("--dry-run", "--json", "--set", f"train.batch_size={samples}")
    warnings = json.loads(result.stdout)["warnings"]
    assert any("more than 16,384 samples" in warning for warning in warnings) == warned


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "lessons.0.targets.goto=0"], "weights must not sum to 0"),
        (["--tracking-uri", "nonsense://x"], "nonsense"),
        (["--processes", "17"], "there are only 16 shards"),
    ],
)
def test_what_cannot_be_met_is_refused(arguments: list[str], said: str) -> None:
    result = run("--dry-run", *arguments)
    assert getattr(result.exception, "exit_code", None) == 2
    assert said in str(result.exception)
    assert result.stdout == ""


ACTORS = ("--set", "train.actors.number=2")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--seeds", 2), "--seeds can't be used with several processes for one training"),
        (("--processes", 2), "--processes 2 --on ray: train.actors feed one learner"),
    ],
)
def test_what_does_not_go_with_actors_on_ray_is_refused(
    tmp_path: Path, words: tuple[object, ...], told: str
) -> None:
    place = ("--data-dir", tmp_path / "data")
    result = invoke_plainly("run", "goto", "--on", "ray", *place, *ACTORS, *words, wanted=2)
    assert told in result.said
    assert not (tmp_path / "data").exists()
