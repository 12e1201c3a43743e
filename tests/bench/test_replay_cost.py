"""What replays cost: rollouts of both kinds are timed by turns."""

from aimbot_lab.bench.costs import WARM_UP, bench_replays, replay_cost


def test_as_many_rollouts_of_each_kind_are_timed() -> None:
    found = bench_replays(3, num_envs=16).document
    assert found["rollouts"] == 3
    assert found["lower"] <= found["difference"] <= found["upper"]
    assert 0 < found["share"] < 1


def test_the_cost_is_that_of_the_rollouts_that_keep_replays() -> None:
    found = replay_cost([1.0, 1.1] * 10, 0.011)
    assert (found["seconds_without"], found["seconds_with"]) == (1.0, 1.1)
    figures = [found[key] for key in ("difference", "lower", "upper")]
    assert [round(figure, 6) for figure in figures] == [0.1] * 3
    assert round(found["share"], 6) == 0.01
    assert WARM_UP % 2 == 0  # else the kinds would be swapped
