"""When checkpoints are kept."""

import time
from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.training.callbacks.taken_steps import TrainingOver
from aimbot_lab.training.checkpoint.checkpoint import MAX_SHARE


class CheckpointCallback(BaseCallback):
    """Calls `mark` where each rollout begins, and there `keep` where a checkpoint is `wanted`.

    `keep` may take MAX_SHARE of the time, which `is_due` heeds: rollouts that are over in no time
    share a checkpoint. Where the training `ends`, one is kept and TrainingOver raised. Comes last,
    so that all that others do there has been done.
    """

    def __init__(self, mark: Callable[[], None], keep: Callable[[], None]) -> None:
        super().__init__()
        self._mark, self._keep = mark, keep
        self._due = time.monotonic()
        self.wanted = self.ends = False

    @property
    def is_due(self) -> bool:
        """Whether time allows another checkpoint."""
        return time.monotonic() >= self._due

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._mark()
        if self.wanted or self.ends:
            began = time.monotonic()
            self._keep()
            now = time.monotonic()
            self._due = now + (now - began) * (1.0 / MAX_SHARE - 1.0)
        if self.ends:
            raise TrainingOver
