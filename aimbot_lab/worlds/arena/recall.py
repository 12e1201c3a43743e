"""Rows whose agents stand still while they are shown what they have to recall."""

import numpy as np

from aimbot_lab.foundation.kernels.sampler_kinds import CONSTANT
from aimbot_lab.worlds.arena.core.recall import write_held
from aimbot_lab.worlds.arena.core.state import RECALL_SECONDS, ArenaState, Bools, ScenarioTables

ALLOWED = np.array([1, 0, 0, 1, 0, 0, 1, 0], np.bool_)  # of an agent that is held: nothing


def may_recall(scenario: ScenarioTables) -> bool:
    """Whether an episode of `scenario` may have `recall_seconds` above 0."""
    kind, value = scenario.sampler[RECALL_SECONDS], scenario.sampler_values[RECALL_SECONDS, 0]
    return bool(kind != CONSTANT or value > 0)


def has_recall(state: ArenaState) -> bool:
    """Whether an episode that runs has."""
    return bool((state.parameters[:, RECALL_SECONDS] > 0).any())


def held_rows(state: ArenaState) -> Bools:
    """[B] whether the agent of each row stands still in its next decision."""
    held = np.empty(len(state.yaw), np.bool_)
    write_held(state, held)
    return held
