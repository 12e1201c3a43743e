"""What a world promises of its shape, and how it refuses."""

import numpy as np

from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError
from aimbot_lab.foundation.world import Scenario, seats_of, step_buffers
from aimbot_lab.worlds.spec_checks import spec_faults
from aimbot_lab.worlds.testing.subject import (
    Subject,
    assert_equal,
    assert_raises,
    begun,
    copied,
    new_observations,
    play,
    random_actions,
)


def the_spec_agrees_with_itself(subject: Subject) -> None:
    """Names, bounds, blocks, targets and abilities fit each other."""
    faults = list(spec_faults(subject.make(1).spec))
    assert not faults, "; ".join(faults)


def a_wrong_action_changes_nothing(subject: Subject) -> None:
    """ActionError for what is no action, after which the world goes on as if nothing was."""
    one, two = begun(subject, 4), begun(subject, 4)
    branches, width = len(one.spec.branches), len(one.spec.branches) + one.spec.continuous
    wrong = np.zeros((seats_of(one), width), np.float32)
    wrong[-1, 0] = one.spec.branches[0] if branches else np.nan
    buffers = step_buffers(one)
    for actions in (wrong, wrong[:, :-1], np.full_like(wrong, np.nan)):
        assert_raises(ActionError, one.step, actions, buffers)
    for step, other in zip(play(one, subject, 20), play(two, subject, 20), strict=True):
        assert_equal(step, other)


def misuse_is_refused(subject: Subject) -> None:
    """LabError for a step before a reset, for buffers of another shape, and for no such seed."""
    world = subject.make(subject.rows)
    world.set_scenario(subject.scenario)
    actions = random_actions(world)(new_observations(world))
    assert_raises(LabError, world.step, actions, step_buffers(world))
    assert_raises(LabError, world.reset, 1.5, new_observations(world))
    assert_raises(LabError, world.reset, 1, new_observations(world)[:-1])
    world.reset(1, new_observations(world))
    short = step_buffers(world)._replace(rewards=np.zeros(seats_of(world) + 1, np.float32))
    assert_raises(LabError, world.step, actions, short)


def scenarios_are_numbered_and_checked(subject: Subject) -> None:
    """Numbers rise; what there is not is refused, and leaves the scenario in force."""
    world = subject.make(subject.rows)
    assert world.scenario_number == 0
    first, second = world.set_scenario(subject.scenario), world.set_scenario(subject.scenario)
    assert 0 < first < second == world.scenario_number
    for scenario in (
        Scenario({"no such target": 1.0}),
        Scenario(subject.scenario.targets, parameters={"no such parameter": 1.0}),
        Scenario({}),
    ):
        assert_raises(ConfigurationError, world.set_scenario, scenario)
    assert world.scenario_number == second


def continuous_columns_end_at_their_bounds(subject: Subject) -> None:
    """A number beyond a column's bounds acts as the bound does."""
    one, two = begun(subject, 12), begun(subject, 12)
    if not one.spec.continuous:
        return
    act, seen = random_actions(one), new_observations(one)
    count, (low, high) = len(one.spec.branches), one.spec.action_bounds
    buffers, others = step_buffers(one), step_buffers(two)
    for number in range(min(subject.steps, 50)):
        at, beyond = act(seen), np.zeros_like(high)
        bound = high if number % 2 else low
        ends = np.isfinite(bound)
        at[:, count:][:, ends] = bound[ends]
        beyond[ends] = bound[ends] + (1 if number % 2 else -1) * (1 + np.abs(bound[ends]))
        past = at.copy()
        past[:, count:][:, ends] = beyond[ends]
        assert_equal(copied(buffers, one.step(at, buffers)), copied(others, two.step(past, others)))


def masks_leave_a_choice(subject: Subject) -> None:
    """No branch is masked as a whole, and without the ability nothing is; to ask changes nothing.

    Every mask is written.
    """
    world, unasked = begun(subject, 6), begun(subject, 6)
    masks = np.zeros((seats_of(world), sum(world.spec.branches)), np.bool_)
    pairs = zip(play(world, subject, 50), play(unasked, subject, 50), strict=True)
    for step, other in pairs:
        assert_equal(step, other)
        masks[:] = True
        world.action_masks(masks)
        again = np.zeros_like(masks)
        world.action_masks(again)
        assert (masks == again).all(), "a mask is not written, or changes when it is asked again"
        start = 0
        for size in world.spec.branches:
            assert masks[:, start : start + size].any(axis=1).all(), "a branch has no choice left"
            start += size
        assert world.spec.can("masks") or masks.all()


def a_row_can_be_drawn(subject: Subject) -> None:
    """A picture [height, width, 3] of bytes, where the world draws."""
    world = begun(subject, 10)
    if world.spec.can("draw"):
        picture = world.draw(0)
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.shape[2] == 3
