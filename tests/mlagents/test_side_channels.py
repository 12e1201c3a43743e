"""Side channels: messages as ML-Agents writes them, and what a world does with them."""

import logging
import struct
import uuid
from pathlib import Path

import numpy as np
import pytest
import yaml

import aimbot_lab.mlagents
from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.episodes import parse_line
from aimbot_lab.foundation.settings import Gaussian, MultiRangeUniform, Uniform, UniformParameters
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.mlagents.exception import (
    UnityCommunicationException,
    UnityEnvironmentException,
    UnitySideChannelException,
)
from aimbot_lab.mlagents.player import ReceivedParameters, read_parameter
from aimbot_lab.mlagents.side_channel import IncomingMessage, OutgoingMessage
from aimbot_lab.mlagents.side_channel.engine_configuration_channel import (
    EngineConfig,
    EngineConfigurationChannel,
)
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    EnvironmentParametersChannel,
)
from aimbot_lab.mlagents.side_channel.float_properties_channel import FloatPropertiesChannel
from aimbot_lab.mlagents.side_channel.raw_bytes_channel import RawBytesChannel
from aimbot_lab.mlagents.side_channel.side_channel import framed, unframed
from aimbot_lab.mlagents.side_channel.stats_side_channel import (
    StatsAggregationMethod,
    StatsSideChannel,
)
from aimbot_lab.mlagents.side_channel.string_log_channel import StringLogChannel
from aimbot_lab.worlds.registry import make_world
from tests.mlagents.llapi_worlds import GOTO, ROWS, arena, played

NAME = "AimbotLab?team=0"
TRAINER_FILE = Path(aimbot_lab.mlagents.__file__).parent / "goto_ppo.yaml"


def last_sent(channel: EnvironmentParametersChannel) -> bytes:
    return bytes(channel.message_queue[-1])


def test_what_is_written_is_read_from_the_bytes_of_the_wire() -> None:
    message = OutgoingMessage()
    message.write_string("ab")
    message.write_bool(True)
    assert message.buffer == b"\x02\x00\x00\x00ab\x01"
    message.write_int32(-5)
    message.write_float32(0.1)
    message.write_float32_list([1.0, 2.5])
    read = IncomingMessage(bytes(message.buffer))
    assert (read.read_string(), read.read_bool(), read.read_int32()) == ("ab", True, -5)
    assert (read.read_float32(), read.read_float32_list()) == (float(np.float32(0.1)), [1.0, 2.5])
    assert read.get_raw_bytes() == message.buffer


def test_reading_at_the_end_gives_the_defaults() -> None:
    read = IncomingMessage(b"")
    assert (read.read_bool(True), read.read_int32(4), read.read_float32(0.5)) == (True, 4, 0.5)
    assert (read.read_string("none"), read.read_float32_list(), read.read_float32_list([1.0])) == (
        "none",
        [],
        [1.0],
    )


@pytest.mark.parametrize(
    ("data", "method"),
    [
        (b"\x01", "read_float32"),
        (b"\x09\x00\x00\x00abc", "read_string"),
        (b"\xff\xff\xff\x7f\x00\x00\x00\x00", "read_float32_list"),
    ],
)
def test_a_message_that_ends_within_a_value_is_an_error(data: bytes, method: str) -> None:
    with pytest.raises(struct.error, match="ends within a value") as caught:
        getattr(IncomingMessage(data), method)()
    assert isinstance(caught.value, UnitySideChannelException)


def test_text_is_ascii_both_ways() -> None:
    with pytest.raises(UnicodeError, match="sends ASCII only"):
        OutgoingMessage().write_string("Größe")
    with pytest.raises(UnicodeError, match="is not ASCII"):
        IncomingMessage(b"\x02\x00\x00\x00\xc3\xb6").read_string()


@pytest.mark.parametrize(("method", "value"), [("write_int32", 2**31), ("write_float32", 1e39)])
def test_a_number_that_its_type_does_not_hold_is_an_error(method: str, value: float) -> None:
    with pytest.raises(UnitySideChannelException, match="can't be sent as"):
        getattr(OutgoingMessage(), method)(value)


def test_messages_of_several_channels_come_apart_again_unless_their_lengths_are_wrong() -> None:
    messages = [(uuid.uuid5(uuid.NAMESPACE_URL, str(n)), bytes(range(n))) for n in range(5)]
    data = framed(messages)
    assert unframed(data) == messages
    for end in range(1, len(data)):
        if end not in np.cumsum([20 + n for n in range(5)]):
            with pytest.raises(UnityEnvironmentException, match="cut off"):
                unframed(data[:end])
    with pytest.raises(UnityEnvironmentException, match="no valid length"):
        unframed(uuid.NAMESPACE_URL.bytes_le + struct.pack("<i", -20))


