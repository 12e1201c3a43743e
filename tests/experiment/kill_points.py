"""Kills trainings at chosen instants, resumes them, and compares them with unbroken ones.

    python kill_points.py FOLDER ROUND

writes one JSON line per instant. ROUND chooses the seed.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from killed_runs import curriculum, forked, fresh_folder, in_fork, tracked

import aimbot_lab.experiment.runs.run as run_module
from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.experiment.runs import run_record
from aimbot_lab.experiment.runs.run_record import close_orphan_runs
from aimbot_lab.foundation import files
from aimbot_lab.tracking import journal, run_folder
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import JournalTracker

PASSES, SPENDS = 2, 1  # seeds: the last lesson is passed, the steps are spent


class KillPoint(NamedTuple):
    """An instant: the `call`-th call of `place.name`, before it, in its midst or after it."""

    place: Any
    name: str
    call: int = 1
    when: str = "before"  # or "after", or "within" a write, of which half arrives
    file: str = ""  # counts only calls whose first two arguments, as text, hold this
    seed: int = SPENDS


POINTS: Mapping[str, KillPoint] = {
    "record: nothing written": KillPoint(run_module, "write_record"),
    "record: curriculum half written": KillPoint(run_record, "put_file", 2),
    "record: all but run.json": KillPoint(run_record, "put_file", 3),
    "record: not yet under its name": KillPoint(Path, "rename", file="checkpoints.new"),
    "record: whole": KillPoint(run_module, "write_record", when="after"),
    "first checkpoint: nothing written": KillPoint(run_record, "put_file", file="step-"),
    "first checkpoint: half written": KillPoint(
        files, "append_whole", when="within", file="aimbot-lab checkpoint"
    ),
    "first checkpoint: not yet renamed": KillPoint(Path, "replace", file="step-"),
    "first checkpoint: renamed": KillPoint(Path, "replace", when="after", file="step-"),
    "first checkpoint: whole": KillPoint(run_record, "put_file", when="after", file="step-"),
    "last lesson passed: agent not saved": KillPoint(run_module, "log_agents", seed=PASSES),
    "last lesson passed: agent saved": KillPoint(
        run_module, "log_agents", when="after", seed=PASSES
    ),
    "last lesson passed: end not kept": KillPoint(JournalTracker, "finish", seed=PASSES),
    "last lesson passed: end kept": KillPoint(
        run_folder.RunFolder, "forget_checkpoints", seed=PASSES
    ),
    "last lesson passed: checkpoints gone": KillPoint(
        run_folder.RunFolder, "forget_checkpoints", when="after", seed=PASSES
    ),
    "last lesson passed: end stored": KillPoint(run_folder.RunFolder, "settle", seed=PASSES),
    "steps spent: not noted, nor an agent saved": KillPoint(
        run_record, "put_file", when="after", file="step-000000032768"
    ),
    "steps spent: not noted": KillPoint(run_module, "note_spent_steps"),
    "steps spent: noted": KillPoint(run_module, "note_spent_steps", when="after"),
    "steps spent: files that grew are kept": KillPoint(
        journal.Journal, "append", when="after", file="FileEntry(kept='growing/events"
    ),
    "steps spent: end kept, not stored": KillPoint(journal.Sender, "finish"),
    "steps spent: end stored": KillPoint(run_folder.RunFolder, "settle"),
    "steps spent: settled, not released": KillPoint(run_folder.RunFolder, "release"),
}


def arm(point: KillPoint) -> None:
    """Have this process die at `point`."""
    real, calls = getattr(point.place, point.name), 0

    def fatal(*given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += point.file in " ".join(map(str, given[:2]))
        if calls < point.call:
            return real(*given, **options)
        if point.when == "within":
            os.write(given[0], bytes(given[1])[: len(given[1]) // 2])
        if point.when == "after":
            real(*given, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    setattr(point.place, point.name, fatal)


def killed(loaded: LoadedCurriculum, data: DataFolder, point: KillPoint) -> bool:
    """Whether an attempt died at `point`."""
    return not forked(loaded, data, prepare=lambda: arm(point)).ended


class Found(NamedTuple):
    """The newest run of a data folder."""

    run_id: str
    status: str
    runs: int  # that there are


def found(data: DataFolder) -> Found:
    """The newest run, once whoever finds it dead has ended it."""
    answer = data.root.parent / "found.json"

    def look() -> None:
        close_orphan_runs(data)
        runs = list_runs(data)
        answer.write_text(json.dumps([runs[0].run_id, runs[0].status, len(runs)]))

    in_fork(look)
    return Found(*json.loads(answer.read_text()))


def compare(folder: Path, name: str, expected: Mapping[str, Any], loaded: LoadedCurriculum) -> None:
    """Write how a run that died at the instant `name` compares with an unbroken one."""
    data = fresh_folder(folder, name.replace(" ", "-").replace(":", ""))
    died = killed(loaded, data, POINTS[name])
    before = found(data)
    if before.status == "KILLED":
        forked(loaded, data)
    after = found(data)
    ours = tracked(data, after.run_id)
    line = {
        "point": name,
        "died": died,
        "status_found": before.status,
        "runs": after.runs,
        "same_status": after.status == expected["status"],
        "same_metrics": ours["values"] == expected["values"],
        "same_files": ours["files"] == expected["files"],
        "same_state": ours["state_sha256"] == expected["state_sha256"],
        "twice": ours["twice"],
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, number = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    wholes: dict[int, tuple[LoadedCurriculum, Mapping[str, Any]]] = {}
    for base in (PASSES, SPENDS):
        loaded = curriculum(folder, base + 2 * number, "hybrid_ppo")
        data = fresh_folder(folder, f"whole-{base}")
        forked(loaded, data)
        wholes[base] = loaded, tracked(data, found(data).run_id)
    for name, point in POINTS.items():
        loaded, expected = wholes[point.seed]
        compare(folder, name, expected, loaded)


if __name__ == "__main__":
    main()
