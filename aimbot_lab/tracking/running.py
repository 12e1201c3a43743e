"""Runs whose process lives on this machine."""

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import RunFolder, living_folders


def running_run(data_folder: DataFolder, run: str) -> RunFolder:
    """The folder of the one running run whose id begins with `run`.

    Raises ConfigurationError otherwise.
    """
    living = [folder for folder in living_folders(data_folder) if folder.run_id is not None]
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
