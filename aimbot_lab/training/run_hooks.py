"""What a training reports to its run, what the run keeps of it, and what it is asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.reports import CurriculumView, LessonReport


@dataclass(frozen=True)
class TrainingSnapshot:
    """Where a training stands after an update."""

    step: int  # environment steps taken
    total_steps: int
    seconds: float  # since training began
    steps_per_second: float  # since the last report
    view: CurriculumView


@dataclass(frozen=True)
class TrainingOutcome:
    """How a training ended."""

    steps: int  # environment steps
    seconds: float
    stopped: bool  # ended by request, before its time
    state_sha256: str


class Observer(Protocol):
    """Watches a training; every call returns at once."""

    def stage(self, text: str) -> None:
        """A part of the work begins, for example building the simulator."""

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """An update was made; at steps that nothing but the training decides."""

    def glance(self, snapshot: TrainingSnapshot) -> None:
        """Where it stands between two reports, by the clock: for the eye alone."""

    def promotion(self, report: LessonReport, step: int) -> None:
        """A lesson was passed at environment step `step`."""

    def notice(self, text: str) -> None:
        """Something happened that a person should know."""


class SilentObserver:
    """An observer that keeps what it saw to itself."""

    def stage(self, text: str) -> None:
        """Say nothing."""

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """Say nothing."""

    def glance(self, snapshot: TrainingSnapshot) -> None:
        """Say nothing."""

    def promotion(self, report: LessonReport, step: int) -> None:
        """Say nothing."""

    def notice(self, text: str) -> None:
        """Say nothing."""


MAX_SHARE = 0.05  # of a training's time that its checkpoints may take


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a training's future depends on.

    `parts` are further bytes that `state` relies on, each under a name that no other content
    ever gets in the same training, so that a part which is kept already need not be made again.
    """

    step: int  # environment steps
    state: bytes
    parts: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)


class CheckpointSink(Protocol):
    """Keeps checkpoints."""

    def keep(self, checkpoint: Checkpoint) -> None:
        """Keep `checkpoint`, or go on with those before it; never raises for a disk's troubles."""


def no_part(name: str) -> bytes:
    """Reads the parts of a checkpoint that has none."""
    raise KeyError(name)


class RecordSink(Protocol):
    """Where texts go that grow while a training runs; a tracker is one."""

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into the file `name`, at byte `place`; whether that could be kept."""

    def sync(self) -> None:
        """Have all of it on the disk, as far as that works."""


class TextSink(Protocol):
    """Keeps texts; a tracker is one."""

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`, in place of an older one; whether that worked."""


class Requests(Protocol):
    """Requests from outside; a control channel brings them."""

    def requests(self) -> Sequence[tuple[str, Any]]:
        """What is asked, each with a key."""

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        """Answer it."""

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        """Keep, for a resumption, that `document` was done at environment step `step`."""

    def changes(self) -> Sequence[tuple[int, Any]]:
        """What was kept so, oldest first."""


class LivePublisher(Protocol):
    """Shows a training while a page watches it."""

    def watch(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Handle a request to watch; the answer to it."""

    def publish(self, progress: CurriculumProgress, *, step: int, policy: Any) -> None:
        """A rollout begins at environment step `step`; `policy` is None before the first."""

    def show_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Show the present agent at once; the answer to that request."""


class AgentSink(Protocol):
    """Keeps the present agent of a training, where that is requested."""

    def keep_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Keep `policy`, saved `about` a step and a lesson; the answer to that request."""


@dataclass(frozen=True)
class RunLinks:
    """The record gets every counted episode and every event of the curriculum.

    What is requested is done where rollouts begin. Checkpoints are kept there, too,
    and a few replays of every lesson; `live` shows there how the training stands. `agents` keeps
    the present agent where that is requested.
    """

    record: RecordSink | None = None
    requests: Requests | None = None
    checkpoints: CheckpointSink | None = None
    replays: TextSink | None = None
    live: LivePublisher | None = None
    agents: AgentSink | None = None


UNLINKED = RunLinks()
