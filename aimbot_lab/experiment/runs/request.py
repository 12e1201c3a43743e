"""What to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.experiment.runs.resumable_runs import ResumableRun
from aimbot_lab.tracking.address import without_password
from aimbot_lab.tracking.data_folder import DataFolder

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.starting import InitialAgent


@dataclass(frozen=True)
class RunRequest:
    """What to run, and where it is tracked.

    With `resume`, that run goes on from its last checkpoint, on the store where it began; such a
    request comes from `resume_checks.check_resume`. A caller may give a `key` to find the run
    by with `resumable_runs` while it is not finished.
    """

    curriculum: LoadedCurriculum
    data_folder: DataFolder
    name: str | None = None  # of the run; by default the curriculum's
    tracking_uri: str | None = None
    resume: ResumableRun | None = None
    key: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)  # of a new run, beside its own
    start: "InitialAgent | None" = None  # the agent that a new run begins with
    take_over: bool = False  # resume it even though another process may still train it

    @property
    def run_name(self) -> str:
        """What the run is called."""
        if self.resume is not None:
            return self.resume.record.name
        return self.name or self.curriculum.name

    @property
    def public_curriculum(self) -> LoadedCurriculum:
        """The curriculum with texts that everyone who sees the run may read."""
        return LoadedCurriculum(
            config=self.curriculum.config,
            source_text=without_password(self.curriculum.source_text),
            resolved_text=without_password(self.curriculum.resolved_text),
            path=self.curriculum.path,
        )
