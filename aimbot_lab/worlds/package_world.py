"""A world that a package brings, whose steps are checked: what is wrong ends a run in one line."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ForeignCodeError, blamed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
    close_world,
)
from aimbot_lab.worlds.step_faults import episodes_fault, masks_fault, numbers_fault


class PackageWorld:
    """`inner`, shown to a person as `shown`; every other attribute is that of `inner`.

    Raises ForeignCodeError, in one line, for whatever `inner` raises and for what it must not give.
    """

    spec: WorldSpec
    num_envs: int
    inner: BatchWorld
    keep_endings: bool

    def __init__(self, inner: BatchWorld, shown: str) -> None:
        for name, value in (
            ("inner", inner),
            ("spec", inner.spec),
            ("num_envs", inner.num_envs),
            ("shown", shown),
        ):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "shown"):  # which a copy asks for before it has any
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force."""
        return self.inner.scenario_number

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from."""
        with self._blamed("set_scenario"):
            return int(self.inner.set_scenario(scenario))

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first episodes in all rows from `seed`; `observations` [N, D] is overwritten."""
        with self._blamed("reset"):
            self.inner.reset(seed, observations)
        self._refuse("reset", numbers_fault(observations, self.spec))

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`."""
        with self._blamed("step"):
            batch = self.inner.step(actions, buffers)
        self._refuse(
            "step",
            numbers_fault(buffers.observations, self.spec)
            or numbers_fault(buffers.final_observations, self.spec, where=buffers.finished)
            or numbers_fault(buffers.rewards, self.spec)
            or episodes_fault(batch, buffers, spec=self.spec, rows=self.num_envs),
        )
        return batch

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [N, sum of branches], True where a branch index makes sense now."""
        with self._blamed("action_masks"):
            self.inner.action_masks(masks)
        self._refuse("action_masks", masks_fault(masks, self.spec))

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on."""
        with self._blamed("snapshot"):
            return self.inner.snapshot()

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot`."""
        with self._blamed("restore"):
            self.inner.restore(snapshot)

    def begin_anew(self, observations: Float32Array) -> None:
        """Break off what runs and begin an episode in every row; writes `observations` [N, D]."""
        restarting: Any = self.inner
        with self._blamed("begin_anew"):
            restarting.begin_anew(observations)
        self._refuse("begin_anew", numbers_fault(observations, self.spec))

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` as a person would look at it; with `ending` as its last episode ended."""
        with self._blamed("draw"):
            return self.inner.draw(row, ending=ending)

    def close(self) -> None:
        """End what it holds beside memory."""
        with self._blamed("close"):
            close_world(self.inner)

    def _blamed(self, call: str) -> AbstractContextManager[None]:
        return blamed(f"{self.shown}: its {call} raised", ForeignCodeError)

    def _refuse(self, call: str, fault: str | None) -> None:
        if fault is not None:
            raise ForeignCodeError(f"{self.shown}: its {call} gave {fault}")
