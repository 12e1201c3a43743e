"""What a run is described by as it begins, and its result."""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aimbot_lab.curriculum.current_lesson import Regression
from aimbot_lab.curriculum.reports import CellReport, LessonReport
from aimbot_lab.experiment.config.document import LoadedCurriculum, plain_settings
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.run_record import InitialAgentRef
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.shown_text import (
    markdown_text,
    percent,
    percent_interval,
    shown_return,
    shown_speed,
)
from aimbot_lab.tracking.journal_tracker import RunDescription
from aimbot_lab.tracking.tracker import (
    CURRICULUM_TAG,
    TRAINING_SECONDS_TAG,
    WORLD_TAG,
    RunStatus,
    RunSummary,
)
from aimbot_lab.training.algorithms.registry import any_threads
from aimbot_lab.training.settings import TrainSettings

RESULT_NAME = "result.json"  # among the run's artifacts
NEXT_COMMANDS = {  # what for, and the words but for the run, which comes second
    "Measure its agent on new episodes": ("evaluate",),
    "Film episodes of it": ("record", "-o", "agent.gif"),
    "Why each lesson ended or did not": ("explain",),
    "Save its agent as a folder": ("export", "-o", "agent"),
}
NOT_KEPT = frozenset(
    {
        *("run_id", "tracking_uri", "experiment_id", "seconds", "steps_per_second"),
        *("entries_waiting", "entries_refused", "entries_dropped", "tracking_fault"),
        *("agent_folder", "resumes_at"),
    }
)

LESSON_HEAD = (
    "#",
    "lesson",
    "passed at step",
    "episodes",
    "asks for",
    "evidence",
    "win rate",
    "95 % interval",
    "over the last",
)
_SECTION = re.compile(r"^(?=### )", re.MULTILINE)
CELL_HEAD = ("cell", "episodes", "win rate", "95 % interval")


@dataclass(frozen=True)
class RunResult:
    """How a run ended and where it is tracked."""

    run_id: str
    name: str
    status: RunStatus  # FINISHED: reached its goal; FAILED: did not; KILLED: stopped
    tracking_uri: str
    experiment_id: str
    seed: int
    steps: int  # environment steps
    seconds: float  # of training
    steps_per_second: float
    state_sha256: str  # of weights, optimiser and curriculum state
    lessons: tuple[LessonReport, ...]  # all of the curriculum, in order
    cells: tuple[CellReport, ...]  # of the last lesson begun
    held_back_by: tuple[CellReport, ...]  # cells that have not passed and are weakest
    # (where win rates are tested)
    regressions: tuple[Regression, ...]  # what was lost of earlier lessons, and what came back
    entries_waiting: int  # tracked numbers and files that have not reached the store
    entries_refused: int = 0  # tracked numbers and files that the store will never take
    tracking_fault: str | None = None  # why entries wait, were refused or were dropped
    entries_dropped: int = 0  # tracked numbers and files that the disk had no room for
    agent_folder: str | None = None  # where the agents lie that the run could not keep
    init_from: str | None = None  # the run, or the folder, whose agent it began with
    resumes_at: int | None = (
        None  # the step it would go on from; None: all lessons passed, or can't be
    )
    missing: str = ""  # what the last lesson begun lacks, where that is not `held_back_by`
    has_wins: bool = True  # whether an episode could be won; else there are no win rates

    @property
    def spent_steps(self) -> bool:
        """Whether all its steps ended it, not the last lesson: more can be given to it."""
        return self.status != "KILLED" and any(one.ended_at_step is None for one in self.lessons)

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}

    def kept(self) -> dict[str, Any]:
        """What the run keeps of it: plain values that do not depend on the machine or the store."""
        return {key: value for key, value in self.as_json().items() if key not in NOT_KEPT}


