"""Curricula of runs, read without running code that they name.

A run keeps the shape of its world beside its curriculum (`spec.json`), so that reading one needs
no world. The data folder notes the code that each training began with, where only the owner can
write: such code may run again.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.config.validation import MayRun, never
from aimbot_lab.experiment.runs.run_record import RESOLVED_NAME
from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.foundation.named_code import NamedCode, is_allowed
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.worlds.registry import code_of, kept_spec, stored_spec

SPEC_NAME = "spec.json"
MAX_SPEC_BYTES = 2**22
OTHERS_WRITE = 0o022  # of a folder's mode


def stored_curriculum(fetch: Callable[[str], Path], *, may_run: MayRun = never) -> LoadedCurriculum:
    """The curriculum of a run, whose artifacts `fetch` gives by their names.

    Code that its world names runs where `may_run` says so; else the world's shape is the one that
    the run kept. Raises LabError where that is damaged.
    """
    path = fetch(RESOLVED_NAME)
    loaded = load_curriculum(path, find=fetch, may_run=may_run)
    if loaded.unasked is None:
        return loaded
    try:
        data = read_bounded(fetch(SPEC_NAME), MAX_SPEC_BYTES)
    except StoreError:  # older runs kept none
        return loaded
    try:
        stored_spec(loaded.config.env, json.loads(data))
    except (ValueError, RecursionError) as error:
        raise LabError(
            f"{SPEC_NAME} of the run is damaged: put back the file as the run wrote it"
        ) from error
    return load_curriculum(path, find=fetch)


def spec_text(env: WorldSettings) -> str | None:
    """What a run keeps as SPEC_NAME; None where its world needs none."""
    document = kept_spec(env)
    return None if document is None else json.dumps(document, indent=1) + "\n"


def note_code(data_folder: DataFolder, env: WorldSettings) -> None:
    """Note the code that a training in `env` begins with, which this process runs."""
    code = code_of(env)
    if code is None or not is_allowed(code):
        return
    with suppress(OSError):  # a full disk: it will have to be trusted anew
        data_folder.code.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data_folder.code / code.sha256).write_text(f"{code.shown}\n", encoding="utf-8")


def noted_in(data_folder: DataFolder) -> MayRun:
    """Whether a training in `data_folder` began with code, as `note_code` noted it."""

    def noted(code: NamedCode) -> bool:
        try:
            status = data_folder.code.stat()
        except OSError:
            return False
        is_own = status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE
        return is_own and (data_folder.code / code.sha256).is_file()

    return noted