def test_two_channels_of_one_id_are_refused() -> None:
    with pytest.raises(UnityEnvironmentException, match="two have the id"):
        LabEnvironment(arena(1), side_channels=[StatsSideChannel(), StatsSideChannel()])


def test_a_parameter_holds_for_the_episodes_that_begin_from_then_on() -> None:
    channel = EnvironmentParametersChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    column = arena().spec.observation_names.index("time_left")

    def times() -> np.ndarray:
        return env.get_steps(NAME)[0].obs[0][:, column]

    env.reset()
    assert (times() == 3.0).all()
    channel.set_float_parameter("time_limit", 2.0)
    env.step()
    assert (times() > 2.0).all()
    env.reset()
    assert (times() == 2.0).all()


@pytest.mark.parametrize("sampler", ["uniform", "multirangeuniform", "gaussian"])
def test_a_sampler_draws_a_parameter_for_each_episode(sampler: str) -> None:
    channel = EnvironmentParametersChannel()
    env = LabEnvironment(arena(64), GOTO, side_channels=[channel])
    if sampler == "uniform":
        channel.set_uniform_sampler_parameters("time_limit", 1.0, 3.0, 1)
    elif sampler == "gaussian":
        channel.set_gaussian_sampler_parameters("time_limit", 2.0, 0.2, 1)
    else:
        channel.set_multirangeuniform_sampler_parameters("time_limit", [(1, 1.1), (2.9, 3)], 1)
    env.reset()
    column = arena().spec.observation_names.index("time_left")
    drawn = env.get_steps(NAME)[0].obs[0][:, column]
    assert len(set(drawn.tolist())) > 32
    assert ((drawn >= 1.0) & (drawn <= 3.0)).all()
    if sampler == "multirangeuniform":
        assert ((drawn <= 1.11) | (drawn >= 2.89)).all()


def test_samplers_arrive_with_their_seeds() -> None:
    channel = EnvironmentParametersChannel()
    channel.set_uniform_sampler_parameters("a", 0.5, 1.5, -1)
    name, uniform = read_parameter(last_sent(channel))
    assert (name, uniform.sampler_parameters.seed) == ("a", None)
    assert isinstance(uniform, Uniform)
    channel.set_gaussian_sampler_parameters("b", 2.0, 0.5, 7)
    _, gaussian = read_parameter(last_sent(channel))
    assert isinstance(gaussian, Gaussian)
    assert (gaussian.sampler_parameters.mean, gaussian.sampler_parameters.seed) == (2.0, 7)
    channel.set_multirangeuniform_sampler_parameters("c", [(0, 1), (3, 4)], 0)
    _, ranges = read_parameter(last_sent(channel))
    assert isinstance(ranges, MultiRangeUniform)
    assert ranges.sampler_parameters.intervals == ((0.0, 1.0), (3.0, 4.0))


@pytest.mark.parametrize(
    ("call", "arguments", "says"),
    [
        ("set_float_parameter", ("time_limit", float("nan")), "must be finite"),
        ("set_float_parameter", ("time_limit", -3.0), "time_limit must"),
        ("set_uniform_sampler_parameters", ("time_limit", 3.0, 2.0, 1), "must not be above"),
        ("set_multirangeuniform_sampler_parameters", ("time_limit", [(1,)], 1), "argument 2"),
    ],
)
def test_a_value_that_no_episode_can_have_is_refused(
    call: str, arguments: tuple[object, ...], says: str
) -> None:
    channel = EnvironmentParametersChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    env.reset()
    getattr(channel, call)(*arguments)
    with pytest.raises(UnitySideChannelException, match=says) as caught:
        env.step()
    assert "\n" not in str(caught.value)
    env.step()


def test_a_parameter_that_the_world_lacks_is_ignored_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = EnvironmentParametersChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    for _ in range(3):
        channel.set_float_parameter("gravity", 9.8)
        env.step()
    (warning,) = caplog.messages
    assert warning.startswith("no environment parameter 'gravity', ignored; there are rewards.")


def test_settings_of_the_engine_have_no_effect_and_the_time_scale_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = EngineConfigurationChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    for _ in range(3):
        channel.set_configuration(EngineConfig.default_config())
        env.step()
    assert caplog.messages == ["the time scale has no effect: worlds step as fast as asked"]
    with pytest.raises(UnitySideChannelException, match="width and height"):
        channel.set_configuration_parameters(width=80)