def outcome(result: RunResult) -> str:
    """One sentence on how the run ended."""
    passed = sum(lesson.ended_at_step is not None for lesson in result.lessons)
    if passed == len(result.lessons):
        return "The lesson passed." if passed == 1 else f"All {passed} lessons passed."
    lesson = f"lesson {passed + 1} ({result.lessons[passed].name})"
    if result.status == "KILLED":
        return f"Stopped in {lesson}."
    if result.status == "FINISHED":
        return "All steps taken."
    held = ", ".join(
        f"{Cell(cell.target, cell.difficulty).shown} "
        + (f"at {percent(cell.win_rate)}" if cell.episodes else "(no episode counted yet)")
        for cell in result.held_back_by
    )
    why = f"; held back by {held}" if held else ""
    if result.missing:
        why = f"; missing: {result.missing}"
    return f"The steps ran out in {lesson}{why}."


def note(result: RunResult) -> str:
    """Outcome, lessons, cells, and how to run it again."""
    began, resumes, start = [], [], ""
    if result.init_from:
        began = [f"Began with the agent of {markdown_text(result.init_from)}."]
        start = " --init-from start"
    if result.resumes_at is not None:
        more = " --set train.total_steps=N" if result.spent_steps else ""
        resumes = [f"`aimbot-lab resume {result.run_id}{more}` resumes it."]
    return "\n\n".join(
        [
            f"**{markdown_text(outcome(result))}** {result.steps:,} steps in "
            f"{result.seconds:.0f} s of training ({shown_speed(result.steps_per_second)}), "
            f"seed {result.seed}.",
            *began,
            *resumes,
            "### Lessons",
            *(_of_wins(result) if result.has_wins else _of_returns(result)),
            "`episodes.csv` has every counted episode; `aimbot-lab explain` shows from it why each "
            "lesson ended or did not.",
            "`curriculum.yaml` is the file as written; `resolved.yaml` has every override and "
            f"default worked in, and `aimbot-lab run resolved.yaml{start}` runs exactly this "
            "again.",
        ]
    )


def _of_wins(result: RunResult) -> Iterator[str]:
    """Lessons and cells by their win rates, and what these are."""
    yield markdown_table(LESSON_HEAD, list(_lesson_rows(result)))
    yield "### Last lesson by target and difficulty"
    cells = [
        (
            Cell(cell.target, cell.difficulty).shown,
            f"{cell.episodes:,}",
            percent(cell.win_rate),
            percent_interval(cell.lower, cell.upper) if cell.episodes else "-",
        )
        for cell in result.cells
    ]
    yield markdown_table(CELL_HEAD, cells)
    if result.regressions:
        yield "### Lost and regained"
        yield "\n".join(f"- {markdown_text(regression.line)}" for regression in result.regressions)
    yield (
        "A lesson passes on evidence: the odds that its win rate exceeds the threshold and "
        "was not lucky. The interval of a passed lesson is that of this test: the win rates "
        "that it does not reject, which all exceed the threshold (its upper end is always "
        "100 %). The win rate beside it is that of the episodes that prove it."
    )
    yield (
        "Other win rates are taken over the last episodes of a lesson, in the order in which "
        "they began, so that early wins do not count before the losses that began with them. "
        "Their intervals hold at 95 % however often they are looked at (a confidence "
        "sequence); they are about the mean win rate over these episodes."
    )


def _of_returns(result: RunResult) -> Iterator[str]:
    """Lessons by their mean returns: no episode could be won."""
    rows = [
        (*row[:6], shown_return(lesson.mean_return), row[-1])
        for row, lesson in zip(_lesson_rows(result), result.lessons, strict=True)
    ]
    yield markdown_table((*LESSON_HEAD[:6], "mean return", LESSON_HEAD[-1]), rows)
    yield "`env.win` is missing, so that no episode counts as won: there are no win rates."


def with_section(note: str, title: str, body: str) -> str:
    """`note` with the section `title` holding `body`: in place of the old one, or at its end."""
    head = f"### {title}"
    parts = _SECTION.split(note)
    section = f"{head}\n\n{body}"
    kept = [section if part.startswith(f"{head}\n") else part for part in parts if part.strip()]
    if section not in kept:
        kept.append(section)
    return "\n\n".join(part.strip() for part in kept)


