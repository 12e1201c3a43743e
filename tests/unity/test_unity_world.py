"""The world of builds: what it makes of their messages, with sessions and scripts for builds."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from aimbot_lab.foundation.episodes import LOSS, WIN
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError
from aimbot_lab.foundation.settings import Uniform, UniformParameters
from aimbot_lab.foundation.world import Scenario, logged_errors, new_notices, save_commands
from aimbot_lab.mlagents.player import stat_message, text_message
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.testing import CHECKS, Subject, laws
from aimbot_lab.worlds.unity.channels import MAX_ERRORS
from aimbot_lab.worlds.unity.settings import UnityWinRule
from aimbot_lab.worlds.unity.world import UnityWorld
from tests.unity.played_builds import (
    RIGHT,
    Told,
    begun,
    race_world,
    scripted_world,
    session_world,
    stepped,
)

TASK = Scenario({"task": 1.0})
GOTO = Scenario({"goto": 1.0}, {"goto": (0.0, 0.0, 1.0, 0.0, 0.0)})
WON, LOST = (
    (STRING_LOG, text_message("Warning|Result|Win")),
    (STRING_LOG, text_message("Warning|Result|Lose")),
)


def arena(rows: int) -> Arena:
    return Arena(ArenaSettings(num_envs=rows, time_limit=4.0))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_builds_obey_the_laws_of_worlds(check: Any) -> None:
    check(Subject(lambda rows: session_world(arena, rows, agents=5), GOTO, steps=120))


@pytest.mark.parametrize(
    "check",
    [
        laws.the_same_seed_gives_the_same_bits,
        laws.episodes_are_counted_whole,
        laws.what_ended_stays_as_it_was,
        laws.episodes_know_their_scenario,
    ],
    ids=lambda check: check.__name__,
)
def test_two_builds_obey_the_laws_in_which_rows_meet(check: Any) -> None:
    check(Subject(race_world, RIGHT))


def test_builds_play_what_a_lesson_draws() -> None:
    world = session_world(arena, 4, agents=2)
    buffers = begun(world, GOTO)
    cells = set[Any]()
    for _ in range(45):
        cells |= set(world.step(np.zeros((4, 4), np.float32), buffers).cell)
    assert cells == {("goto", 3)}


def test_parameters_and_samplers_reach_each_build() -> None:
    world = session_world(arena, 4, agents=2)
    drawn = Uniform(sampler_parameters=UniformParameters(min_value=2.0, max_value=3.0))
    begun(world, Scenario({"goto": 1.0}, parameters={"time_limit": drawn}))
    limits = [
        build.link.session._channels._parameters._scenario.parameters["time_limit"]  # type: ignore[attr-defined]
        for build in world._builds
    ]
    assert [one.sampler_parameters.min_value for one in limits] == [2.0, 2.0]
    seeds = {one.sampler_parameters.seed for one in limits}
    assert len(seeds) == 2
    assert None not in seeds


def test_a_lost_build_is_restarted_and_its_episodes_are_dropped() -> None:
    world = race_world(6, lost_after=[3, np.inf])
    buffers = begun(world)
    still = np.ones((6, 1), np.float32)
    batches = [world.step(still, buffers)]
    seen = buffers.observations.copy()
    for _ in range(2):
        batches.append(world.step(still, buffers))
    assert [batch.untold for batch in batches] == [(), (), (0, 1, 2)]
    assert not any(len(batch.row) for batch in batches)
    assert buffers.finished.tolist() == [True] * 3 + [False] * 3
    assert buffers.truncated.tolist() == [True] * 3 + [False] * 3
    np.testing.assert_array_equal(buffers.final_observations[:3], seen[:3] + np.array([0, 1]))
    assert world.dropped_episodes == 3
    assert new_notices(world) == [
        "build 0 (Test) was killed by SIGKILL; restarted, 3 episodes dropped"
    ]
    right = np.full((6, 1), 2, np.float32)
    ended = [world.step(right, buffers) for _ in range(3)][-1]
    assert ended.row.tolist() == [0, 1, 2, 3, 4, 5]
    assert ended.length.tolist() == [3, 3, 3, 6, 6, 6]


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        ({"max_lifetime_restarts": 0}, "it was restarted 0 times, as env.max_lifetime_restarts"),
        ({"restarts_rate_limit_n": 1}, "it was restarted 1 times within 60 s, as env.restarts_"),
    ],
)
def test_too_many_restarts_end_the_run_in_a_line(limits: dict[str, int], line: str) -> None:
    world = race_world(3, lost_after=[4, 4], **limits)
    buffers = begun(world)
    with pytest.raises(ForeignCodeError, match=f"SIGKILL; {line}") as raised:
        stepped(world, buffers, 9)
    assert "\n" not in str(raised.value)


def test_restarts_are_limited_in_a_period() -> None:
    free = race_world(3, lost_after=[4, 4, 4], restarts_rate_limit_n=-1)
    buffers = begun(free)
    stepped(free, buffers, 13)
    assert free.dropped_episodes == 9


def test_an_agent_that_is_not_asked_keeps_what_it_saw() -> None:
    world = scripted_world([Told({0: 1, 1: 2}), Told({0: 3}), Told({0: 4, 1: 5}, reward=1.0)])
    buffers = begun(world, TASK)
    world.step(np.ones((2, 1), np.float32), buffers)
    assert buffers.observations.ravel().tolist() == [3, 2]
    world.step(np.zeros((2, 1), np.float32), buffers)
    assert buffers.observations.ravel().tolist() == [4, 5]
    assert buffers.rewards.tolist() == [1, 1]
    sent = world._builds[0].link.sent  # type: ignore[attr-defined]
    assert [len(one.discrete) for one in sent[1:]] == [2, 1]


def test_an_episode_is_told_when_the_next_one_begins_also_of_another_agent() -> None:
    script = [
        Told({0: 1, 1: 2}),
        Told({1: 3}, ended={0: 9}, reward=1.0, channels=[WON]),
        Told({1: 4}),
        Told({1: 5, 7: 6}),
    ]
    world = scripted_world(script)
    buffers = begun(world, TASK)
    actions = np.ones((2, 1), np.float32)
    assert [bool(world.step(actions, buffers)) for _ in range(2)] == [False, False]
    batch = world.step(actions, buffers)
    assert (batch.row.tolist(), batch.outcome.tolist(), batch.returns.tolist()) == ([0], [WIN], [1])
    assert buffers.observations.ravel().tolist() == [6, 5]
    assert buffers.final_observations[0].tolist() == [9]
    assert buffers.finished.tolist() == [True, False]


def test_messages_that_ask_for_nothing_are_passed_over() -> None:
    script = [
        Told({0: 1, 1: 2}),
        Told({}, ended={0: 9, 1: 8}, interrupted=True),
        Told({0: 3, 1: 4}),
    ]
    world = scripted_world(script)
    buffers = begun(world, TASK)
    batch = world.step(np.ones((2, 1), np.float32), buffers)
    assert buffers.truncated.tolist() == [True, True]
    assert batch.outcome.tolist() == [LOSS, LOSS], "who is cut off without a line has lost"


def ended(
    channels: Sequence[Any], *, first: Sequence[Any] = (), rewards: float = 1.0, **settings: Any
) -> tuple[UnityWorld, Any]:
    """A world whose two episodes end as `channels` say, after `first`; and that step's batch."""
    script = [
        Told({0: 1, 1: 2}, channels=first),
        Told({0: 3, 1: 4}, {0: 9, 1: 8}, reward=rewards, channels=channels),
    ]
    world = scripted_world(script, **settings)
    buffers = begun(world, TASK)
    return world, world.step(np.ones((2, 1), np.float32), buffers)


