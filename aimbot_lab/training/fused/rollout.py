"""A rollout as rows that hold all that is known of a sample in one place."""

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.weights import NetShape


class FusedRollout:
    """`rows` [T, B, W]: a sample's inputs, masks, actions, old log-probabilities, advantage,
    return and old value.

    What the networks are shown is written step by step while it is collected; the rest comes from
    the rollout buffer when it is complete.
    """

    def __init__(self, shape: NetShape) -> None:
        self._shape = shape
        self._width = shape.inputs + shape.masks + shape.branches + shape.ratios + 3
        self._shown = shape.inputs + shape.masks
        self.rows: Floats = np.zeros((0, 0, self._width), np.float32)
        self._samples = self.rows.reshape(0, self._width)  # [T B, W] the same
        self.after = self.rows  # [T + 1, B, W] the same, and a step that follows the rollout
        self.steps = 0  # whose inputs are there

    def begin(self, steps: int, rows: int) -> None:
        """Make room for so many steps of so many environments."""
        self.steps = 0
        if self.rows.shape[:2] != (steps, rows):
            self.after = np.zeros((steps + 1, rows, self._width), np.float32)
            self.rows = self.after[:steps]
            self._samples = self.rows.reshape(steps * rows, self._width)

    def take_step(self) -> int:
        """The step that comes next; where there are more than there is room for, the last."""
        self.steps += 1
        return min(self.steps, len(self.rows)) - 1

    def show(self, step: int, features: Floats) -> None:
        """Keep inputs and masks [B, F + M] of `step`, which may be the one after the rollout."""
        self.after[step, :, : self._shown] = features

    def show_all(self, features: Floats) -> None:
        """Keep inputs and masks [T, B, F + M] of all steps."""
        self.rows[:, :, : self._shown] = features
        self.steps = len(self.rows)

    @property
    def shown(self) -> Floats:
        """Inputs and masks [T, B, F + M] of all steps, a view."""
        return self.rows[:, :, : self._shown]

    def complete(self, buffer: RolloutBuffer) -> Floats:
        """The rows [T B, W], step by step, with what `buffer` knows of them."""
        steps, rows = self.rows.shape[:2]
        rest = self.rows[:, :, self._shown :]
        branches, ratios = self._shape.branches, self._shape.ratios
        rest[:, :, :branches] = buffer.actions.reshape(steps, rows, branches)
        rest[:, :, branches : branches + ratios] = buffer.log_probs.reshape(steps, rows, ratios)
        for column, values in enumerate((buffer.advantages, buffer.returns, buffer.values)):
            rest[:, :, branches + ratios + column] = values
        return self._samples