def section_of(note: str, title: str) -> str:
    """The body of the section `title` of `note`; empty if missing."""
    head = f"### {title}\n"
    parts = (part for part in _SECTION.split(note) if part.startswith(head))
    return next(parts, "").removeprefix(head).strip()


def _lesson_rows(result: RunResult) -> Iterator[tuple[object, ...]]:
    for number, lesson in enumerate(result.lessons, start=1):
        yield (
            number,
            markdown_text(lesson.name),
            "-" if lesson.ended_at_step is None else f"{lesson.ended_at_step:,}",
            f"{lesson.episodes:,}",
            lesson.asked or "-",
            lesson.found or "-",
            percent(lesson.win_rate),
            percent_interval(lesson.lower, lesson.upper) + lesson.level if lesson.window else "-",
            f"{lesson.window:,}" if lesson.window else "-",
        )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under their heads, in Markdown."""
    # The page sets columns side by side without a gap.
    body = ["| " + " | ".join(f"{cell}&emsp;" for cell in line) + " |" for line in (head, *rows)]
    return "\n".join([body[0], "|" + " :--- |" * len(head), *body[1:]])


MISSING = "-"
FROM_TAGS = {"version": "lab.version", "code": "lab.code", "git commit": "lab.git_commit"}

ALWAYS = frozenset({"name", "env.threads", "train.checkpoint_every"})
TORCH_THREADS = "train.torch_threads"  # harmless where the engine is the project's own

SECONDS = 5.0  # a question to git may take, on a slow disk

UNSET = str(None), ""
CALLBACKS = "train.callbacks"
MAX_PARAMS = 90  # a page shows a hundred; those of --init-from come on top
NOT_TRAINING_SETTINGS = frozenset({"seed", "tracking", "evaluation", CALLBACKS})
ENDED: Mapping[str, str] = MappingProxyType(
    {"FINISHED": "goal reached", "FAILED": "steps spent", "KILLED": "stopped"}
)
"""By status; a run that an error ended has the status FAILED too, and the tag `unfinished`."""
UNFINISHED = "unfinished"
CRITERIA = "measure", "threshold", "scope"


def flat_settings(values: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every setting under its whole key: lists of numbers in one, other lists by index."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from flat_settings(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(values, list | tuple) and not all(isinstance(v, int | float) for v in values):
        for index, value in enumerate(values):
            yield from flat_settings(value, f"{prefix}.{index}")
    elif isinstance(values, list | tuple):
        yield prefix, " ".join(f"{value:g}" for value in values)
    else:
        yield prefix, str(values)


def settings_that_differ(
    runs: Sequence[tuple[RunSummary, CurriculumFile]],
) -> dict[str, tuple[str, ...]]:
    """The value of each run for every key in which not all agree; "-" where one has no such key.

    Of version, code and commit only what all runs say; of lessons that not all runs have, only how
    many there are.
    """
    said = [name for name, tag in FROM_TAGS.items() if all(tag in run.tags for run, _ in runs)]
    each = [
        {
            **{name: run.tags[FROM_TAGS[name]] for name in said},
            **dict(flat_settings(plain_settings(config))),
        }
        for run, config in runs
    ]
    counts = [len(config.lessons) for _, config in runs]
    alone = tuple(f"lessons.{number}." for number in range(min(counts), max(counts)))
    each = [
        {**{key: one[key] for key in one if not key.startswith(alone)}, "lessons": str(count)}
        for one, count in zip(each, counts, strict=True)
    ]
    keys = dict.fromkeys(key for settings in each for key in settings)
    rows = {key: tuple(settings.get(key, MISSING) for settings in each) for key in keys}
    return {key: values for key, values in rows.items() if len(set(values)) > 1}


def harmless_settings(train: TrainSettings) -> frozenset[str]:
    """Dotted keys of a curriculum whose values can't change the result of training by `train`."""
    return ALWAYS | {TORCH_THREADS} if any_threads(train) else ALWAYS