def test_result_lines_are_told_in_the_order_of_the_agents() -> None:
    assert ended([LOST, WON])[1].outcome.tolist() == [LOSS, WIN]


def test_an_episode_whose_line_is_missing_is_unread_not_lost() -> None:
    _, batch = ended([WON])
    assert len(batch.row) == 0
    assert batch.unread == ("result lines and ended episodes of a step were not as many",) * 2
    assert batch.untold == (0, 1)


@pytest.mark.parametrize(
    ("rule", "outcomes"),
    [
        (UnityWinRule(return_above=2.0), [WIN, WIN]),
        (UnityWinRule(return_above=2.5), [LOSS, LOSS]),
        (UnityWinRule(stat="Goal"), [LOSS, WIN]),
    ],
)
def test_a_rule_says_who_won(rule: UnityWinRule, outcomes: list[int]) -> None:
    stats = [(STATS, stat_message("Goal", value)) for value in (0.0, 1.0)]
    _, batch = ended([*stats, (STATS, stat_message("Other", 1.0))], rewards=2.0, win=rule)
    assert batch.outcome.tolist() == outcomes


def test_without_a_rule_for_wins_returns_are_told() -> None:
    _, batch = ended([], rewards=2.0, win="none")
    assert (batch.outcome.tolist(), batch.columns["total_reward"].tolist()) == (
        [LOSS, LOSS],
        [2, 2],
    )
    spec = scripted_world([], win="none").spec
    assert (spec.has_wins, [one.name for one in spec.measures]) == (False, ["return"])


