"""The laws of a world, as checks that any world can be held against, a stranger's too.

    import pytest
    from aimbot_lab.worlds.testing import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_world_is_a_world(check):
        check(Subject(lambda rows: MyWorld(MySettings(num_envs=rows)), Scenario({"task": 1.0})))

Each check makes worlds of its own, plays them with random actions and raises AssertionError, which
says what does not hold. What needs an ability is checked where the world's spec has it.
"""

from collections.abc import Callable

from aimbot_lab.worlds.testing import laws
from aimbot_lab.worlds.testing.laws import Subject

CHECKS: tuple[Callable[[Subject], None], ...] = (
    laws.the_spec_agrees_with_itself,
    laws.a_wrong_action_changes_nothing,
    laws.misuse_is_refused,
    laws.scenarios_are_numbered_and_checked,
    laws.continuous_columns_end_at_their_bounds,
    laws.masks_leave_a_choice,
    laws.a_row_can_be_drawn,
    laws.episodes_are_counted_whole,
    laws.what_ended_stays_as_it_was,
    laws.the_agents_of_a_row_end_together,
    laws.result_lines_give_the_columns_back,
    laws.only_what_ended_can_be_cut_off,
    laws.episodes_know_their_scenario,
    laws.the_same_seed_gives_the_same_bits,
    laws.an_episode_begins_from_its_seed_alone,
    laws.parts_play_as_the_whole,
    laws.observations_lie_in_their_bounds,
    laws.a_snapshot_goes_on_bit_for_bit,
    laws.keeping_endings_changes_nothing,
    laws.a_recorded_episode_is_played_again_bit_for_bit,
)
"""Every law of a world."""

__all__ = ["CHECKS", "Subject"]
