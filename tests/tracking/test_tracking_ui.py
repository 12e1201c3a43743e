import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.ui import ui_command


def test_the_page_is_served_lean_and_to_this_machine_only(data_folder, monkeypatch):
    monkeypatch.setenv("MLFLOW_ENABLE_AI_GATEWAY", "true")
    command = ui_command(data_folder, port=5123)
    assert command.address == "http://127.0.0.1:5123"
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


def test_a_tracking_server_is_its_own_page(data_folder):
    with pytest.raises(ConfigurationError, match="http://host:5000"):
        ui_command(data_folder, tracking_uri="http://host:5000")