@pytest.mark.parametrize(
    ("given", "channels", "said"),
    [
        ({}, [], ["the first 10 episodes ended without result lines, so that none was won"]),
        ({}, [WON, LOST], []),
        ({"win": UnityWinRule(stat="Goal")}, [], ["the first 10 episodes ended without values of"]),
    ],
)
def test_a_build_that_never_says_who_won_is_named_once(
    given: dict[str, Any], channels: list[Any], said: list[str]
) -> None:
    first, *others = (
        Told({0: 1, 1: 2}, {0: 9, 1: 8} if told else {}, channels=channels if told else ())
        for told in (False, *[True] * 15)
    )
    world = scripted_world([first, *others], **given)
    buffers = begun(world, TASK)
    for _ in others:
        world.step(np.ones((2, 1), np.float32), buffers)
    notices = new_notices(world)
    assert [line[: len(part)] for line, part in zip(notices, said, strict=True)] == said


def test_an_unknown_channel_is_named_once_with_how_it_begins() -> None:
    other = UUID("11111111-2222-3333-4444-555555555555")
    message = (other, b"\x04\x00\x00\x00Win!")
    world = scripted_world([Told({0: 1, 1: 2}, channels=[message, message])])
    begun(world, TASK)
    (notice,) = new_notices(world)
    assert str(other) in notice
    assert "04 00 00 00 57 69 6e 21 (....Win!)" in notice
    assert "env.log_channel" in notice


def floats(*values: float) -> tuple[Any, bytes]:
    """A list of numbers over the log channel's id."""
    message = OutgoingMessage()
    message.write_float32_list(list(values))
    return STRING_LOG, bytes(message.buffer)


def after(*channels: Any, **settings: Any) -> UnityWorld:
    """A world whose build has sent `channels` in its first message, and lines in its second."""
    world, batch = ended([LOST, *channels, WON], first=channels, rewards=2.0, **settings)
    wins = [WIN, WIN] if settings else [LOSS, WIN]
    assert (batch.outcome.tolist(), batch.unread) == (wins, ())
    return world


RULE = {"win": UnityWinRule(return_above=2.0)}


