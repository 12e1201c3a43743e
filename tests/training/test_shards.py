"""Blocks of rows: how many there are, in which order they are learned, and that sums go by them."""

import numpy as np
import pytest
import torch as th
from guessing import ROWS, STEPS, new_model

from aimbot_lab.training.algorithms.registry import shard_count
from aimbot_lab.training.fused.core.act import fill_noise
from aimbot_lab.training.fused.engine import MAX_LANES, deal
from aimbot_lab.training.processes.exchange import (
    Shards,
    asked_count,
    divides,
    permutations,
    usual_count,
)
from aimbot_lab.training.settings import TrainSettings

pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


@pytest.mark.parametrize(
    ("rows", "batch", "count"),
    [(512, 4096, 16), (512, 2048, 8), (64, 256, 1), (96, 8192, 16), (100, 8192, 4), (16, 8192, 8)],
)
def test_as_many_shards_as_leave_each_enough_samples_and_two_rows(
    rows: int, batch: int, count: int
) -> None:
    assert usual_count(rows, batch) == count
    assert usual_count(rows, batch // 16, samples=16) == min(count, usual_count(rows, batch))


def test_a_number_that_does_not_divide_is_refused_with_the_nearest_that_does() -> None:
    assert asked_count(4, 512, 4096) == 4
    with pytest.raises(ValueError, match=r"must divide 512 rows.*got 7; nearest that does: 8"):
        asked_count(7, 512, 4096)
    assert not divides(8, 8, 4096)  # a row alone


def test_an_order_depends_on_its_shard_and_not_on_who_computes_it() -> None:
    whole = Shards(4, 0, 4, 8)
    orders = permutations(whole, 50, seed=3, update=1024, epoch=1)
    assert (np.sort(orders, axis=1) == np.arange(50)).all()
    for first in range(4):
        part = permutations(Shards(4, first, 1, 8), 50, seed=3, update=1024, epoch=1)
        np.testing.assert_array_equal(part[0], orders[first])
    assert len({one.tobytes() for one in orders}) == 4
    other = permutations(whole, 50, seed=3, update=1024, epoch=2)
    assert not (other == orders).all(axis=1).any()


def test_noise_depends_on_the_number_of_a_row_and_the_step_alone() -> None:
    def noise(first: int, rows: int, step: int) -> np.ndarray:
        uniform, normal = np.zeros((rows, 3), np.float32), np.zeros((rows, 2), np.float32)
        fill_noise(uniform, normal, np.array([7, first, step], np.uint64))
        return np.concatenate([uniform, normal], axis=1)

    np.testing.assert_array_equal(noise(0, 9, 5)[4:], noise(4, 5, 5))
    seen = np.concatenate([noise(0, 500, step) for step in range(40)])
    assert 0.0 <= seen[:, :3].min() <= seen[:, :3].max() < 1.0
    assert len(np.unique(seen[:, 0])) > 19_900
    np.testing.assert_allclose(seen.mean(axis=0), [0.5, 0.5, 0.5, 0.0, 0.0], atol=0.03)
    np.testing.assert_allclose(seen.var(axis=0), [1 / 12] * 3 + [1.0] * 2, rtol=0.05)
    assert np.abs(np.corrcoef(seen.T) - np.eye(5)).max() < 0.03


@pytest.mark.parametrize("shards", [1, 2, 8, 16, 64])
@pytest.mark.parametrize("size", [1, 255, 256, 700, 4096])
def test_every_sample_is_in_one_piece_of_its_own_shard(size: int, shards: int) -> None:
    cut = deal(size, piece=256, shards=shards)
    asked = np.arange(3 * size).reshape(3, size)
    full, left = cut.full(asked), cut.left(asked)
    np.testing.assert_array_equal(np.sort(np.concatenate([full, left])), np.arange(3 * size))
    assert cut.lanes * shards <= max(MAX_LANES, shards)
    lanes = 3 * cut.lanes
    for number, piece in enumerate(full.reshape(-1, 256)):
        assert set(piece // size) == {number % lanes // cut.lanes}  # the shard that has the lane


def test_what_is_learned_depends_on_the_number_of_shards() -> None:
    models = [
        new_model("fused", "hybrid", batch_size=640, shards=shards).learn(2 * STEPS * ROWS)
        for shards in (1, 2, 2)
    ]
    one, two, again = (model.policy.action_net.weight.detach().numpy() for model in models)
    assert (two == again).all()
    assert (one != two).any()


def test_rows_of_a_shard_act_and_are_valued_alike_wherever_they_are() -> None:
    """The kernels give a row the same bits among eight rows and among two."""
    model = new_model("fused", "hybrid")
    model.learn(STEPS * ROWS)
    actor, seen = model.engine.actor, th.rand(ROWS, 3)

    def answers(rows: slice) -> list[np.ndarray]:
        actor.begin(2, len(seen[rows]), seed=5, first_row=rows.start)
        return [part.numpy() for part in (*actor.act(seen[rows]), actor.values(seen[rows]))]

    whole = answers(slice(0, ROWS))
    for first in range(0, ROWS, 2):
        for part, found in zip(whole, answers(slice(first, first + 2)), strict=True):
            np.testing.assert_array_equal(part[first : first + 2], found)


def test_shards_are_of_no_use_to_the_torch_engine() -> None:
    asked = {"algo": "hybrid_ppo", "batch_size": 1024}
    assert shard_count(TrainSettings(**asked, engine="torch"), 64) == 1
    assert shard_count(TrainSettings(**asked, shards=2), 64) == 2
    with pytest.raises(ValueError, match=r"has no effect with train\.engine: torch"):
        shard_count(TrainSettings(**asked, engine="torch", shards=2), 64)
