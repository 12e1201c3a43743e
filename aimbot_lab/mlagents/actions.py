"""Actions of a behavior: what they are made of, and one for each agent."""

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.mlagents.exception import UnityActionException

Int32Array = npt.NDArray[np.int32]


class ActionTuple:
    """Actions of n agents, `continuous` [n, C] float32 and `discrete` [n, branches] int32.

    What is not given has no columns. Arrays of other types are converted.
    """

    def __init__(
        self, continuous: np.ndarray | None = None, discrete: np.ndarray | None = None
    ) -> None:
        self._continuous: Float32Array | None = None
        self._discrete: Int32Array | None = None
        if continuous is not None:
            self.add_continuous(continuous)
        if discrete is not None:
            self.add_discrete(discrete)

    @property
    def continuous(self) -> Float32Array:
        """[n, C] float32; None before anything was added."""
        return cast(Float32Array, self._continuous)

    @property
    def discrete(self) -> Int32Array:
        """[n, branches] int32; None before anything was added."""
        return cast(Int32Array, self._discrete)

    @property
    def discrete_dtype(self) -> type[np.int32]:
        """The type of discrete actions."""
        return np.int32

    def add_continuous(self, continuous: np.ndarray) -> None:
        """Set the continuous actions [n, C]."""
        self._continuous = np.ascontiguousarray(continuous, np.float32)
        if self._discrete is None:
            self._discrete = np.zeros((len(self._continuous), 0), np.int32)

    def add_discrete(self, discrete: np.ndarray) -> None:
        """Set the discrete actions [n, branches]."""
        self._discrete = np.ascontiguousarray(np.asarray(discrete).astype(np.int32, copy=False))
        if self._continuous is None:
            self._continuous = np.zeros((len(self._discrete), 0), np.float32)


class ActionSpec(NamedTuple):
    """How many continuous numbers an action has, and the size of each discrete branch."""

    continuous_size: int
    discrete_branches: tuple[int, ...]

    def __str__(self) -> str:
        return f"Continuous: {self.continuous_size}, Discrete: {self.discrete_branches}"

    @property
    def discrete_size(self) -> int:
        """How many branches there are."""
        return len(self.discrete_branches)

    def is_discrete(self) -> bool:
        """Whether actions have branches only."""
        return self.discrete_size > 0 and self.continuous_size == 0

    def is_continuous(self) -> bool:
        """Whether actions have continuous numbers only."""
        return self.discrete_size == 0 and self.continuous_size > 0

    def empty_action(self, n_agents: int) -> ActionTuple:
        """Zeros for so many agents."""
        return ActionTuple(
            np.zeros((n_agents, self.continuous_size), np.float32),
            np.zeros((n_agents, self.discrete_size), np.int32),
        )

    def random_action(self, n_agents: int) -> ActionTuple:
        """Actions drawn evenly for so many agents, continuous ones from -1 to 1.

        From NumPy's global generator, as in ML-Agents: `numpy.random.seed` repeats them.
        """
        continuous = np.random.uniform(-1.0, 1.0, (n_agents, self.continuous_size))
        discrete = np.zeros((n_agents, self.discrete_size), np.int32)
        for branch, size in enumerate(self.discrete_branches):
            discrete[:, branch] = np.random.randint(0, size, n_agents, np.int32)
        return ActionTuple(continuous, discrete)

    @staticmethod
    def create_continuous(continuous_size: int) -> "ActionSpec":
        """Actions of so many continuous numbers."""
        return ActionSpec(continuous_size, ())

    @staticmethod
    def create_discrete(discrete_branches: tuple[int, ...]) -> "ActionSpec":
        """Actions of branches of these sizes."""
        return ActionSpec(0, discrete_branches)

    @staticmethod
    def create_hybrid(continuous_size: int, discrete_branches: tuple[int, ...]) -> "ActionSpec":
        """Actions of both."""
        return ActionSpec(continuous_size, discrete_branches)


def checked_action(action: ActionTuple, spec: ActionSpec, *, agents: int, name: str) -> ActionTuple:
    """`action` as it is. Raises UnityActionException unless it fits so many agents of `name`."""
    parts = (("continuous", spec.continuous_size), ("discrete", spec.discrete_size))
    for part, size in parts:
        given = getattr(getattr(action, part, None), "shape", None)
        if given != (agents, size):
            raise UnityActionException(
                f"behavior {name}: {part} actions must have the shape {(agents, size)}, "
                f"agents by actions (got {given})"
            )
    return action
