"""What replays cost: rollouts of both kinds are timed by turns."""

from aimbot_lab.bench.replays import WARM_UP, _cost, measure_replay_cost


def test_as_many_rollouts_of_each_kind_are_timed() -> None:
    found = measure_replay_cost(2, num_envs=16, n_steps=16)
    assert found.rollouts in (1, 2)  # the last has no next one that ends it
    assert found.lower <= found.cost <= found.upper


def test_the_cost_is_that_of_the_rollouts_that_keep_replays() -> None:
    found = _cost([1.0, 1.1] * 10)
    assert (found.seconds_without, found.seconds_with) == (1.0, 1.1)
    assert round(found.cost, 6) == round(found.lower, 6) == round(found.upper, 6) == 0.1
    assert WARM_UP % 2 == 0  # else the kinds would be swapped
