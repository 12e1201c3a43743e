"""A sweep keeps the target blocks that it began with, wherever its workers are."""

from pathlib import Path

from sweep_files import CURRICULUM, write_sweep

from aimbot_lab.experiment.config.document import with_overrides
from aimbot_lab.sweep.document import load_sweep
from aimbot_lab.sweep.record import begin, fingerprint, load
from aimbot_lab.sweep.storage import choose_storage, open_storage
from aimbot_lab.tracking.data_folder import DataFolder

BLOCKS = "goto:\n  1:\n    - {name: yard, fire_base: {center: [5, 5], diameter: 6}}\n"


def test_trials_and_reruns_play_the_blocks_that_the_sweep_began_with(tmp_path: Path) -> None:
    path = write_sweep(tmp_path)
    (tmp_path / "own.yaml").write_text(BLOCKS, encoding="utf-8")
    given = CURRICULUM.replace("env: {", "env: {presets: [own.yaml], ")
    (tmp_path / "tiny.yaml").write_text(given, encoding="utf-8")
    sweep = load_sweep(path)
    folder = DataFolder(tmp_path / "data")
    folder.create()
    storage = open_storage(choose_storage(folder, "small", None))
    begin(storage, sweep, resume=False)
    (tmp_path / "own.yaml").write_text(BLOCKS.replace("6", "3"), encoding="utf-8")
    record = load(storage, "small")
    assert record.base.config == sweep.base.config
    assert with_overrides(record.base, ["seed=9"]).config.env == sweep.base.config.env
    assert fingerprint(load_sweep(path)) != fingerprint(sweep)
