"""Runs in the store that counts: read back, added to after their end, deleted."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import isfinite, nan
from operator import itemgetter
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError, DiskError, LabError, StoreError
from aimbot_lab.foundation.files import exclusive
from aimbot_lab.tracking.data_folder import (
    DataFolder,
    FilesHeldError,
    RunRefusedError,
    StoreRefusedError,
    choose_address,
    kept_address,
)
from aimbot_lab.tracking.journal import (
    EndEntry,
    Entry,
    EntrySink,
    FileEntry,
    Journal,
    MetricsEntry,
    Refuse,
    TagsEntry,
    deliver_batch,
    growing_entries,
    send_files,
    send_group,
)
from aimbot_lab.tracking.journal_tracker import now_ms, open_store
from aimbot_lab.tracking.run_folder import (
    LATEST,
    RunFolder,
    find_run_folder,
    left_over_folders,
    refuse_unless_free,
    this_process,
)
from aimbot_lab.tracking.tracker import (
    MAX_TAG,
    OWN_TRAINING,
    PARENT,
    WIN_RATES,
    MetricPoint,
    RunFilter,
    RunStatus,
    RunSummary,
    checked_metrics,
    checked_name,
    checked_own_key,
    checked_run_name,
    checked_tags,
    is_own_training,
    shortened,
)

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore

MAX_RUNS = 50_000
_RankKey = tuple[float, float, str]


def list_runs(
    data_folder: DataFolder,
    *,
    tracking_uri: str | None = None,
    max_results: int = 100,
    condition: str = "",
) -> list[RunSummary]:
    """The newest runs of all experiments, newest first; empty where there is no store yet.

    Only those that fulfil `condition`, a filter of MLflow's. Raises ConfigurationError for an
    address that can't be used, StoreError where the store can't.
    """
    store = _existing_store(data_folder, tracking_uri)
    return [] if store is None else store.runs(max_results, condition)


def _existing_store(data_folder: DataFolder, tracking_uri: str | None) -> "MlflowStore | None":
    address = choose_address(data_folder, explicit=tracking_uri)
    address.require_database()
    if address.embedded and not data_folder.database.exists():
        return None
    return open_store(data_folder, address)


def _readable_store(data_folder: DataFolder, tracking_uri: str | None) -> "MlflowStore":
    """The store that counts; ConfigurationError where it is a file that is not there."""
    address = choose_address(data_folder, explicit=tracking_uri)
    address.require_database()
    return open_store(data_folder, address)


def list_own_trainings(
    data_folder: DataFolder, *, tracking_uri: str | None = None, max_results: int
) -> list[RunSummary]:
    """The newest trainings that are part of no sweep, newest first. Raises as `list_runs`."""
    return matching_runs(
        data_folder,
        RunFilter(condition=OWN_TRAINING, takes=is_own_training),
        tracking_uri=tracking_uri,
        max_results=max_results,
    )


def matching_runs(
    data_folder: DataFolder,
    wanted: RunFilter,
    *,
    tracking_uri: str | None = None,
    max_results: int,
    best: bool = False,
) -> list[RunSummary]:
    """The newest of the `wanted` runs, newest first.

    With `best` those with the highest win rates, the highest first; runs without one don't count.
    The store selects them: it takes no longer where there are many others. Raises as `list_runs`.
    """
    store = _existing_store(data_folder, tracking_uri)
    if store is None:
        return []
    search = _best_runs if best else _newest_runs
    try:
        return search(store, wanted, max_results)
    except StoreRefusedError:  # a server of an older version knows no such condition
        return search(store, wanted._replace(condition=""), max_results)


def _newest_runs(store: "MlflowStore", wanted: RunFilter, count: int) -> list[RunSummary]:
    found: list[RunSummary] = []
    for page in store.pages(count, wanted.condition, experiments=wanted.experiments):
        found += filter(wanted.takes, page)
        if len(found) >= count:
            break
    return found[:count]


def _best_runs(store: "MlflowStore", wanted: RunFilter, count: int) -> list[RunSummary]:
    """From the lists of the store by each measure, as far as a run may be among the best.

    A run's win rate is its value of one of them. So those that no list has shown yet rank behind
    the last of one list or of the other.
    """
    lists = {
        measure: store.pages(
            count,
            wanted.condition,
            order=f"metrics.`{measure}` DESC",
            experiments=wanted.experiments,
        )
        for measure in WIN_RATES
    }
    found: dict[str, tuple[_RankKey, RunSummary]] = {}
    last: dict[str, _RankKey] = {}  # of each list that goes on
    while True:
        for measure, pages in [*lists.items()]:
            page = next(pages, [])
            valued = [run for run in page if isfinite(run.metrics.get(measure, nan))]
            if page and len(valued) == len(page):
                last[measure] = _rank_key(page[-1], page[-1].metrics[measure])
            else:
                lists.pop(measure)
                last.pop(measure, None)
            for run in filter(wanted.takes, valued):
                if rate := run.win_rate:
                    found[run.run_id] = _rank_key(run, rate.value), run
        ranked = sorted(found.values(), key=itemgetter(0))[:count]
        if not lists or (len(ranked) == count and ranked[-1][0] <= min(last.values())):
            return [run for _, run in ranked]


def _rank_key(run: RunSummary, win_rate: float) -> _RankKey:
    """What runs are ranked by, as the store does: the highest first, the newest of equal ones."""
    return -win_rate, -run.started.timestamp(), run.run_id


def find_run(
    data_folder: DataFolder, beginning: str, *, tracking_uri: str | None = None
) -> RunSummary:
    """The one run whose id begins so; "latest" is the newest training of no sweep.

    Raises ConfigurationError where no run or more than one is meant.
    """
    at: Any = {"tracking_uri": tracking_uri}
    if beginning == LATEST:
        for newest in list_own_trainings(data_folder, max_results=1, **at):
            return newest
        if list_runs(data_folder, max_results=1, **at):
            raise ConfigurationError("'latest': all runs belong to sweeps; give the id of one")
    matches = []
    if beginning.isalnum():
        condition = f"attributes.run_id LIKE '{beginning}%'"
        wanted = RunFilter(condition, lambda run: run.run_id.startswith(beginning))
        matches = matching_runs(data_folder, wanted, max_results=2, **at)
    if len(matches) != 1:
        raise _no_run(beginning, "several runs begin with that" if matches else "no such run")
    return matches[0]


def read_run(
    data_folder: DataFolder, run_id: str, *, tracking_uri: str | None = None
) -> RunSummary:
    """The run of that id, however many others there are.

    Raises ConfigurationError if there is no such run, StoreError if the store can't be read.
    """
    if not run_id.isalnum():
        raise _no_run(run_id, "no such run")
    condition = f"attributes.run_id = '{run_id}'"
    for found in list_runs(data_folder, tracking_uri=tracking_uri, condition=condition):
        return found
    raise _no_run(run_id, "no such run")


def _no_run(run: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{run!r}: {reason}; aimbot-lab runs lists them")


def metric_history(
    data_folder: DataFolder, run_id: str, *, key: str, tracking_uri: str | None = None
) -> list[MetricPoint]:
    """Every value of a run's metric by rising step; empty where it has none. Raises as below."""
    found = metric_histories(data_folder, run_id, keys=(key,), tracking_uri=tracking_uri)
    return found[key]


