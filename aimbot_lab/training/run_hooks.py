"""What ties a training to its run: a record that grows, and requests from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.training.checkpoint.checkpoint import CheckpointSink


class RecordSink(Protocol):
    """Where texts go that grow while a training runs; a tracker is one."""

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into the file `name`, at byte `place`; whether that could be kept."""
        ...

    def sync(self) -> None:
        """Have all of it on the disk, as far as that works."""
        ...


class TextSink(Protocol):
    """Who keeps texts; a tracker does."""

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`, in place of an older one; whether that worked."""
        ...


class Requests(Protocol):
    """Who asks a training from outside; a control channel is one."""

    def requests(self) -> Sequence[tuple[str, Any]]:
        """What is asked, each with a key."""
        ...

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        """Answer it."""
        ...

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        """Keep, for a resumption, that `document` was done at environment step `step`."""
        ...

    def changes(self) -> Sequence[tuple[int, Any]]:
        """What was kept so, oldest first."""
        ...


class LivePublisher(Protocol):
    """Who shows a training while somebody watches it; else it does nothing."""

    def watch(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Somebody watches, for so many seconds; the answer to that request."""
        ...

    def publish(self, progress: CurriculumProgress, *, step: int, policy: Any) -> None:
        """A rollout begins at environment step `step`; `policy` is None before the first."""
        ...

    def show_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Show the present agent at once; the answer to that request."""
        ...


class AgentSink(Protocol):
    """Who keeps the present agent of a training for good, where that is asked for."""

    def keep_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Keep `policy`, saved `about` a step and a lesson; the answer to that request."""
        ...


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
