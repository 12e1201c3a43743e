"""What follows from a seed, a snapshot, and from nothing else."""

from typing import Any

import numpy as np

from aimbot_lab.worlds.testing.subject import (
    Subject,
    assert_equal,
    begun,
    new_observations,
    play,
)


def the_same_seed_gives_the_same_bits(subject: Subject) -> None:
    """Two worlds with the same seed and actions are equal in every step."""
    one, two = (list(play(begun(subject, 7), subject)) for _ in range(2))
    for step, other in zip(one, two, strict=True):
        assert_equal(step, other)


def an_episode_begins_from_its_seed_alone(subject: Subject) -> None:
    """How first episodes begin does not depend on how many rows there are, where `paired`."""
    few, many = subject.make(2), subject.make(5)
    if not few.spec.can("paired"):
        return
    seen = []
    for world in (few, many):
        world.set_scenario(subject.scenario)
        observations = new_observations(world)
        world.reset(11, observations)
        seen.append(observations.reshape(world.spec.agents, world.num_envs, -1)[:, :2])
    np.testing.assert_array_equal(seen[0], seen[1])


def observations_lie_in_their_bounds(subject: Subject) -> None:
    """Every number of an observation is finite and within what the spec declares."""
    world = begun(subject, 1)
    slack = 1e-3
    for step in play(world, subject):
        for seen in (step.observations, step.final_observations[step.finished]):
            assert np.isfinite(seen).all(), "an observation is not finite"
            assert (seen >= world.spec.observation_low - slack).all(), "below its lower bound"
            assert (seen <= world.spec.observation_high + slack).all(), "above its upper bound"


def a_snapshot_goes_on_bit_for_bit(subject: Subject) -> None:
    """From a snapshot the same follows; without the ability new episodes begin."""
    world = begun(subject, 8)
    list(play(world, subject, 10))
    kept = {name: array.copy() for name, array in world.snapshot().items()}
    if not world.spec.can("snapshot"):
        other: Any = subject.make(subject.rows)
        other.set_scenario(subject.scenario)
        other.restore(kept)
        other.begin_anew(new_observations(other))
        assert other.scenario_number == world.scenario_number
        list(play(other, subject, 5))
        return
    first = list(play(world, subject))
    world.restore(kept)
    for step, again in zip(first, play(world, subject), strict=True):
        assert_equal(step, again)


def keeping_endings_changes_nothing(subject: Subject) -> None:
    """With `keep_endings` the same follows, and how a row ended can be drawn, where it draws."""
    world, other = begun(subject, 9), begun(subject, 9)
    world.keep_endings = True
    for step, same in zip(play(world, subject), play(other, subject), strict=True):
        assert_equal(step, same)
        if step.episodes and world.spec.can("draw"):
            row = int(step.episodes.row[0])
            assert world.draw(row, ending=True).shape == world.draw(row).shape