def metric_histories(
    data_folder: DataFolder,
    run_id: str,
    *,
    keys: Sequence[str],
    tracking_uri: str | None = None,
) -> dict[str, list[MetricPoint]]:
    """Every value of a run's metrics by rising step; empty where it has none.

    Raises ConfigurationError for an address that can't be used, StoreError where the store can't.
    """
    store = _readable_store(data_folder, tracking_uri)
    return {key: store.metric_history(run_id, key) for key in keys}


def download_artifact(
    data_folder: DataFolder, run_id: str, *, name: str, tracking_uri: str | None = None
) -> Path:
    """Where the artifact `name` of a run can be read; not to be written to.

    Raises ConfigurationError for an address or a name that can't be used, StoreError where the
    store can't or has no such artifact.
    """
    try:
        checked_name(name)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return _readable_store(data_folder, tracking_uri).download(run_id, name)


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
    store = open_store(data_folder, choose_address(data_folder, explicit=tracking_uri))
    with TemporaryDirectory("-addition") as folder:
        # Files first: the tags and metrics then refer to something that is there.
        for entry in [*_entries(addition, Path(folder))]:
            store.run(run_id, Path(folder)).send([entry])


def _entries(addition: Addition, folder: Path) -> Iterator[Entry]:
    """Files, copied to `folder`, and values."""
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
    if addition.metrics:
        yield MetricsEntry(addition.step, now_ms(), checked_metrics(addition.metrics))
    if addition.tags:
        yield TagsEntry(checked_tags(addition.tags))


def label_run(
    data_folder: DataFolder,
    run_id: str,
    *,
    name: str | None = None,
    tags: Mapping[str, str | None],
    tracking_uri: str | None = None,
) -> None:
    """Rename a run where `name` is given, and set its tags; one whose value is None goes.

    Raises ConfigurationError for a name or a tag that a run can't have, StoreError where the store
    can't be used or has no such run.
    """
    try:
        checked = {
            checked_own_key(key): value and shortened(value, MAX_TAG) for key, value in tags.items()
        }
    except ValueError as error:
        raise ConfigurationError(f"tag: {error}") from error
    name = None if name is None else checked_run_name(name)
    _readable_store(data_folder, tracking_uri).label(run_id, name, checked)


@dataclass(frozen=True)
class Deletion:
    """What would be deleted."""

    named: tuple[RunSummary, ...]
    below: tuple[RunSummary, ...]  # runs of the trials of the sweeps among them

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """All of them, the lowest first."""
        return (*reversed(self.below), *self.named)


