"""Rays and pictures as sensors of their own: layouts, and what goes over the wire."""

import struct
import zlib

import numpy as np
import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import ObservationBlock, WorldSpec
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.mlagents.base_env import DimensionProperty
from aimbot_lab.mlagents.info_codec import InfoCodec, behavior_spec, sensors_of
from aimbot_lab.mlagents.messages import (
    TrainerMessage,
    new_message,
    parsed,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.session import PlayerSession, in_threes, png_file
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings, ObservationSettings
from tests.mlagents.llapi_worlds import GOTO

BEHAVIOR, ROWS = "AimbotLab?team=0", 4


def filmed(*, grey: bool = True, **settings: object) -> Arena:
    camera = CameraSettings(width=8, height=6, grey=grey)
    told = ObservationSettings(camera=camera, rays="ml-agents")
    return Arena(ArenaSettings(num_envs=ROWS, observation=told, **settings))  # type: ignore[arg-type]


def spec_of(*blocks: ObservationBlock) -> WorldSpec:
    width = sum(block.columns for block in blocks)
    bounds = np.zeros(width, np.float32)
    names = tuple(map(str, range(width)))
    given = (3,), 0, 1.0, {"a": 0}, {"a": 0}, ("r",), ()
    return WorldSpec(names, bounds, bounds, *given, blocks=blocks)


def test_sensors_are_sorted_by_name_and_hold_their_columns() -> None:
    spec = spec_of(
        ObservationBlock("own", "vector", (2,)),
        ObservationBlock("eye", "image", (2, 3, 3), "CameraSensor"),
        ObservationBlock("rays", "rays", (2, 5), "RayPerceptionSensor"),
        ObservationBlock("rest", "vector", (1,)),
    )
    camera, rays, vector = sensors_of(spec)
    assert [s.spec.name for s in (camera, rays, vector)] == [
        *("CameraSensor", "RayPerceptionSensor", "VectorSensor_size3")
    ]
    seen = np.zeros(2, spec.observation_dtype)
    seen["columns"] = columns = np.arange(2 * 13, dtype=np.float32).reshape(2, 13)
    seen["eye"] = np.arange(2 * 18).reshape(2, 2, 3, 3)
    np.testing.assert_array_equal(vector.of(seen), columns[:, [0, 1, 12]])
    np.testing.assert_array_equal(rays.of(seen), columns[:, 2:12])
    pixels = seen["eye"] / np.float32(255)
    np.testing.assert_array_equal(camera.of(seen), pixels.transpose(0, 3, 1, 2))
    first, move = DimensionProperty.NONE, DimensionProperty.TRANSLATIONAL_EQUIVARIANCE
    assert camera.spec.dimension_property == (first, move, move)
    before = sensors_of(spec, channels_first=False)[0]
    np.testing.assert_array_equal(before.of(seen), pixels)
    assert before.spec.dimension_property == (move, move, first)


def test_earlier_observations_are_further_channels_and_numbers() -> None:
    spec = filmed(grey=False, stacked_vectors=2).spec
    camera, rays, vector = sensors_of(spec)
    assert (camera.spec.name, camera.spec.shape) == ("StackingSensor_size2_CameraSensor", (6, 6, 8))
    assert rays.spec.name == "StackingSensor_size2_RayPerceptionSensor"
    assert (rays.spec.shape, vector.spec.shape) == ((2 * 19 * 5,), (2 * 13,))
    (block,) = spec.pictures
    assert block.shape == (6, 8, 6)


def test_a_world_without_them_has_one_vector_of_all_columns() -> None:
    (vector,) = sensors_of(Arena(ArenaSettings(num_envs=1)).spec)
    seen = np.zeros((3, 51), np.float32)
    assert vector.of(seen) is seen
    assert vector.spec.name == "VectorSensor_size51"


def infos_of(
    version: str, *, png: bool, grey: bool = True, **settings: object
) -> tuple[WorldSpec, bytes]:
    """An arena's spec, and its ListAgentInfo after the reset, to a trainer of `version`."""
    arena = filmed(grey=grey, **settings)
    session = PlayerSession(arena, GOTO, png=png)
    session.begin()
    given = new_message("InitInput")
    given.communication_version, given.package_version, given.seed = "1.5.0", version, 5
    for command, first in ((0, given.SerializeToString()), (1, b"")):
        message = TrainerMessage(200, command, {}, b"", first)
        answer = session.answer(write_trainer_message(message))
        assert answer is not None
    return arena.spec, read_build_message(answer).infos[BEHAVIOR]


@pytest.mark.parametrize(("version", "first"), [("0.30.0", False), ("", True)])
def test_the_layout_of_a_picture_is_that_of_the_trainers_version(version: str, first: bool) -> None:
    told, data = infos_of(version, png=False)
    spec = behavior_spec(told, channels_first=first)
    assert spec.observation_specs[0].shape == ((1, 6, 8) if first else (6, 8, 1))
    decisions, _ = InfoCodec(spec).decode(data)
    env = LabEnvironment(filmed(), GOTO, seed=5)
    env.reset()
    played = env.get_steps(BEHAVIOR)[0]
    np.testing.assert_array_equal(
        decisions.obs[0].reshape(ROWS, 48), played.obs[0].reshape(ROWS, 48)
    )
    np.testing.assert_array_equal(decisions.obs[1], played.obs[1])
    assert played.obs[0].std() > 0.05
    message = parsed("ListAgentInfo", data)
    assert list(message.value[0].observations[0].shape) == list(spec.observation_specs[0].shape)


def pixels_of(file: bytes) -> tuple[np.ndarray, bytes]:
    """Pixels [H, W, 3] of a PNG file as `png_file` writes it, and what stands behind it."""
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while b"IEND" not in chunks:
        (length,) = struct.unpack_from(">I", file, place)
        kind, data = file[place + 4 : place + 8], file[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", file, place + 8 + length)[0] == zlib.crc32(kind + data)
        chunks[kind], place = data, place + 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3), file[place:]


@pytest.mark.parametrize(("grey", "stacked", "mapping"), [
    (True, 1, []),
    (False, 1, []),
    (True, 2, [0, 1, -1]),
    (False, 2, [0, 1, 2, 3, 4, 5]),
])  # fmt: skip
def test_compressed_pictures_hold_the_same(grey: bool, stacked: int, mapping: list[int]) -> None:
    _, data = infos_of("1.1.0", png=True, grey=grey, stacked_vectors=stacked)
    message = parsed("ListAgentInfo", data)
    spec, plain = infos_of("1.1.0", png=False, grey=grey, stacked_vectors=stacked)
    decisions, _ = InfoCodec(behavior_spec(spec)).decode(plain)
    channels = (1 if grey else 3) * stacked
    for row, info in enumerate(message.value):
        picture, rays, _ = info.observations
        assert (picture.compression_type, list(picture.shape)) == (1, [channels, 6, 8])
        assert list(picture.compressed_channel_mapping) == mapping
        files = picture.compressed_data
        shown = []
        while files:
            pixels, files = pixels_of(files)
            shown.append(pixels)
        seen = np.concatenate(shown, axis=2)[:, :, :channels].transpose(2, 0, 1)
        np.testing.assert_array_equal(
            seen.astype(np.float32) / np.float32(255.0), decisions.obs[0][row]
        )
        np.testing.assert_array_equal(rays.float_data.data, decisions.obs[1][row])
        assert info.id == row


def test_shades_are_filled_up_to_threes() -> None:
    pixels = np.arange(2 * 2 * 4, dtype=np.uint8).reshape(2, 2, 4)
    first, second = in_threes(pixels)
    np.testing.assert_array_equal(first, pixels[:, :, :3])
    np.testing.assert_array_equal(second[:, :, 0], pixels[:, :, 3])
    assert not second[:, :, 1:].any()
    np.testing.assert_array_equal(pixels_of(png_file(first))[0], first)


def test_pictures_that_make_messages_too_long_are_refused() -> None:
    big = CameraSettings(width=84, height=84, grey=False)
    arena = Arena(ArenaSettings(num_envs=64, observation=ObservationSettings(camera=big)))
    with pytest.raises(ConfigurationError, match=r"agents: 64 rows .* at most \d+ rows fit"):
        PlayerSession(arena, GOTO)
    PlayerSession(
        Arena(ArenaSettings(num_envs=16, observation=ObservationSettings(camera=big))), GOTO
    )
