"""Runs whose process lives on this machine."""

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.ownership import OWNER_NAME
from aimbot_lab.tracking.runs.run_folder import RunFolder, living_folders

LATEST = "latest"


def _begun(folder: RunFolder) -> float:
    """When the run's process wrote that it owns it; s since 1970, 0 where it has just ended."""
    try:
        return (folder.path / OWNER_NAME).stat().st_mtime
    except OSError:
        return 0.0


def running_run(data_folder: DataFolder, run: str) -> RunFolder:
    """The folder of the one running run whose id begins with `run`; "latest" began last.

    Raises ConfigurationError otherwise.
    """
    living = [folder for folder in living_folders(data_folder) if folder.run_id is not None]
    if run == LATEST and living:
        return max(living, key=_begun)
    matches = [one for one in living if run and str(one.run_id).startswith(run)]
    if len(matches) == 1:
        return matches[0]
    exact = [one for one in matches if one.run_id == run]
    if exact:
        return exact[0]
    if matches:
        raise ConfigurationError(f"{run!r}: several running runs begin so; give more of the id")
    running = ", ".join(str(one.run_id) for one in living) or "none"
    raise ConfigurationError(f"{run!r}: no such run is running here (running: {running})")
