"""A world as a build: the order of messages, what they say, and how a session ends."""

from collections.abc import Callable
from contextlib import nullcontext
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.episodes import parse_line
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents import ActionTuple, DecisionSteps, LabEnvironment, TerminalSteps, grpc_link
from aimbot_lab.mlagents.exception import NotFiniteError, UnityException
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, behavior_spec
from aimbot_lab.mlagents.messages import (
    BuildMessage,
    TrainerMessage,
    WireError,
    new_message,
    parsed,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.player import reports_over
from aimbot_lab.mlagents.session import PlayerSession
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    EnvironmentParametersChannel,
)
from aimbot_lab.mlagents.side_channel.side_channel import (
    by_id,
    deliver,
    framed,
    take_queued,
    unframed,
)
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS, StatsSideChannel
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG, StringLogChannel
from aimbot_lab.worlds.arena.arena import Arena
from tests.mlagents.llapi_worlds import GOTO, ROWS, arena
from tests.worlds.race import Race

FIRST, SECOND = "AimbotLab?team=0", "AimbotLab?team=1"


def first_input(version: str = "1.5.0", seed: int = 5) -> bytes:
    given = new_message("InitInput")
    given.communication_version, given.seed = version, seed
    return bytes(given.SerializeToString())


class Trainer:
    """The other end of a session."""

    def __init__(self, world: Any, scenario: Scenario = GOTO, **given: Any) -> None:
        self.session = PlayerSession(world, scenario, **given)
        spec = behavior_spec(world.spec)
        self.infos, self.actions = InfoCodec(spec), ActionCodec(spec.action_spec)
        self.greeting = read_build_message(self.session.begin())

    def say(self, command: int = 0, *, status: int = 200, **given: Any) -> BuildMessage:
        fields = {"actions": {}, "side_channels": b"", "initialization": b"", **given}
        answer = self.session.answer(
            write_trainer_message(TrainerMessage(status, command, **fields))
        )
        assert answer is not None, "the build went"
        return read_build_message(answer)

    def begin(self, **given: Any) -> BuildMessage:
        assert self.say(initialization=first_input()) == BuildMessage(200, {}, b"", b"")
        return self.say(1, **given)

    def step(self, **actions: ActionTuple) -> BuildMessage:
        teams = {"first": FIRST, "second": SECOND}
        coded = {teams[name]: self.actions.encode(one) for name, one in actions.items()}
        return self.say(actions=coded)

    def steps(self, answer: BuildMessage, team: str) -> tuple[DecisionSteps, TerminalSteps]:
        return self.infos.decode(answer.infos[team])


def test_a_build_greets_with_its_versions_and_abilities() -> None:
    greeting = parsed("InitOutput", Trainer(arena(1)).greeting.initialization)
    assert greeting.name == "AcademySingleton"
    assert (greeting.communication_version, greeting.package_version) == ("1.5.0", "2.0.1")
    assert greeting.capabilities.hybridActions
    assert greeting.capabilities.multiAgentGroups
    assert not greeting.brain_parameters


def test_behaviors_are_introduced_once_with_their_first_agents() -> None:
    trainer = Trainer(Race(3, agents=2), Scenario({"right": 1.0}))
    answer = trainer.begin()
    output = parsed("InitOutput", answer.initialization)
    assert [brain.brain_name for brain in output.brain_parameters] == [FIRST, SECOND]
    spec = output.brain_parameters[0].action_spec
    assert (spec.num_continuous_actions, list(spec.discrete_branch_sizes)) == (0, [3])
    assert list(trainer.steps(answer, SECOND)[0]) == [3, 4, 5]
    assert trainer.step().initialization == b""
    assert trainer.say(1).initialization == b""


@pytest.mark.parametrize(
    "last", [TrainerMessage(400, 0, {}, b"", b""), TrainerMessage(200, 2, {}, b"", b"")]
)
def test_a_build_goes_when_it_is_told_to(last: TrainerMessage) -> None:
    trainer = Trainer(arena(1))
    trainer.begin()
    assert trainer.session.answer(write_trainer_message(last)) is None


