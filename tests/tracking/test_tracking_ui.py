import json
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from urllib.parse import unquote, urlsplit

import pytest

import aimbot_lab.tracking.mlflow_app
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import embedded_address
from aimbot_lab.tracking.mlflow_app import APP_NAME, EXPERIMENT_TAGS, TOKEN_VARIABLE, create_app
from aimbot_lab.tracking.ownership import OWNER_TAG
from aimbot_lab.tracking.run_summary import RunSummary
from aimbot_lab.tracking.ui import page_of, page_of_experiment, ui_command


def test_the_page_is_served_lean_and_to_this_machine_only(data_folder, monkeypatch):
    monkeypatch.setenv("MLFLOW_ENABLE_AI_GATEWAY", "true")
    command = ui_command(data_folder, port=5123)
    assert command.address.startswith("http://127.0.0.1:5123/")
    assert command.arguments[1:4] == ["-m", "mlflow", "server"]
    pairs = set(zip(command.arguments, command.arguments[1:], strict=False))
    assert {("--host", "127.0.0.1"), ("--port", "5123"), ("--workers", "1")} <= pairs
    assert command.environment["MLFLOW_BACKEND_STORE_URI"] == data_folder.tracking_uri
    assert command.environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert command.environment["MLFLOW_ENABLE_AI_GATEWAY"] == "false"
    assert command.environment["DO_NOT_TRACK"] == "true"


def test_the_address_with_its_password_is_no_argument(data_folder, tmp_path):
    uri = f"sqlite:///{data_folder.database}"
    assert uri not in " ".join(ui_command(data_folder, tracking_uri=uri).arguments)


def test_each_start_has_a_token_of_its_own_which_only_the_environment_holds(data_folder):
    first, second = ui_command(data_folder), ui_command(data_folder)
    tokens = {urlsplit(command.address).path.strip("/") for command in (first, second)}
    assert tokens == {command.environment[TOKEN_VARIABLE] for command in (first, second)}
    assert len(tokens) == 2
    assert min(map(len, tokens)) >= 32
    assert not [token for token in tokens if token in " ".join(first.arguments + second.arguments)]


@pytest.mark.parametrize("value", [None, "elsewhere:app"])
def test_the_page_is_not_started_without_its_guard(data_folder, monkeypatch, value):
    found = [] if value is None else [EntryPoint(APP_NAME, value, "mlflow.app")]
    monkeypatch.setattr(aimbot_lab.tracking.mlflow_app, "entry_points", lambda **_: found)
    with pytest.raises(ConfigurationError, match="pip install --editable"):
        ui_command(data_folder)


def test_the_guard_is_not_started_without_a_token(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(ConfigurationError, match=TOKEN_VARIABLE):
        create_app()
    monkeypatch.setenv(TOKEN_VARIABLE, "")
    with pytest.raises(ConfigurationError, match=TOKEN_VARIABLE):
        create_app()


def test_a_tracking_server_is_its_own_page(data_folder):
    with pytest.raises(ConfigurationError, match="http://host:5000"):
        ui_command(data_folder, tracking_uri="http://host:5000")


def run(run_id, experiment_id="1"):
    started = datetime(2026, 1, 1, tzinfo=UTC)
    return RunSummary(run_id, "n", "e", experiment_id, "FINISHED", started, None, {}, {})


def test_one_run_is_opened_at_its_charts():
    page = page_of([run("a")])
    assert page == "/#/experiments/1/runs/a/model-metrics?workflowType=machine_learning"


def test_several_runs_are_charted_alone_in_their_experiment():
    page = unquote(page_of([run("a"), run("b"), run("a")]))
    assert page.startswith("/#/experiments/1/runs?workflowType=machine_learning")
    assert page.endswith("compareRunsMode=CHART&searchFilter=run_id IN ('a', 'b')")


def test_runs_of_several_experiments_are_charted_together():
    page = unquote(page_of([run("a", "1"), run("b", "7")]))
    assert page.startswith('/#/compare-experiments/s?experiments=["1","7"]&workflowType=')
    assert page.endswith("searchFilter=run_id IN ('a', 'b')")


def test_no_run_leads_to_the_experiments():
    assert page_of([]).startswith("/#/experiments?")
    assert page_of_experiment(run("a", "3")).startswith("/#/experiments/3/runs?")


def test_the_page_takes_an_experiment_for_one_of_training_also_an_older_one(data_folder):
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, embedded_address(data_folder))
    older = store.client.create_experiment("older")
    for name in ("older", "newer"):
        tags = store.client.get_experiment(store.experiment_id(name)).tags
        assert EXPERIMENT_TAGS.items() <= tags.items()
    ((_, view),) = ((key, view) for key, view in EXPERIMENT_TAGS.items() if "View" in key)
    assert "metrics.`learning/win_rate`" in json.loads(view)["selectedColumns"]
    assert store.experiment_id("older") == older


def test_the_tag_of_the_owning_process_is_not_shown_on_the_page():
    assert OWNER_TAG.startswith("mlflow.")
