"""The codec reads and writes what protobuf does, in whatever form it came."""

from random import Random
from typing import Any

import numpy as np
import pytest

from aimbot_lab.mlagents import ActionSpec, ActionTuple
from aimbot_lab.mlagents.exception import UnityException
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, observation_specs
from aimbot_lab.mlagents.messages import (
    BuildMessage,
    TrainerMessage,
    WireError,
    new_message,
    parsed,
    read_build_message,
    read_trainer_message,
    write_build_message,
    write_bytes,
    write_trainer_message,
)
from tests.mlagents.wire_messages import (
    MESSAGES,
    a_list,
    a_spec,
    an_action,
    an_info,
    mutated,
    some_steps,
)


def generated_infos(seed: int) -> tuple[InfoCodec, bytes, Any]:
    random = Random(seed)
    spec = a_spec(random)
    data = a_list(random, [an_info(random, spec) for _ in range(random.randrange(6))])
    return InfoCodec(spec), data, spec


def check_infos(steps: Any, infos: Any, spec: Any) -> None:
    """`steps` are what protobuf's `infos` say."""
    decisions, terminals = steps
    for found, done in ((decisions, False), (terminals, True)):
        told = [info for info in infos.value if info.done == done]
        assert found.agent_id.tolist() == [info.id for info in told]
        assert found.group_id.tolist() == [info.group_id for info in told]
        equal(found.reward, [info.reward for info in told])
        equal(found.group_reward, [info.group_reward for info in told])
        for place, sensor in enumerate(spec.observation_specs):
            floats = [info.observations[place].float_data.data for info in told]
            equal(found.obs[place], np.reshape(floats, (len(told), *sensor.shape)))
    ended = [info.max_step_reached for info in infos.value if info.done]
    assert terminals.interrupted.tolist() == ended
    sizes = spec.action_spec.discrete_branches
    told = [info for info in infos.value if not info.done]
    if not (sizes and told):
        assert decisions.action_mask is None
        return
    size = sum(sizes)
    masks = [m if len(m) == size else [False] * size for m in (i.action_mask for i in told)]
    np.testing.assert_array_equal(np.concatenate(decisions.action_mask, axis=1), masks)
    assert [mask.shape[1] for mask in decisions.action_mask] == list(sizes)


def equal(found: np.ndarray, told: Any) -> None:
    """The same float32, bit for bit."""
    expected = np.asarray(told, np.float32).reshape(found.shape)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_infos_are_read_as_protobuf_reads_them() -> None:
    for seed in range(MESSAGES):
        codec, data, spec = generated_infos(seed)
        expected = parsed("ListAgentInfo", data)
        check_infos(codec.decode(data), expected, spec)
        check_infos(codec.decode(expected.SerializeToString()), expected, spec)


def test_infos_are_written_as_protobuf_reads_them() -> None:
    for seed in range(MESSAGES):
        random = Random(seed)
        spec = a_spec(random)
        steps, codec = some_steps(random, spec), InfoCodec(spec)
        data = codec.encode(*steps)
        infos = parsed("ListAgentInfo", data)
        assert [info.done for info in infos.value] == [True] * len(steps[1]) + [False] * len(
            steps[0]
        )
        check_infos(codec.decode(data), infos, spec)
        given = steps if len(steps[0]) else (_without_masks(steps[0]), steps[1])
        check_infos(given, infos, spec)
        for info in infos.value:
            check_observations(info, spec)


def _without_masks(decisions: Any) -> Any:
    decisions.action_mask = None
    return decisions


def check_observations(info: Any, spec: Any) -> None:
    """Each observation says what its sensor is."""
    for one, sensor in zip(info.observations, spec.observation_specs, strict=True):
        assert (tuple(one.shape), one.name) == (sensor.shape, sensor.name)
        assert tuple(one.dimension_properties) == sensor.dimension_property
        assert one.observation_type == sensor.observation_type.value
        assert one.compression_type == 0


def test_actions_are_read_as_protobuf_reads_them() -> None:
    for seed in range(MESSAGES):
        random = Random(seed)
        spec = a_spec(random).action_spec
        count = random.randrange(6)
        data = a_list(random, [an_action(random, spec) for _ in range(count)])
        expected = parsed("ListAgentAction", data)
        for form in (data, expected.SerializeToString()):
            found = ActionCodec(spec).decode(form)
            equal(found.continuous, [one.continuous_actions for one in expected.value])
            choices = [list(one.discrete_actions) for one in expected.value]
            assert found.discrete.tolist() == choices
            assert found.discrete.dtype == np.int32


@pytest.mark.parametrize("deprecated", [False, True])
def test_actions_of_trainers_are_read_as_one_array(
    deprecated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActionCodec, "_decode_any", None)
    actions = new_message("ListAgentAction")
    for row in range(5):
        one = actions.value.add()
        one.continuous_actions.extend([row / 2, 0.0])
        one.discrete_actions.extend([row, 0, 1])
        if deprecated:
            one.vector_actions_deprecated.extend([row / 2, 0.0, row, 0, 1])
    found = ActionCodec(ActionSpec(2, (9, 3, 2))).decode(actions.SerializeToString())
    assert found.continuous.tolist() == [[row / 2, 0.0] for row in range(5)]
    assert found.discrete.tolist() == [[row, 0, 1] for row in range(5)]