def test_what_goes_over_the_wire_is_what_is_played_in_process() -> None:
    env, trainer = LabEnvironment(arena(), GOTO, seed=5), Trainer(arena())
    env.reset()
    answer = trainer.begin()
    spec = env.behavior_specs[FIRST].action_spec
    np.random.seed(1)
    for _ in range(40):
        for told, played in zip(trainer.steps(answer, FIRST), env.get_steps(FIRST), strict=True):
            np.testing.assert_array_equal(told.obs[0], played.obs[0])
            np.testing.assert_array_equal(told.reward, played.reward)
            assert told.agent_id.tolist() == played.agent_id.tolist()
        decisions, terminals = trainer.steps(answer, FIRST)
        now = env.get_steps(FIRST)
        np.testing.assert_array_equal(terminals.interrupted, now[1].interrupted)
        for told, played in zip(decisions.action_mask, now[0].action_mask, strict=True):
            np.testing.assert_array_equal(told, played)
        action = spec.random_action(ROWS)
        env.set_actions(FIRST, action)
        env.step()
        answer = trainer.step(first=action)


def test_all_kernels_run_between_the_greeting_and_the_first_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = set()

    def noted(name: str) -> None:
        before = getattr(Arena, name)

        def call(*given: Any) -> Any:
            calls.add(name)
            return before(*given)

        monkeypatch.setattr(Arena, name, call)

    for name in ("reset", "step", "action_masks"):
        noted(name)
    trainer = Trainer(arena())
    assert not calls
    trainer.say(initialization=first_input())
    assert calls == {"reset", "step", "action_masks"}


def test_each_team_acts_for_itself_and_without_actions_by_zeros() -> None:
    trainer = Trainer(Race(3, agents=2), Scenario({"right": 1.0}))
    trainer.begin()
    answer = trainer.step(second=ActionTuple(discrete=np.full((3, 1), 2)))
    assert trainer.steps(answer, FIRST)[0].obs[0][:, 0].tolist() == [-1.0] * 3
    assert trainer.steps(answer, SECOND)[0].obs[0][:, 0].tolist() == [1.0] * 3


def test_a_reset_drops_what_runs_without_terminal_steps() -> None:
    trainer = Trainer(Race(3, agents=2), Scenario({"right": 1.0}))
    trainer.begin()
    trainer.step()
    decisions, terminals = trainer.steps(trainer.say(1), FIRST)
    assert len(terminals) == 0
    assert not decisions.obs[0].any()


def test_parameters_that_come_with_the_reset_hold_from_the_first_episode_on() -> None:
    channel = EnvironmentParametersChannel()
    channel.set_float_parameter("time_limit", 2.0)
    trainer = Trainer(arena())
    answer = trainer.begin(side_channels=framed(take_queued([channel])))
    column = arena().spec.observation_names.index("time_left")
    assert (trainer.steps(answer, FIRST)[0].obs[0][:, column] == 2.0).all()


@pytest.mark.parametrize(("stats", "text"), [(True, True), (True, False), (False, False)])
def test_results_are_told_over_the_channels_that_are_wanted(stats: bool, text: bool) -> None:
    trainer = Trainer(arena(), reports=reports_over(stats=stats, log=STRING_LOG if text else None))
    trainer.begin()
    numbers, lines = StatsSideChannel(), StringLogChannel()
    told = set()
    for _ in range(31):
        for message in unframed(trainer.step().side_channels):
            told.add(message[0])
            assert deliver(message, by_id([numbers, lines]))
    assert told == set((STATS,) * stats + (STRING_LOG,) * text)
    results = [parse_line(line) for line in lines.get_and_clear_received_lines()]
    wins = [value for value, _ in numbers.get_and_reset_stats().get("Result/Win", [])]
    assert len(wins) == ROWS * stats
    assert len(results) == ROWS * text
    if text:
        assert wins == [float(result.won) for result in results]


def test_a_trainer_of_another_major_version_is_refused() -> None:
    with pytest.raises(UnityException, match=r"speaks version '2\.0\.0' of the protocol, this"):
        Trainer(arena(1)).say(initialization=first_input("2.0.0"))
    Trainer(arena(1)).say(initialization=first_input("1.0.0"))


def test_a_negative_seed_is_a_seed() -> None:
    trainer = Trainer(arena(1))
    trainer.say(initialization=first_input(seed=-1))
    assert trainer.say(1).infos


def test_actions_for_nobody_and_for_too_few_are_refused() -> None:
    trainer = Trainer(arena(2))
    trainer.begin()
    with pytest.raises(UnityException, match=r"no behavior 'Other'; there are: AimbotLab\?team=0"):
        trainer.say(actions={"Other": b""})
    with pytest.raises(UnityException, match=r"continuous actions must have the shape \(2, 1\)"):
        trainer.step(first=ActionTuple(np.zeros((1, 1)), np.zeros((1, 3))))
    with pytest.raises(UnityException, match="mouse is nan"):
        trainer.step(first=ActionTuple(np.full((2, 1), np.nan), np.zeros((2, 3))))
    trainer.step()


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\xff", b"nonsense"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(UnityException) as caught:
        PlayerSession(arena(1), GOTO).answer(data + b"\x0a\x05")
    assert "\n" not in str(caught.value)


