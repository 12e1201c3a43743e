"""Pictures through convolutions: which columns they see, and a training that goes through them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.torch_layers import CombinedExtractor, NatureCNN
from stable_baselines3.common.utils import obs_as_tensor

from aimbot_lab.adapters.spaces import ObservationCodec, observation_space
from aimbot_lab.foundation.world import ObservationBlock, WorldSpec
from aimbot_lab.training.algorithms.ppo_update import HybridRolloutBuffer
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.networks.network import MLP
from aimbot_lab.training.networks.settings import NetworkSettings, PictureSettings, resolved_picture
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings, ObservationSettings
from aimbot_lab.worlds.arena.spec import arena_spec, observation_width, picture_columns


def arena_settings(*, grey: bool = True, stacked: int = 1) -> ArenaSettings:
    camera = CameraSettings(width=12, height=8, grey=grey)
    return ArenaSettings(observation=ObservationSettings(camera=camera), stacked_vectors=stacked)


def features_of(spec: WorldSpec, **picture: Any) -> th.nn.Module:
    network = NetworkSettings(features="scaled", picture=PictureSettings(**picture))
    th.manual_seed(0)
    return MLP.features(network, observation_space(spec, joined=True), spec=spec)


def observations(spec: WorldSpec, count: int = 4) -> dict[str, th.Tensor]:
    drawn = np.random.default_rng(1).random((count, len(spec.observation_names)))
    low, high = spec.observation_low, spec.observation_high
    seen = np.zeros(count, spec.observation_dtype)
    seen["columns"] = low + drawn * (high - low)
    for block in spec.pictures:
        seen[block.name] = np.random.default_rng(2).integers(0, 256, (count, *block.shape))
    shown = ObservationCodec(spec, channels_first=True, joined=True).shown(seen)
    return {name: th.as_tensor(np.ascontiguousarray(part)) for name, part in shown.items()}


@pytest.mark.parametrize("grey", [True, False])
def test_channels_are_the_shades_of_earlier_pictures_then_of_later_ones(grey: bool) -> None:
    settings = arena_settings(grey=grey, stacked=2)
    columns = picture_columns(settings)["camera"]
    shades, size = (1 if grey else 3), 12 * 8 * (1 if grey else 3)
    assert columns.shape == arena_spec(settings).pictures[0].shape == (8, 12, 2 * shades)
    width = observation_width(settings) + size
    pixel = 13 + (5 * 12 + 7) * shades
    expected = [pixel + shade + age * width for age in range(2) for shade in range(shades)]
    assert columns[5, 7].tolist() == expected


def test_beside_a_picture_the_other_columns_go_straight_through_and_alone_it_is_all() -> None:
    spec = arena_spec(arena_settings())
    seen = observations(spec)
    blank = {**seen, "camera": 0 * seen["camera"]}
    alone, beside = features_of(spec, alone=True), features_of(spec, size=5)
    assert alone(seen).shape == (4, 64)
    assert th.equal(alone({**seen, "columns": 0 * seen["columns"]}), alone(seen))
    assert not th.equal(alone(blank), alone(seen))
    features, other = beside(seen), beside(blank)
    assert features.shape == (4, 13 + 38 + 5)
    assert th.equal(features[:, :51], other[:, :51])
    assert not th.equal(features[:, 51:], other[:, 51:])


def test_the_first_layer_is_a_convolution_of_the_picture_over_255() -> None:
    spec = arena_spec(arena_settings())
    module: Any = features_of(spec, alone=True)
    seen = observations(spec)
    (encoder,) = module.picture
    first, *_ = encoder.layers
    convolved = th.nn.functional.conv2d(
        seen["camera"] / 255, first.weight, first.bias, stride=2, padding=1
    )
    by_hand = encoder.layers[1:](convolved).detach()
    np.testing.assert_allclose(by_hand, module(seen).detach(), atol=1e-6)


def large(columns: int = 0, side: int = 40) -> WorldSpec:
    """A world of one picture, and of a vector where there are `columns`."""
    vector = (ObservationBlock("vector", "vector", (columns,)),) if columns else ()
    blocks = (ObservationBlock("image", "image", (side, side + 4, 3)), *vector)
    bounds = np.full(columns, 2.0, np.float32)
    names = tuple(map(str, range(columns)))
    return WorldSpec(
        names, -bounds, bounds, (3,), 0, 1.0, {"a": 0}, {"a": 0}, ("r",), (), blocks=blocks
    )


@pytest.mark.parametrize("columns", [0, 3])
def test_other_algorithms_see_by_the_librarys_own_extractors_to_the_bit(columns: int) -> None:
    spec = large(columns)
    space = observation_space(spec)
    th.manual_seed(1)
    ours = MLP.features(NetworkSettings(scaling="none"), space, spec=spec)
    th.manual_seed(1)
    theirs = NatureCNN(space) if not columns else CombinedExtractor(space)  # type: ignore[arg-type]
    seen = np.zeros(5, spec.observation_dtype)
    seen["image"] = np.random.default_rng(3).integers(0, 256, (5, 40, 44, 3))
    seen["columns"] = np.random.default_rng(4).random((5, columns))
    shown = ObservationCodec(spec, channels_first=True).shown(seen)
    tensors: Any = preprocess_obs(obs_as_tensor(shown, "cpu"), space)
    assert th.equal(ours(tensors), theirs(tensors))


def test_a_picture_that_is_too_small_for_nature_has_the_small_encoder() -> None:
    for side, encoder in ((7, "small"), (40, "nature")):
        assert resolved_picture(NetworkSettings(), large(side=side)).encoder == encoder


def test_a_rollout_keeps_pictures_in_8_bits() -> None:
    """84 x 84 x 4 take 28,224 bytes a step, as float columns they would take 112,896."""
    blocks = (ObservationBlock("image", "image", (84, 84, 4)), large(5).blocks[1])
    spec = replace(large(5), blocks=blocks)
    for joined in (True, False):
        space = observation_space(spec, joined=joined)
        ours = HybridRolloutBuffer(4, space, spaces.Discrete(3), n_envs=2)
        assert ours.observations.nbytes == 4 * 2 * (84 * 84 * 4 + 5 * 4)
        packed = pack({"observations": ours.observations})
        assert len(packed) < ours.observations.nbytes + 1000
        again = unpack(packed)["observations"]
        assert again.dtype == ours.observations.dtype
        np.testing.assert_array_equal(again, ours.observations)
