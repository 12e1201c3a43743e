"""What is learned of a run after it has ended, added to it."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.entries import Entry, FileEntry, MetricsEntry, TagsEntry
from aimbot_lab.tracking.journal_tracker import now_ms
from aimbot_lab.tracking.limits import checked_metrics, checked_name, checked_tags


@dataclass(frozen=True)
class Addition:
    """Numbers, tags and files for a run; an artifact of the same name is replaced."""

    step: int = 0  # environment step of the metrics
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # artifact name -> content
    files: Mapping[str, Path] = field(default_factory=dict)  # artifact name -> file to copy


def add_to_run(
    data_folder: DataFolder, run_id: str, addition: Addition, *, tracking_uri: str | None = None
) -> None:
    """Store `addition` with the run, at once and without a journal.

    Raises StoreError where the store can't be used or has no such run, OSError where a file
    can't be read, ValueError for a name that no store takes.
    """
    address = choose_address(data_folder, explicit=tracking_uri)
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, address)
    with TemporaryDirectory("-addition") as folder:
        # Files first: the tags and metrics then refer to something that is there.
        for entry in [*_file_entries(addition, Path(folder)), *_value_entries(addition)]:
            store.run(run_id, Path(folder)).send([entry])


def _file_entries(addition: Addition, folder: Path) -> Iterator[Entry]:
    for name in [*addition.texts, *addition.files]:
        place = PurePosixPath(checked_name(name))
        copy = folder / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name in addition.texts:
            copy.write_text(addition.texts[name], encoding="utf-8")
        else:
            shutil.copyfile(addition.files[name], copy)
        parent = "" if place.parent == PurePosixPath(".") else str(place.parent)
        yield FileEntry(str(place), parent)


def _value_entries(addition: Addition) -> Iterator[Entry]:
    if addition.metrics:
        yield MetricsEntry(addition.step, now_ms(), checked_metrics(addition.metrics))
    if addition.tags:
        yield TagsEntry(checked_tags(addition.tags))
