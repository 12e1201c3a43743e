"""The arena agrees with the oracle, number for number, over play that meets every rule."""

import math
import os
from collections import Counter

import pytest
from oracle_cases import CASES, EDITED, ODD_REWARDS, Case
from oracle_editing import EditedMatch
from oracle_match import KINDS, Match

from aimbot_lab.worlds.arena.presets import load_presets
from aimbot_lab.worlds.arena.settings import RewardWeights

ENOUGH_STEPS = 43_000  # to meet in each case what it names
STEPS = int(os.environ.get("AIMBOT_LAB_ORACLE_STEPS", "14000"))
MATCH_STEPS = 500  # after which a new match begins, since a row that has come to Stay stays
GRAZING_SHARE = 1e-5  # of all rays, and of all outcomes


def test_the_odd_rewards_weigh_every_term_otherwise_than_usual() -> None:
    odd, usual = vars(ODD_REWARDS), vars(RewardWeights())
    assert [name for name in usual if not odd[name] or odd[name] == usual[name]] == []


@pytest.mark.parametrize("case", [*CASES, *EDITED], ids=lambda case: case.name)
def test_every_number_of_every_step_is_the_oracles(case: Case) -> None:
    """Also after random edits of rows, in the cases of EDITED."""
    kind, seed = (Match, 100_000 * CASES.index(case)) if case in CASES else (EditedMatch, 7_000)
    presets, tally = case.presets or load_presets(), Counter()
    rounds = math.ceil(STEPS / len(CASES) / len(KINDS))
    for first in range(0, rounds, MATCH_STEPS):
        match = kind(case, seed=seed + first, presets=presets, tally=tally)
        length = min(MATCH_STEPS, rounds - first)
        for count in range(length):
            if count == length // 2 and case.later is not None:
                match.set_scenario(case.later)
            match.step()
    missed = [event for event in case.met if not tally[event]]
    assert STEPS < ENOUGH_STEPS or missed == []
    assert tally["grazing rays"] <= 2 + GRAZING_SHARE * tally["rays"]
    assert tally["grazing outcomes"] <= 1 + GRAZING_SHARE * tally["steps"]