def plan_deletion(
    names: Sequence[str], data_folder: DataFolder, *, tracking_uri: str | None = None
) -> Deletion:
    """The runs that `names` mean, and all that lie below them.

    Raises ConfigurationError where a name means no single run, or where one of the runs may still
    be trained; nothing is deleted then.
    """
    close_orphan_runs(data_folder)
    found = [find_run(data_folder, name, tracking_uri=tracking_uri) for name in names]
    named = {run.run_id: run for run in found}
    below: dict[str, RunSummary] = {}
    runs = list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS)
    level = set(named)
    while level:
        next_level = [run for run in runs if run.tags.get(PARENT) in level]
        below.update({run.run_id: run for run in next_level if run.run_id not in named})
        level = {run.run_id for run in next_level}
    deletion = Deletion(tuple(named.values()), tuple(below.values()))
    for run in deletion.runs:
        folder = find_run_folder(data_folder, run.run_id)
        if folder is not None:
            refuse_unless_free(folder)
        elif run.status == "RUNNING":
            raise ConfigurationError(
                f"run {run.run_id} is RUNNING and has no folder in {data_folder.runs}: it may be "
                "trained elsewhere"
            )
    return deletion


def delete_run(
    run: RunSummary, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> None:
    """Delete `run` in its store, its files, and its checkpoints. Raises StoreError."""
    address = choose_address(data_folder, explicit=tracking_uri)
    folder = find_run_folder(data_folder, run.run_id)
    if folder is not None:
        refuse_unless_free(folder)
    open_store(data_folder, address).discard_run(run.run_id)
    if folder is not None:
        folder.remove()


StatusOf = Callable[[RunFolder], RunStatus]
OnFault = Callable[[str, str], None]  # is told a run's id, and why something of it did not arrive


def killed(_folder: RunFolder) -> RunStatus:
    """The status of a run whose process died, as far as tracking knows."""
    return "KILLED"


def ignore_fault(_run_id: str, _reason: str) -> None:
    """Do nothing about a fault."""


def close_orphan_runs(
    data_folder: DataFolder, *, status_of: StatusOf = killed, on_fault: OnFault = ignore_fault
) -> list[str]:
    """The ids of the runs whose dead owners had not ended them; now they have ended.

    Each with the status that `status_of` gives. Those with a checkpoint can still be resumed.

    Delivers whatever journals of dead owners hold, and of runs that ended while their store was
    down or did not take them. What can't be delivered now stays for the next call; no error is
    raised for it, but `on_fault` is called. Costs next to nothing where nothing is left over. Any
    number of processes may call it at once; one works, the others return at once.
    """
    if not any(left_over_folders(data_folder)):
        return []
    closed: list[str] = []
    stores: dict[str | None, MlflowStore] = {}
    unreachable: dict[str | None, str] = {}
    with suppress(LabError), exclusive(data_folder.orphan_lock, wait=False):
        for folder in left_over_folders(data_folder):
            uri, fault_of = folder.owner.tracking_uri, partial(on_fault, folder.run_id or "")
            if uri in unreachable:
                fault_of(unreachable[uri])
                continue
            try:
                if uri not in stores:
                    stores[uri] = open_store(data_folder, kept_address(data_folder, uri))
                if folder.run_id is not None:
                    data_folder.drop_unfinished_copies(folder.run_id)
                closed += _settle(folder, stores[uri], status_of, fault_of)
            except (RunRefusedError, FilesHeldError, DiskError) as error:  # other runs may be taken
                fault_of(str(error))
            except LabError as error:
                unreachable[uri] = str(error)
                fault_of(str(error))
    return closed


def _settle(
    folder: RunFolder, store: "MlflowStore", status_of: StatusOf, refuse: Refuse
) -> list[str]:
    run_id = folder.run_id or store.find_run(folder.owner.token)
    if run_id is None:
        folder.remove()
        return []
    if folder.run_id is None:
        folder = folder.named(run_id)
    if folder.owner.pid is not None and not folder.owner.is_on_this_machine():
        # Its lease is over, but it may live and come back: then it finds that it has lost the run.
        folder = folder.taken_over(this_process(folder.owner.token, folder.owner.tracking_uri))
    sink = store.run(run_id, folder.path)
    try:
        had_ended, ending = _deliver(folder, sink, status_of, refuse)
    except LabError:
        if folder.hold is not None:
            folder.release()
        raise
    folder.settle()
    is_news = not had_ended or ending.status == "KILLED"
    return [run_id] if folder.owner.pid is not None and is_news else []


def _deliver(
    folder: RunFolder, sink: EntrySink, status_of: StatusOf, refuse: Refuse
) -> tuple[bool, EndEntry]:
    """Whether the run's own process had ended it, and its end, which the store has now.

    Raises FilesHeldError where the store has all but files.
    """
    journal = Journal(folder.path)
    fault: StoreError | None = None
    try:
        while journal.entries_wait or (journal.files_wait and fault is None):
            try:
                deliver_batch(journal, sink, refuse=refuse, with_files=fault is None)
            except FilesHeldError as error:
                fault = error
        had_ended, ending = journal.ending is not None, journal.ending
        if ending is None:  # not through the journal: the disk may be full
            ending = EndEntry(status_of(folder), journal.written_ms)
            growing = growing_entries(folder.path)
            fault = fault or send_files(journal, sink, growing)
            send_group(sink, [ending], refuse)
        if fault is not None:
            raise FilesHeldError(str(fault)) from fault
        return had_ended, ending
    finally:
        journal.close()
