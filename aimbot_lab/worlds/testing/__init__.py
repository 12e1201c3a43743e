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

from aimbot_lab.worlds.testing import contract_laws, repeat_laws
from aimbot_lab.worlds.testing.subject import Subject

CHECKS: tuple[Callable[[Subject], None], ...] = (
    contract_laws.the_spec_agrees_with_itself,
    contract_laws.a_wrong_action_changes_nothing,
    contract_laws.misuse_is_refused,
    contract_laws.scenarios_are_numbered_and_checked,
    contract_laws.continuous_columns_end_at_their_bounds,
    contract_laws.masks_leave_a_choice,
    contract_laws.a_row_can_be_drawn,
    contract_laws.episodes_are_counted_whole,
    contract_laws.what_ended_stays_as_it_was,
    contract_laws.the_agents_of_a_row_end_together,
    contract_laws.result_lines_give_the_columns_back,
    contract_laws.only_what_ended_can_be_cut_off,
    contract_laws.episodes_know_their_scenario,
    repeat_laws.the_same_seed_gives_the_same_bits,
    repeat_laws.an_episode_begins_from_its_seed_alone,
    repeat_laws.parts_play_as_the_whole,
    repeat_laws.observations_lie_in_their_bounds,
    repeat_laws.a_snapshot_goes_on_bit_for_bit,
    repeat_laws.keeping_endings_changes_nothing,
    repeat_laws.a_recorded_episode_is_played_again_bit_for_bit,
)
"""Every law of a world."""

__all__ = ["CHECKS", "Subject"]
