"""What the folder of a run becomes when nobody will resume it."""

import pytest

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.ownership import this_process
from aimbot_lab.tracking.run_folder import create_run_folder, run_folders


@pytest.mark.parametrize("settled", [True, False])
def test_a_folder_kept_for_a_resumption_alone_goes_with_its_checkpoints(
    data_folder: DataFolder, settled: bool
) -> None:
    folder = create_run_folder(data_folder, this_process("trial", None)).named("a" * 32)
    folder.checkpoints.mkdir()
    if settled:
        folder.settle("FAILED")
    else:
        folder.release()  # with something left for the store
    (found,) = run_folders(data_folder)
    found.forget_checkpoints()
    assert folder.path.exists() is not settled
    assert not folder.checkpoints.exists()