def test_side_channels_that_are_cut_off_are_refused() -> None:
    trainer = Trainer(arena(1))
    trainer.begin()
    with pytest.raises(UnityException, match="cut off"):
        trainer.say(side_channels=b"\x00" * 19)


def test_more_agents_than_a_message_holds_are_refused_with_the_number_that_fits() -> None:
    with pytest.raises(ConfigurationError, match="trainers take 4 MiB, which at most") as caught:
        PlayerSession(Race(100_000, agents=2), Scenario({"right": 1.0}))
    fit = int(str(caught.value).split("at most ")[1].split()[0])
    trainer = Trainer(Race(fit, agents=2), Scenario({"right": 1.0}))
    assert len(trainer.session.begin()) < 4 * 2**20
    trainer.begin()
    right = ActionTuple(discrete=np.full((fit, 1), 2))
    trainer.step(first=right)
    trainer.step(first=right)
    coded = {FIRST: trainer.actions.encode(right)}
    message = write_trainer_message(TrainerMessage(200, 0, coded, b"", b""))
    data = trainer.session.answer(message)
    assert len(trainer.steps(read_build_message(data), FIRST)[1]) == fit
    assert 2**20 < len(data) < 4 * 2**20


def test_a_world_that_gives_nan_is_refused() -> None:
    class Broken(Race):
        def _seen(self) -> np.ndarray:
            return super()._seen() * np.float32(np.nan)

    trainer = Trainer(Broken(1), Scenario({"right": 1.0}))
    trainer.say(initialization=first_input())
    with pytest.raises(RuntimeError, match="observations provided by the world have NaN") as caught:
        trainer.say(1)
    assert isinstance(caught.value, NotFiniteError)


def test_a_name_that_trainers_misread_is_refused() -> None:
    with pytest.raises(LabError, match="behavior name"):
        PlayerSession(arena(1), GOTO, name="A?team=0")


StatusCode = Enum("StatusCode", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
OVER = write_trainer_message(TrainerMessage(400, 0, {}, b"", b""))


class RpcError(Exception):
    def __init__(self, code: StatusCode) -> None:
        super().__init__()
        self.code = lambda: code


class FutureTimeoutError(Exception):
    pass


def played_over(
    monkeypatch: pytest.MonkeyPatch, trainer: Callable[..., bytes], *, listens: bool = True
) -> list[Any]:
    """The messages of a player to `trainer`, which takes each and gives its answer."""
    sent: list[Any] = []

    def exchange(message: bytes, timeout: float | None = None) -> bytes:
        sent.append(read_build_message(message))
        return trainer(message)

    def result(timeout: float) -> None:
        if not listens:
            raise FutureTimeoutError

    channel = SimpleNamespace(unary_unary=lambda method: exchange)
    stand_in = SimpleNamespace(
        insecure_channel=lambda address, options: nullcontext(channel),
        channel_ready_future=lambda channel: SimpleNamespace(result=result),
        RpcError=RpcError,
        StatusCode=StatusCode,
        FutureTimeoutError=FutureTimeoutError,
    )
    monkeypatch.setattr(grpc_link, "grpc_module", lambda: stand_in)
    grpc_link.play(PlayerSession(arena(1), GOTO), 5004, wait_s=1.0)
    return sent


def test_a_player_goes_quietly_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    (greeting,) = played_over(monkeypatch, lambda message: OVER)
    assert greeting.initialization


def test_a_player_goes_quietly_when_its_trainer_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(message: bytes) -> bytes:
        raise RpcError(StatusCode.UNAVAILABLE)

    assert len(played_over(monkeypatch, gone)) == 1


def test_without_a_trainer_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="no trainer listens on port 5004: start it first"):
        played_over(monkeypatch, lambda message: OVER, listens=False)


def test_a_message_that_is_too_long_for_the_trainer_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(message: bytes) -> bytes:
        raise RpcError(StatusCode.RESOURCE_EXHAUSTED)

    with pytest.raises(LabError, match="it takes 4 MiB: play fewer agents"):
        played_over(monkeypatch, full)


@pytest.mark.parametrize("stays", [True, False])
def test_a_trainer_is_told_when_its_message_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    told = []

    def confused(message: bytes) -> bytes:
        told.append(read_build_message(message).status)
        if told[-1] == 400 and not stays:
            raise RpcError(StatusCode.UNAVAILABLE)
        return b"\x08"

    with pytest.raises(WireError, match="a message can't be read"):
        played_over(monkeypatch, confused)
    assert told == [200, 400]
