"""Each of these laws fails on a world that breaks it, and a spec says what is wrong with it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import BoolArray, ObservationBlock, StepBuffers
from aimbot_lab.worlds.registry import spec_faults
from aimbot_lab.worlds.testing import Subject, laws
from tests.worlds.race import RIGHT, Race, race_spec
from tests.worlds.recorded_race import RACE, RaceReplays, RaceSettings
from tests.worlds.tank import SPEC, TANK, TankReplays, Tanks, TankType, tanks


class Unclipped(Tanks):
    def read(self, actions: np.ndarray) -> np.ndarray:
        super().read(actions)
        return actions.T


class Unwritten(Tanks):
    def action_masks(self, masks: BoolArray) -> None:
        masks[self.numbers[0] <= 0.0, 1] = False


class Asked(Tanks):
    def action_masks(self, masks: BoolArray) -> None:
        super().action_masks(masks)
        self.numbers[0] += 0.125


class NoChoice(Tanks):
    def action_masks(self, masks: BoolArray) -> None:
        masks[:] = self.numbers[:1].T > 0.0


class Reusing(Tanks):
    """Gives its episodes in arrays that the next ones overwrite."""

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> EpisodeBatch:
        batch = super().step(actions, buffers)
        if not hasattr(self, "kept"):
            self.kept = np.zeros_like(self.counts[0])
        order = self.kept[: len(batch.order)]
        order[:] = batch.order
        return batch._replace(order=order)


class OtherLevel(TankReplays):
    def row_start(self, world: Tanks, row: int):
        start = super().row_start(world, row)
        return start and {**start, "numbers": start["numbers"] + np.float32(1e-6)}


class OtherLength(TankReplays):
    def row_start(self, world: Tanks, row: int):
        start = super().row_start(world, row)
        return start and {**start, "counts": start["counts"] + 1}


class Forgetful(TankReplays):
    def row_start(self, world: Tanks, row: int) -> None:
        return None


def kept_by(replays: TankReplays) -> Subject:
    kind = TankType()
    kind.replays = replays
    return tanks(kind=kind)


class Undeclared(Race):
    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.spec = replace(self.spec, has_draws=False)


class Endless(Tanks):
    spec = replace(SPEC, continuous_bounds=((0.0, 2.0), (1.0, 1.0)))


BOUNDS = laws.continuous_columns_end_at_their_bounds
MASKS = laws.masks_leave_a_choice
REPLAYS = laws.a_recorded_episode_is_played_again_bit_for_bit
BROKEN = {
    "numbers beyond the bounds count": (BOUNDS, tanks(Unclipped), "Arrays are not equal"),
    "bounds do not rise": (laws.the_spec_agrees_with_itself, tanks(Endless), "must rise"),
    "masks are not written": (MASKS, tanks(Unwritten), "a mask is not written"),
    "masks change the world": (MASKS, tanks(Asked), "equal|changes when"),
    "what ended is overwritten": (laws.what_ended_stays_as_it_was, tanks(Reusing), "order"),
    "no choice is left": (MASKS, tanks(NoChoice), "a branch has no choice left"),
    "a replay sees other numbers": (REPLAYS, kept_by(OtherLevel()), "observations of a replay"),
    "a replay ends elsewhere": (REPLAYS, kept_by(OtherLength()), "at another decision|observ"),
    "a beginning is not kept": (REPLAYS, kept_by(Forgetful()), "must give its start"),
    "a draw is not declared": (
        laws.the_agents_of_a_row_end_together,
        Subject(Undeclared, RIGHT),
        "a draw, which the spec says there is not",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_law_fails_on_a_world_that_breaks_it(name: str) -> None:
    law, subject, words = BROKEN[name]
    with pytest.raises(AssertionError, match=words):
        law(subject)


def test_tanks_mask_something_and_not_always() -> None:
    world = Tanks(TANK.settings())
    masks = np.zeros((4, 2), np.bool_)
    world.set_scenario(tanks().scenario)
    world.reset(1, np.zeros((4, 3), np.float32))
    world.action_masks(masks)
    assert masks[:, 1].any()
    assert not masks[:, 1].all()


def test_a_race_is_replayed_by_its_law_too() -> None:
    REPLAYS(Subject(lambda rows: RACE.make(RaceSettings(num_envs=rows)), RIGHT, kind=RACE))
    assert isinstance(RACE.replays, RaceReplays)


TWO = race_spec(2)
BOTH = "observation_low and observation_high have the shapes"
WRONG_SPECS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"observation_low": TWO.observation_low[:2]}, f"{BOTH} (2,) and (3,); both must be (3,)"),
    (
        {"observation_low": np.array([-3, 4, 0], np.float32)},
        "the lower bound of observation other_1 exceeds the upper",
    ),
    ({"observation_names": ("place", "place", "steps")}, "observation_names must differ"),
    (
        {"blocks": (ObservationBlock("seen", "vector", (2,)),)},
        "blocks hold 2 columns; an observation has 3",
    ),
    ({"branches": (0,)}, "every branch must have at least one choice (got (0,))"),
    ({"branches": (), "action_names": ()}, "there must be a branch or a continuous column"),
    ({"action_names": ("move", "turn")}, "action_names must have 1 names (got 2)"),
    ({"difficulties": {"left": 0}}, "targets and difficulties must have the same keys"),
    ({"reward_terms": ()}, "reward_terms must have at least 1"),
    ({"agents": 0}, "agents must be at least 1 (got 0)"),
    ({"decision_seconds": 0.0}, "decision_seconds must be above 0 (got 0.0)"),
    ({"abilities": frozenset({"fly"})}, "no ability is called 'fly'"),
    ({"episode_columns": ("length",)}, "episode_columns: every world has length already"),
    (
        {"episode_columns": ("seconds",), "result_columns": ("seconds",)},
        "result_columns: every line has seconds already",
    ),
    (
        {"episode_columns": ("far|thest",)},
        "episode_columns: 'far|thest' must be of letters, digits, and the signs _ - .",
    ),
)


@pytest.mark.parametrize(("change", "fault"), WRONG_SPECS, ids=lambda value: str(value)[:30])
def test_each_fault_of_a_spec_is_a_line(change: dict[str, Any], fault: str) -> None:
    assert list(spec_faults(replace(TWO, **change))) == [fault]


def test_what_is_no_spec_is_a_line_too() -> None:
    assert list(spec_faults({"agents": 1})) == ["it must be a WorldSpec"]
