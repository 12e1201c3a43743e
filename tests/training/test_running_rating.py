"""The running rating against a plain transcription of what ML-Agents' ghost trainer does."""

import numpy as np
import pytest

from aimbot_lab.training.self_play.scores import RunningRating, expected

INITIAL, WINDOW, CURRENT = 1200.0, 4, -1


class GhostTrainer:
    """What ML-Agents keeps, in its own terms: one rating for each slot of the window, and one more
    for the current policy."""

    def __init__(self) -> None:
        self.policy_elos = [INITIAL] * (WINDOW + 1)
        self.snapshot_counter = 0
        self.current_opponent = CURRENT

    def save_snapshot(self) -> None:
        self.policy_elos[self.snapshot_counter] = self.policy_elos[-1]
        self.snapshot_counter = (self.snapshot_counter + 1) % WINDOW

    def end_episode(self, final_reward: float) -> None:
        result = 0.5
        if final_reward > 0:
            result = 1.0
        elif final_reward < 0:
            result = 0.0
        change = self.compute_elo_rating_changes(self.policy_elos[-1], result)
        self.policy_elos[-1] += change

    def compute_elo_rating_changes(self, rating: float, result: float) -> float:
        opponent_rating = self.policy_elos[self.current_opponent]
        r1 = pow(10, rating / 400)
        r2 = pow(10, opponent_rating / 400)
        summed = r1 + r2
        e1 = r1 / summed
        change = result - e1
        self.policy_elos[self.current_opponent] -= change
        return change


@pytest.mark.parametrize("seed", range(5))
def test_the_running_rating_is_that_of_a_transcription_to_the_last_digit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theirs, ours = GhostTrainer(), RunningRating(INITIAL)
    names: list[str] = []
    for game in range(2_000):
        if game % 100 == 0:
            theirs.save_snapshot()
            names.append(f"snapshot-{len(names):06d}")
            ours.take(names[-1])
        place = int(rng.integers(max(0, len(names) - WINDOW), len(names)))
        theirs.current_opponent = place % WINDOW
        result = float(rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.2, 0.6]))
        theirs.end_episode(result)
        ours.add(names[place], (result + 1) / 2)
        assert ours.learner == theirs.policy_elos[-1]
    assert ours.learner > INITIAL + 50
    for place in range(len(names) - WINDOW, len(names)):
        opponents = ours.state()["opponents"]
        assert opponents[names[place]] == theirs.policy_elos[place % WINDOW]


def test_it_goes_on_from_its_state() -> None:
    one, other = RunningRating(INITIAL), RunningRating(0.0)
    one.take("a")
    one.add("a", 1.0)
    one.add("greedy", 0.5)
    other.resume(one.state())
    one.add("a", 0.0)
    other.add("a", 0.0)
    assert other.state() == one.state()
    other.add("a", 1.0)
    assert other.state() != one.state()


@pytest.mark.parametrize("far", [1e6, -1e6])
def test_ratings_too_large_for_powers_of_ten_have_an_expectation(far: float) -> None:
    assert expected(far, far) == 0.5
    assert expected(far, far - 400.0) == pytest.approx(10 / 11)
    assert (expected(far, -far) > 0.5) == (far > 0)