@pytest.mark.parametrize("settings", [RULE, {}], ids=["with a rule", "by lines"])
@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            floats(1.0, 2.0, 3.0),
            "03 00 00 00 00 00 80 3f 00 00 00 40 00 00 40 40 (.......?...@..@@)",
        ),
        (floats(*range(5)), "05 00 00 00 00 00 00 00 00 00 80 3f 00 00 00 40 (...........?...@)"),
        ((STRING_LOG, b""), "nothing"),
        ((STRING_LOG, b"\x02\x00\x00\x00\xc3\xa9"), "02 00 00 00 c3 a9 (......)"),
    ],
)
def test_what_is_no_text_on_the_log_channel_is_named_once_and_ignored(
    message: Any, shown: str, settings: dict[str, Any]
) -> None:
    (notice,) = new_notices(after(message, message, **settings))
    hint = "" if settings else "; if its results are not lines there, set env.win"
    assert notice == (
        f"the build sends messages without text over env.log_channel, ignored: {shown}{hint}"
    )


@pytest.mark.parametrize("line", ["Hello", "Warning|Command|now"])
def test_other_lines_on_the_log_channel_are_named_once_and_ignored(line: str) -> None:
    said = [(STRING_LOG, text_message(one)) for one in (line, "Another")]
    world = after(*said, **RULE)
    assert new_notices(world) == [
        "the build sends lines other than results, commands and errors over env.log_channel, "
        f"ignored: {line!r}"
    ]
    assert save_commands(world) == 0


def test_stats_that_can_not_be_read_are_named_once_and_ignored() -> None:
    stats = [(STATS, stat_message("Goal", value)) for value in (0.0, 1.0)]
    broken = STATS, b"\x04\x00\x00\x00Goal\x01"
    world, batch = ended([broken, *stats], first=[broken], win=UnityWinRule(stat="Goal"))
    assert batch.outcome.tolist() == [LOSS, WIN]
    (notice,) = new_notices(world)
    assert notice == (
        "the build sends a stat that can't be read, ignored: 04 00 00 00 47 6f 61 6c 01 (....Goal.)"
    )


def test_commands_to_save_the_agent_are_counted() -> None:
    world = after((STRING_LOG, text_message("Warning|Command\n")))
    assert new_notices(world) == []
    assert save_commands(world) == 2


def test_errors_are_counted_and_each_is_shown_once_in_a_line() -> None:
    text = "Error|NullReferenceException: no gun\n  at Gun.Fire ()\x1b[31m"
    error = (STRING_LOG, text_message(text))
    world = after(error, (STRING_LOG, text_message("Error|Late")), error, **RULE)
    assert new_notices(world) == [
        "the build logs: Error|NullReferenceException: no gun",
        "the build logs: Error|Late",
    ]
    assert logged_errors(world) == 6
    again = scripted_world([])
    again.restore(world.snapshot())
    assert logged_errors(again) == 6
    assert logged_errors(scripted_world([])) == 0


def test_of_many_different_errors_only_the_first_are_shown() -> None:
    errors = [(STRING_LOG, text_message(f"Error|{number}")) for number in range(30)]
    world = after(*errors, **RULE)
    notices = new_notices(world)
    assert len(notices) == MAX_ERRORS + 1
    assert notices[-1] == "the build logs more errors, which rollout/logged_errors counts"
    assert logged_errors(world) == 60


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (Told({0: np.nan, 1: 1}), "build 0: behavior Walker.team=0: an observation of agent 0"),
        (Told({0: 1, 1: 1}, reward=np.inf), "build 0: behavior Walker.team=0: a reward of agent"),
    ],
)
def test_nan_from_a_build_ends_the_run_in_a_line(told: Told, line: str) -> None:
    world = scripted_world([Told({0: 1, 1: 2}), told])
    buffers = begun(world, TASK)
    with pytest.raises(ForeignCodeError, match=line):
        world.step(np.ones((2, 1), np.float32), buffers)


def test_agents_beyond_the_rows_are_named() -> None:
    (notice,) = new_notices(race_world(4))
    assert notice.startswith("2 of 6 agents of 2 processes are not played; env.num_envs is 4")


def test_a_target_that_the_build_has_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no target 'left'; there are right"):
        race_world().set_scenario(Scenario({"left": 1.0}))
