"""Worlds in full play, which benchmarks measure, whichever world it is."""

from aimbot_lab.bench.sim import Play
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds.registry import default_type, settings_with
from tests.worlds.stranger import WALK, WalkSettings


def test_rows_in_full_play_end_at_all_times() -> None:
    target = default_type().default_target()
    play = Play(settings_with(num_envs=64), Scenario({target: 1.0}))
    assert play.world.spec.max_steps == 300
    ended = [play.run(1) for _ in range(300)]
    assert sum(ended) >= 64
    assert max(ended) <= 8


def test_a_world_that_says_nothing_of_benchmarks_is_played_from_first_episodes_on() -> None:
    world, scenario = WALK.make(WalkSettings(num_envs=4)), Scenario({"right": 1.0})
    WALK.spread_episodes(world, scenario, seed=1, play=lambda steps: steps)
    assert world.scenario_number == 1
    buffers = new_step_buffers(4, len(world.spec.observation_names))
    assert WALK.step_parts(world, scenario, buffers) == {}
    assert WALK.hardest_target() == WALK.default_target() == "right"
