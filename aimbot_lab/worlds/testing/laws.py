"""The laws of a world, each a function that makes worlds and plays them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import RowArrays, WorldReplays
from aimbot_lab.foundation.episodes import (
    ARRAYS,
    DRAW,
    LOSS,
    WIN,
    EpisodeBatch,
    parse_result,
    result_line,
)
from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    Scenario,
    StepBuffers,
    columns_of,
    new_observations,
    seats_of,
    step_buffers,
)
from aimbot_lab.foundation.world_type import RandomAgent, WorldType
from aimbot_lab.worlds.registry import spec_faults, type_of


@dataclass(frozen=True)
class Subject:
    """A world to be checked."""

    make: Callable[[int], BatchWorld]  # number of rows to a fresh world
    scenario: Scenario
    rows: int = 4
    steps: int = 300  # in which some episodes should end
    kind: WorldType | None = None  # of a world with replays that no package brings


@dataclass(frozen=True)
class Step:
    """What one step gave, copied."""

    rewards: np.ndarray  # [N]
    finished: np.ndarray  # [N]
    truncated: np.ndarray  # [N]
    observations: np.ndarray  # [N, D]
    final_observations: np.ndarray  # [N, D]
    episodes: EpisodeBatch
    running_order: np.ndarray  # [N]


def begun(subject: Subject, seed: int) -> BatchWorld:
    """A world with the scenario, reset to `seed`."""
    world = subject.make(subject.rows)
    world.set_scenario(subject.scenario)
    world.reset(seed, new_observations(world))
    return world


def random_actions(world: BatchWorld, seed: int = 0) -> RandomAgent:
    """A player that draws the same actions in every call."""
    return RandomAgent(world.spec, seed)


def play(
    world: BatchWorld, subject: Subject, steps: int | None = None, *, dirty: bool = False
) -> Iterator[Step]:
    """Steps with random actions that are the same in every call; `dirty` buffers hold rubbish."""
    act, seen = random_actions(world), new_observations(world)
    buffers = step_buffers(world)
    for _ in range(subject.steps if steps is None else steps):
        if dirty:
            buffers.finished[:] = buffers.truncated[:] = True
        episodes = world.step(act(seen), buffers)
        yield copied(buffers, episodes)


def copied(buffers: StepBuffers, episodes: EpisodeBatch) -> Step:
    """What a step gave, safe from the next one."""
    copies: Mapping[str, np.ndarray] = {
        name: array.copy() for name, array in buffers._asdict().items()
    }
    return Step(**copies, episodes=episodes, running_order=episodes.running_order.copy())


def assert_equal(one: Step, two: Step) -> None:
    """Raise AssertionError unless both steps gave the same bits."""
    for name in ("rewards", "finished", "truncated", "observations", "running_order"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ARRAYS:
        pair = getattr(one.episodes, name), getattr(two.episodes, name)
        np.testing.assert_array_equal(*pair, err_msg=name)
    assert one.episodes.cell == two.episodes.cell


def assert_raises(kind: type[LabError], call: Callable[..., Any], *given: Any) -> None:
    """Raise AssertionError unless `call` raises `kind`."""
    try:
        call(*given)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised by {call.__name__}")


def the_spec_agrees_with_itself(subject: Subject) -> None:
    """Names, bounds, blocks, targets and abilities fit each other."""
    faults = list(spec_faults(subject.make(1).spec))
    assert not faults, "; ".join(faults)


def a_wrong_action_changes_nothing(subject: Subject) -> None:
    """ActionError for an invalid action, after which the world goes on as if nothing was."""
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


def episodes_are_counted_whole(subject: Subject) -> None:
    """Lengths and reward terms of an episode are those of its steps; ranks rise; none is lost."""
    world = begun(subject, 2)
    seats = seats_of(world)
    lengths, returns = np.zeros(seats, int), np.zeros(seats)
    ended, ranks = 0, set()
    for step in play(world, subject):
        lengths += 1
        returns += step.rewards
        batch = step.episodes
        found = batch.seats(world.num_envs)
        assert sorted(found.tolist()) == np.flatnonzero(step.finished).tolist()
        for place, seat in enumerate(found.tolist()):
            assert batch.length[place] == lengths[seat], "length is not the number of steps"
            total = batch.returns[place]
            assert np.isclose(total, returns[seat], rtol=1e-4, atol=1e-2), (
                "terms and rewards differ"
            )
            assert batch.order[place] not in ranks, "two episodes have the same rank"
            assert step.running_order[seat] > batch.order[place], "ranks must rise"
            ranks.add(int(batch.order[place]))
            lengths[seat], returns[seat] = 0, 0.0
            ended += 1
    assert ended > 0, f"no episode ended in {subject.steps} steps: give the subject more"


def what_ended_stays_as_it_was(subject: Subject) -> None:
    """Later steps don't write to the columns of episodes that a step gave.

    A training counts them where its next rollout begins.
    """
    world, steps = begun(subject, 2), subject.steps // 2
    given, then = [], []
    for step in play(world, subject, steps):
        given.append(_columns(step.episodes))
        then.append({name: column.copy() for name, column in given[-1].items()})
    for _ in play(world, subject, steps):
        pass
    for columns, copies in zip(given, then, strict=True):
        for name, column in columns.items():
            np.testing.assert_array_equal(column, copies[name], err_msg=name)


def _columns(batch: EpisodeBatch) -> dict[str, np.ndarray]:
    """All that is kept of episodes that ended."""
    own = {name: getattr(batch, name) for name in ARRAYS}
    return {**own, **batch.columns}


def the_agents_of_a_row_end_together(subject: Subject) -> None:
    """All seats of a row finish in the same step, with one outcome each."""
    world = begun(subject, 2)
    for step in play(world, subject):
        by_agent = step.finished.reshape(world.spec.agents, world.num_envs)
        assert (by_agent == by_agent[0]).all(), "agents of a row must finish together"
        assert set(step.episodes.outcome.tolist()) <= {LOSS, DRAW, WIN}
        assert (step.episodes.agent < world.spec.agents).all()
        drawn = step.episodes.drawn.any()
        assert world.spec.has_draws or not drawn, "a draw, which the spec says there is not"


def result_lines_give_the_columns_back(subject: Subject) -> None:
    """Episodes are of targets of the spec, have its columns, and read back from their lines."""
    world = begun(subject, 3)
    for step in play(world, subject):
        batch = step.episodes
        assert batch.terms.shape == (len(batch.cell), len(world.spec.reward_terms))
        assert set(batch.columns) <= set(world.spec.episode_columns)
        assert not batch or set(batch.columns) == set(world.spec.episode_columns)
        told = world.spec.result_columns
        lines = [result_line(batch, place, told) for place in range(len(batch.cell))]
        read = [parse_result(line, told or ()) for line in lines]
        for name in told or ():
            column = [one.columns.get(name, np.nan) for one in read]
            np.testing.assert_array_equal(column, batch.columns[name], err_msg=name)
        cells = tuple(one.cell for one in read)
        assert cells == batch.cell, "an episode must name its target and difficulty"
        np.testing.assert_array_equal([one.outcome for one in read], batch.outcome)
        returns = np.array([one.episode_return for one in read], np.float64)
        np.testing.assert_array_equal(returns, batch.returns)
        for cell in batch.cell:
            assert cell is not None
            assert cell.difficulty <= world.spec.difficulties[cell.target]


def only_what_ended_can_be_cut_off(subject: Subject) -> None:
    """`truncated` is True only where `finished` is, and both are written in every step."""
    for step in play(begun(subject, 3), subject, dirty=True):
        assert not (step.truncated & ~step.finished).any()
        assert step.finished.any() == bool(step.episodes)


def episodes_know_their_scenario(subject: Subject) -> None:
    """A new scenario holds for episodes that begin after it; running ones keep theirs."""
    world = begun(subject, 5)
    before = world.scenario_number
    begun_before = {int(rank) for step in play(world, subject, 1) for rank in step.running_order}
    after = world.set_scenario(subject.scenario)
    for step in play(world, subject):
        for rank, scenario in zip(step.episodes.order, step.episodes.scenario, strict=True):
            assert scenario == (before if int(rank) in begun_before else after)


STEP_ARRAYS = (
    "rewards",
    "finished",
    "truncated",
    "observations",
    "final_observations",
    "running_order",
)
ENOUGH = 12  # episodes that are played again
ENDING = ("agent", "outcome", "length", "terms")  # columns that an episode must end with again
Ending = dict[str, np.ndarray]


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
        seats = np.arange(seats_of(world)).reshape(world.spec.agents, world.num_envs)
        seen.append(observations[seats[:, :2].ravel()])
    np.testing.assert_array_equal(seen[0], seen[1])


def parts_play_as_the_whole(subject: Subject) -> None:
    """Two worlds with the first rows and the others are as one with all of them, where `parts`.

    So are their snapshots, joined, and worlds that go on from other parts of these.
    """
    whole: Any = subject.make(subject.rows)
    if not whole.spec.can("parts"):
        return
    first = subject.rows // 3
    spans = ((0, first), (first, subject.rows))
    parts: list[Any] = [subject.make(end - begin) for begin, end in spans]
    assert_raises(MisuseError, parts[1].place, first + 1, subject.rows)
    assert_raises(MisuseError, parts[1].place, -1, subject.rows)
    for part, (begin, _) in zip(parts, spans, strict=True):
        part.place(begin, subject.rows)
    everything = _played(whole, subject, slice(0, subject.rows))
    for part, span in zip(parts, spans, strict=True):
        rows = slice(*span)
        for step, other in zip(_played(part, subject, rows), everything, strict=True):
            assert_equal(step, _rows_of(other, rows, whole.spec.agents))
    assert_raises(MisuseError, parts[0].place, 0, subject.rows)
    if whole.spec.can("snapshot"):
        _parts_are_kept_as_the_whole(whole, parts, subject)


def _parts_are_kept_as_the_whole(whole: Any, parts: Sequence[Any], subject: Subject) -> None:
    """The snapshots of `parts` make that of `whole`, from which other parts go on."""
    kept = whole.snapshot()
    joined = parts[0].joined([one.snapshot() for one in parts])
    assert list(joined) == list(kept), "other arrays"
    for name, array in kept.items():
        assert joined[name].dtype == array.dtype, f"{name} is of another type"
        np.testing.assert_array_equal(joined[name], array, err_msg=name)
    everything = _stepped(whole, subject, slice(0, subject.rows))
    for span in ((0, subject.rows // 2), (subject.rows // 2, subject.rows)):
        rows, part = slice(*span), subject.make(span[1] - span[0])
        other: Any = part
        other.place(span[0], subject.rows)
        other.set_scenario(subject.scenario)
        other.restore(other.part_of(kept))
        for step, same in zip(_stepped(part, subject, rows), everything, strict=True):
            assert_equal(step, _rows_of(same, rows, whole.spec.agents))


def _played(world: BatchWorld, subject: Subject, rows: slice) -> list[Step]:
    """Steps of the `rows` of `subject` that `world` has, from a reset, by the actions of all."""
    world.set_scenario(subject.scenario)
    world.reset(13, new_observations(world))
    return _stepped(world, subject, rows)


def _stepped(world: BatchWorld, subject: Subject, rows: slice) -> list[Step]:
    """Further steps of them."""
    whole = subject.make(subject.rows)
    act, buffers, width = random_actions(whole), step_buffers(world), new_observations(whole)
    steps: list[Step] = []
    for _ in range(subject.steps):
        actions = act(width).reshape(world.spec.agents, subject.rows, -1)[:, rows]
        episodes = world.step(actions.reshape(len(buffers.rewards), -1), buffers)
        steps.append(copied(buffers, episodes))
    return steps


def _rows_of(step: Step, rows: slice, agents: int) -> Step:
    """What `step` gave in `rows`, which count from 0 then."""
    count = len(step.rewards) // agents
    seats = np.arange(agents * count).reshape(agents, count)[:, rows].ravel()
    ended = step.episodes
    own = np.flatnonzero((ended.row >= rows.start) & (ended.row < rows.stop))
    kept = ended.some(own)
    arrays = {name: getattr(step, name)[seats] for name in STEP_ARRAYS}
    return Step(**arrays, episodes=kept._replace(row=kept.row - rows.start))


def observations_lie_in_their_bounds(subject: Subject) -> None:
    """Every number of an observation is finite and within what the spec declares."""
    world = begun(subject, 1)
    slack = 1e-3
    for step in play(world, subject):
        for shown in (step.observations, step.final_observations[step.finished]):
            seen = columns_of(shown)
            assert np.isfinite(seen).all(), "an observation is not finite"
            assert (seen >= world.spec.observation_low - slack).all(), "below its lower bound"
            assert (seen <= world.spec.observation_high + slack).all(), "above its upper bound"


def a_snapshot_goes_on_bit_for_bit(subject: Subject) -> None:
    """From a snapshot the same follows; without the ability, where all episodes go on."""
    world = begun(subject, 8)
    list(play(world, subject, 10))
    kept = {name: array.copy() for name, array in world.snapshot().items()}
    if not world.spec.can("snapshot"):
        other: Any = subject.make(subject.rows)
        other.set_scenario(subject.scenario)
        other.restore(kept)
        anew = other.resume_episodes(new_observations(other))
        assert other.scenario_number == world.scenario_number
        for step, again in zip(play(world, subject), play(other, subject), strict=True):
            if not anew.any():
                assert_equal(step, again)
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


@dataclass
class _RecordedEpisode:
    """How a row began, and what was done and seen in it."""

    start: RowArrays
    actions: list[Float32Array] = field(default_factory=list)  # [agents, A] each, as replayed
    steps: list[tuple[Float32Array, Float32Array]] = field(default_factory=list)
    ending: Ending = field(default_factory=dict)


def a_recorded_episode_is_played_again_bit_for_bit(subject: Subject) -> None:
    """From its row as it began and its actions: the same observations, rewards and end."""
    world: Any = begun(subject, 13)
    if not world.spec.can("replay"):
        return
    kind = subject.kind or type_of(world.settings)
    assert kind.replays is not None, "a world with the ability replay needs WorldReplays"
    episodes = _recorded(world, subject, kind.replays)
    assert episodes, f"no episode ended in {subject.steps} steps: give the subject more"
    for episode in episodes:
        _play_again(episode, world, kind, replays=kind.replays)


def _recorded(world: BatchWorld, subject: Subject, replays: WorldReplays) -> list[_RecordedEpisode]:
    """The first episodes that ended in `world`, which was just reset."""
    act, rows, found = random_actions(world), world.num_envs, []
    running = [_begun(world, row, replays) for row in range(rows)]
    for step in play(world, subject):
        given = act(step.observations)
        for row in range(rows):
            made = replays.row_actions(world, row, given).copy()
            _note(running[row], step, made, place=(row, rows))
            if not step.finished[row]:
                continue
            running[row].ending = _ending(step.episodes, row)
            found.append(running[row])
            running[row] = _begun(world, row, replays)
        if len(found) >= ENOUGH:
            break
    return found


def _begun(world: BatchWorld, row: int, replays: WorldReplays) -> _RecordedEpisode:
    start = replays.row_start(world, row)
    assert start is not None, "a row that has just begun must give its start"
    return _RecordedEpisode({name: array.copy() for name, array in start.items()})


def _note(
    episode: _RecordedEpisode, step: Step, actions: Float32Array, *, place: tuple[int, int]
) -> None:
    """Keep what `actions` [agents, A] led to in the row at `place`, its number and that of rows."""
    row, rows = place
    seats = slice(row, None, rows)
    seen = step.final_observations if step.finished[row] else step.observations
    episode.actions.append(actions)
    episode.steps.append((seen[seats].copy(), step.rewards[seats].copy()))


def _ending(batch: EpisodeBatch, row: int) -> Ending:
    """How the episode of `row` ended, for each agent."""
    places = np.flatnonzero(batch.row == row)
    return {name: getattr(batch, name)[places] for name in ENDING}


def _play_again(
    episode: _RecordedEpisode, world: Any, kind: WorldType, *, replays: WorldReplays
) -> None:
    row = replays.replay_row(replays.row_settings(world.settings), episode.start, kind.make)
    buffers = step_buffers(row.world)
    row.beginning()
    last = len(episode.actions) - 1
    for number, (actions, (seen, rewards)) in enumerate(
        zip(episode.actions, episode.steps, strict=True)
    ):
        _, batch = row.decide(actions, buffers)
        assert bool(batch) == (number == last), "the replay ends at another decision"
        found = buffers.final_observations if batch else buffers.observations
        agents = len(rewards)  # a replay may play others as well, such as the opponents
        np.testing.assert_array_equal(found[:agents], seen, err_msg="observations of a replay")
        np.testing.assert_array_equal(
            buffers.rewards[:agents], rewards, err_msg="rewards of a replay"
        )
    for name, values in _ending(batch, 0).items():
        given = episode.ending[name]
        np.testing.assert_array_equal(values[: len(given)], given, err_msg=f"{name} of a replay")