def test_an_unknown_channel_is_named_once_with_its_first_bytes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = RawBytesChannel(uuid.UUID(int=9))
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    for _ in range(2):
        channel.send_raw_data(b"\x01\xab")
        env.step()
    (warning,) = caplog.messages
    assert warning.endswith("0000-000000000009, ignored; it begins with 01 ab")
    assert channel.get_and_clear_received_messages() == []


@pytest.mark.parametrize("kind", [EngineConfigurationChannel, EnvironmentParametersChannel])
def test_channels_to_the_environment_refuse_what_comes_from_it(kind: type) -> None:
    with pytest.raises(UnityCommunicationException, match="goes to the environment only"):
        kind().on_message_received(IncomingMessage(b"\x00"))


def test_results_arrive_as_stats_and_as_lines() -> None:
    stats, lines = StatsSideChannel(), StringLogChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[stats, lines])
    env.reset()
    played(env, 62)
    told = lines.get_and_clear_received_lines()
    results = [parse_line(line, ("seconds",)) for line in told]
    assert len(results) >= 2 * ROWS
    found = stats.get_and_reset_stats()
    assert set(found) == {"Result/Win", "Result/seconds"}
    wins = [(float(result.won), StatsAggregationMethod.AVERAGE) for result in results]
    assert found["Result/Win"] == wins
    assert not stats.get_and_reset_stats()
    assert lines.get_and_clear_received_lines() == []


def test_lines_go_over_the_channel_that_is_set() -> None:
    own = uuid.UUID(int=3)
    lines, usual = StringLogChannel(own), StringLogChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[lines, usual], log_channel=own)
    env.reset()
    played(env, 31)
    assert len(lines.get_and_clear_received_lines()) == ROWS
    assert usual.get_and_clear_received_lines() == []


def speed(aggregation: int) -> IncomingMessage:
    message = OutgoingMessage()
    message.write_string("speed")
    message.write_float32(2.5)
    message.write_int32(aggregation)
    return IncomingMessage(bytes(message.buffer))


@pytest.mark.parametrize("method", list(StatsAggregationMethod))
def test_stats_keep_how_they_are_aggregated(method: StatsAggregationMethod) -> None:
    stats = StatsSideChannel()
    stats.on_message_received(speed(method.value))
    assert stats.get_and_reset_stats() == {"speed": [(2.5, method)]}


def test_an_unknown_aggregation_is_an_error() -> None:
    with pytest.raises(UnitySideChannelException, match="'speed' came with the unknown aggreg"):
        StatsSideChannel().on_message_received(speed(9))


def test_float_properties_are_kept_on_this_side(caplog: pytest.LogCaptureFixture) -> None:
    channel = FloatPropertiesChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    channel.set_property("mass", 2.0)
    env.reset()
    assert (channel.get_property("mass"), channel.get_property("none")) == (2.0, None)
    assert (channel.list_properties(), channel.get_property_dict_copy()) == (["mass"], {"mass": 2})
    assert caplog.messages == ["float properties have no effect; use environment parameters"]
    assert caplog.records[0].levelno == logging.WARNING


def test_the_trainer_file_makes_the_first_lesson_of_goto_open_ground_with_the_usual_rules() -> None:
    told = yaml.safe_load(TRAINER_FILE.read_text(encoding="utf-8"))
    assert list(told["behaviors"]) == ["AimbotLab"]
    config = load_curriculum("goto", ()).config
    world = make_world(config.env, 4)
    scenario = lesson_scenario(config.lessons[0], world.spec.difficulties)
    received = ReceivedParameters(world, scenario)
    given = dict(told["environment_parameters"])
    lessons = given.pop("goto_win_radius")["curriculum"]
    drawn = UniformParameters(**given.pop("move_speed")["sampler_parameters"])
    given["move_speed"] = Uniform(sampler_parameters=drawn)
    for lesson in lessons:
        assert received.receive({**given, "goto_win_radius": lesson["value"]}) == ()
    assert lessons[-1]["value"] == config.env.goto_win_radius
    assert drawn.min_value < config.env.move_speed < drawn.max_value
    assert set(received._scenario.targets) == {"goto"}
    assert received._scenario.difficulty["goto"][1:] == (0.0,) * 4
    assert received._scenario.difficulty["goto"][0] > 0.0
