"""Where a run would go is checked before anything slow, and nothing is made for it."""

import os
import subprocess
import sys
import tempfile

import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking import data_folder as data_folder_module
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.opening import check_destination
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import checked_run_name


def refusal(folder, settings=None, uri=None):
    with pytest.raises(ConfigurationError) as caught:
        check_destination(DataFolder(folder), settings or TrackingSettings(), tracking_uri=uri)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_that_can_be_made_passes_and_is_not_made(tmp_path):
    check_destination(DataFolder(tmp_path / "a" / "b"), TrackingSettings())
    check_destination(DataFolder(tmp_path), TrackingSettings(), tracking_uri="http://host:5000")
    check_destination(
        DataFolder(tmp_path), TrackingSettings(), tracking_uri=f"sqlite:///{tmp_path}/x.db"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    message = refusal(tmp_path / "file" / "data")
    assert "Not a directory" in message
    assert "--data-dir" in message


def test_a_folder_with_too_long_a_name_is_refused(tmp_path):
    assert "too long" in refusal(tmp_path / ("x" * 300))


def test_a_link_to_nowhere_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "No such file" in refusal(tmp_path / "link" / "data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in refusal(tmp_path / "data")


def test_a_full_disk_is_refused(tmp_path, monkeypatch):
    class Full(tempfile.SpooledTemporaryFile):
        def flush(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(data_folder_module, "TemporaryFile", lambda dir: Full())
    assert "No space left on device" in refusal(tmp_path)


def test_an_address_that_cannot_be_used_is_refused_wherever_it_is_given(tmp_path, monkeypatch):
    assert "nonsense" in refusal(tmp_path, uri="nonsense://x")
    assert "no folder" in refusal(tmp_path, TrackingSettings(uri=f"sqlite:///{tmp_path}/no/x.db"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")
    assert "MLFLOW_TRACKING_URI" in refusal(tmp_path)


def test_checking_imports_nothing_slow(tmp_path):
    script = """
import sys
from pathlib import Path
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.opening import check_destination
from aimbot_lab.tracking.settings import TrackingSettings
check_destination(DataFolder(Path(sys.argv[1])), TrackingSettings())
assert not {"mlflow", "sqlalchemy", "torch", "numpy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


@pytest.mark.parametrize("name", ["a", "x" * 250, "größe 日本 👩‍🚀", " padded "])
def test_a_name_of_one_line_will_do(name):
    assert checked_run_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "a\nb", "a\rb", "a\tb", "a\x1b[0m", "\u2028", "x" * 251, "\udcff"]
)
def test_a_name_that_a_list_cannot_show_is_one_line_with_exit_code_2(name):
    with pytest.raises(ConfigurationError, match="name of a run") as caught:
        checked_run_name(name)
    assert caught.value.exit_code == 2
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