def without(values: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """`values`, mappings in mappings, less what lies under the dotted `keys`; a copy."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if name in keys:
            continue
        below = frozenset(key[len(name) + 1 :] for key in keys if key.startswith(f"{name}."))
        kept[name] = without(value, below) if below else value
    return kept


def git_tags(folder: Path) -> dict[str, str]:
    """Tags with the commit that `folder` is at and whether tracked files differ from it.

    Empty outside a repository, and without git.
    """
    commit = _ask(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    changed = _ask(folder, "status", "--porcelain", "--untracked-files=no")
    state = {} if changed is None else {"lab.git_dirty": str(bool(changed)).lower()}
    return {"mlflow.source.git.commit": commit, "lab.git_commit": commit[:12], **state}


def _ask(folder: Path, *question: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(folder), *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def describe_run(
    loaded: LoadedCurriculum,
    name: str | None,
    tags: Mapping[str, str] | None = None,
    *,
    start: InitialAgentRef | None = None,
) -> RunDescription:
    """Name, parameters and tags of a run of `loaded`, further `tags` among them.

    Parameters are the settings of learner and arena and what ends lessons, defaults too, by the
    keys that `--set` takes; the whole configuration is an artifact. Runs that differ in nothing but
    their seed have the same `lab.config`: grouped by it, the page shows means over seeds.
    """
    config = loaded.config
    return RunDescription(
        name=name or f"{loaded.name} seed {config.seed}",
        params={
            **(
                {f"init.{key}": str(value) for key, value in start._asdict().items()}
                if start
                else {}
            ),
            **_params(config),
        },
        tags={
            **(tags or {}),
            CURRICULUM_TAG: loaded.name,
            "lab.ended": UNFINISHED,
            WORLD_TAG: config.env.world,
            "lab.seed": str(config.seed),
            "lab.config": config_hash(config, start),
            **({"lab.init_from": start.source} if start else {}),
            **git_tags(loaded.path.absolute().parent),
        },
    )


def outcome_tags(result: RunResult) -> dict[str, str]:
    """What became of a run, to be seen in a list."""
    passed = sum(lesson.ended_at_step is not None for lesson in result.lessons)
    current = min(passed, len(result.lessons) - 1)
    return {
        "lab.ended": ENDED[result.status],
        "lab.outcome": outcome(result),
        "lab.lesson": result.lessons[current].name,
        "lab.lessons_passed": f"{passed} of {len(result.lessons)}",
        TRAINING_SECONDS_TAG: f"{result.seconds:.1f}",
    }


def config_hash(config: CurriculumFile, start: InitialAgentRef | None = None) -> str:
    """Twelve letters that stand for all settings but the seed and what changes no training.

    And for the agent that a run began with. `harmless_settings` says what changes no training.
    """
    idle = harmless_settings(config.train) | NOT_TRAINING_SETTINGS
    values = without(plain_settings(config), idle)
    if start is not None:
        values["start"] = start.sha256
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _params(config: CurriculumFile) -> dict[str, str]:
    """At most `MAX_PARAMS`, without what is not set.

    What ends lessons comes last, and of it the first lessons.
    """
    parts = {"train": asdict(config.train), "env": plain_settings(config)["env"]}
    params = {"seed": str(config.seed), "lessons": str(len(config.lessons))}
    params |= flat_settings({**parts, "forgetting": asdict(config.forgetting)})
    for number, lesson in reversed([*enumerate(config.lessons)]):
        if lesson.completion_criteria is not None:
            criteria = asdict(lesson.completion_criteria)
            asked = {name: criteria[name] for name in CRITERIA}
            params |= flat_settings(asked, f"lessons.{number}.completion_criteria")
    given = [(name, value) for name, value in params.items() if value not in UNSET]
    return dict(given[:MAX_PARAMS])