def test_actions_are_written_as_protobuf_reads_them() -> None:
    for seed in range(MESSAGES):
        random = Random(seed)
        spec = a_spec(random).action_spec
        np.random.seed(seed)
        action = spec.random_action(random.randrange(6))
        data = ActionCodec(spec).encode(action)
        told = parsed("ListAgentAction", data)
        equal(action.continuous, [one.continuous_actions for one in told.value])
        assert action.discrete.tolist() == [list(one.discrete_actions) for one in told.value]
        again = ActionCodec(spec).decode(data)
        np.testing.assert_array_equal(again.discrete, action.discrete)
        equal(again.continuous, action.continuous)


def test_whole_messages_come_back_with_their_maps_in_order() -> None:
    actions = {"B": b"\x0a\x00", "A?team=0": b""}
    sent = TrainerMessage(200, 1, actions, b"side", b"\x08\x05")
    data = write_trainer_message(sent)
    assert read_trainer_message(data) == sent
    assert list(read_trainer_message(data).actions) == ["B", "A?team=0"]
    answer = BuildMessage(400, {"A?team=0": b"\x0a\x02\x50\x07"}, b"back", b"\x0a\x01x")
    assert read_build_message(write_build_message(answer)) == answer
    assert read_build_message(b"") == (0, {}, b"", b"")


def test_a_message_in_two_parts_is_their_sum() -> None:
    first = TrainerMessage(200, 1, {"A": b""}, b"old", b"")
    second = TrainerMessage(201, 0, {"A": b"\x0a\x00", "B": b""}, b"new", b"")
    found = read_trainer_message(write_trainer_message(first) + write_trainer_message(second))
    assert found == (201, 1, {"A": b"\x0a\x00", "B": b""}, b"new", b"")


def test_mutated_messages_give_a_line_or_steps_and_never_hang() -> None:
    refusals = [line for seed in range(max(MESSAGES // 5, 100)) for line in refused(seed)]
    assert len(refusals) > 20
    assert all(line.isprintable() for line in refusals)


def refused(seed: int) -> list[str]:
    """Why a mutated answer of a build and a mutated message of a trainer are not read."""
    random = Random(seed)
    codec, data, spec = generated_infos(seed)
    actions = a_list(random, [an_action(random, spec.action_spec) for _ in range(4)])
    answer = mutated(random, write_build_message(BuildMessage(200, {"A": data}, b"", b"")))
    sent = write_trainer_message(TrainerMessage(200, 0, {"A": actions}, b"", b""))
    sent, action_codec, lines = mutated(random, sent), ActionCodec(spec.action_spec), []
    try:
        for one in read_build_message(answer).infos.values():
            codec.decode(one)
    except UnityException as error:
        lines.append(str(error))
    try:
        for one in read_trainer_message(sent).actions.values():
            action_codec.decode(one)
    except UnityException as error:
        lines.append(str(error))
    return lines


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # cut off
        b"\x08" + b"\xff" * 10,  # a number longer than 64 bits
        b"\x0a\x05ab",
        b"\x00\x01",  # not a field
        b"\x0e\x01",
        b"\x0c",  # the end of a group that did not begin
        b"\x0b",
        b"\x0b" * 101,
        write_bytes(3, write_bytes(1, write_bytes(1, write_bytes(1, b"\xff")))),  # a name, no text
    ],
)
def test_what_is_no_message_is_refused_in_a_line(data: bytes) -> None:
    with pytest.raises(WireError, match=r"^a message can't be read: it is not one of ML-Agents$"):
        read_trainer_message(data)


@pytest.mark.parametrize("shape", [[-1], [-1, -4], [2**31 - 1] * 4, [5]])
def test_a_sensor_whose_shape_is_not_that_of_its_numbers_is_refused(shape: list[int]) -> None:
    infos = new_message("ListAgentInfo")
    seen = infos.value.add().observations.add(shape=shape, name="ray")
    seen.float_data.data.extend([0.0] * 4)
    with pytest.raises(UnityException, match="sensor 'ray': "):
        observation_specs(infos.SerializeToString())


def test_actions_of_another_size_are_refused() -> None:
    data = ActionCodec(ActionSpec(1, (3,))).encode(ActionSpec(1, (3,)).empty_action(2))
    with pytest.raises(WireError, match="action 0 has 1 continuous numbers and 1 choices; it must"):
        ActionCodec(ActionSpec(2, (3,))).decode(data)


def test_choices_that_a_byte_does_not_hold_are_sent_too() -> None:
    codec = ActionCodec(ActionSpec(1, (300, 2)))
    sent = ActionTuple(np.array([[0.5], [-1]], np.float32), np.array([[299, 1], [127, 0]]))
    read = codec.decode(codec.encode(sent))
    assert read.continuous.tolist() == [[0.5], [-1]]
    assert read.discrete.tolist() == [[299, 1], [127, 0]]
    with pytest.raises(WireError, match="must not be negative"):
        codec.encode(ActionTuple(discrete=np.array([[-1, 0]]), continuous=np.zeros((1, 1))))


def test_observations_of_another_size_are_refused() -> None:
    random = Random(0)
    spec = a_spec(random)
    wider = spec._replace(
        observation_specs=[one._replace(shape=(9, 9)) for one in spec.observation_specs]
    )
    data = a_list(random, [an_info(random, spec)])
    with pytest.raises(UnityException, match="; before it had \\(9, 9\\)"):
        InfoCodec(wider).decode(data)
    fewer = spec._replace(observation_specs=[])
    with pytest.raises(UnityException, match="observations; it must have 0"):
        InfoCodec(fewer).decode(data)
