"""Pictures through convolutions: which columns they see, and a training that goes through them."""

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from tiny_training import Sink
from units_training import units_plan

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.network import MLP
from aimbot_lab.training.networks.parts.picture_encoder import picture_columns
from aimbot_lab.training.networks.settings import NetworkSettings, PictureSettings
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings, ObservationSettings
from aimbot_lab.worlds.arena.spec import arena_spec


def spec_with(*, grey: bool = True, stacked: int = 1) -> WorldSpec:
    camera = CameraSettings(width=12, height=8, grey=grey)
    told = ObservationSettings(camera=camera)
    return arena_spec(ArenaSettings(observation=told, stacked_vectors=stacked))


def features_of(spec: WorldSpec, **picture: Any) -> th.nn.Module:
    space = spaces.Box(spec.observation_low, spec.observation_high)
    network = NetworkSettings(features="scaled", picture=PictureSettings(**picture))
    th.manual_seed(0)
    return MLP.features(network, space, spec=spec)


def observations(spec: WorldSpec, count: int = 4) -> th.Tensor:
    drawn = np.random.default_rng(1).random((count, len(spec.observation_names)))
    low, high = spec.observation_low, spec.observation_high
    return th.as_tensor((low + drawn * (high - low)).astype(np.float32))


@pytest.mark.parametrize("grey", [True, False])
def test_channels_are_the_shades_of_earlier_pictures_then_of_later_ones(grey: bool) -> None:
    spec = spec_with(grey=grey, stacked=2)
    names = np.array(spec.observation_names)[picture_columns(spec)]
    shades = [""] if grey else ["_red", "_green", "_blue"]
    assert names.shape == (2 * len(shades), 8, 12)
    expected = [f"camera_5_7{shade}{age}" for age in ("@-1", "") for shade in shades]
    assert names[:, 5, 7].tolist() == expected


def test_a_picture_alone_is_all_that_is_seen() -> None:
    spec = spec_with()
    module, seen = features_of(spec, alone=True), observations(spec)
    shown = picture_columns(spec).flatten()
    others = np.setdiff1d(np.arange(len(spec.observation_names)), shown)
    before, changed = module(seen), seen.clone()
    changed[:, others] = 0.0
    assert th.equal(module(changed), before)
    assert before.shape == (4, 64)
    changed[:, shown[50]] = 0.0
    assert not th.equal(module(changed), before)


def test_beside_a_picture_the_other_columns_go_straight_through() -> None:
    spec = spec_with()
    module, seen = features_of(spec, size=5), observations(spec)
    seen.requires_grad_(True)
    features = module(seen)
    assert features.shape == (4, 13 + 38 + 5)
    features[:, :51].sum().backward()
    assert seen.grad is not None
    assert not seen.grad[:, picture_columns(spec).flatten()].any()


def test_the_first_layer_is_a_convolution_of_the_scaled_picture() -> None:
    spec = spec_with()
    module: Any = features_of(spec, alone=True)
    seen = observations(spec)
    encoder = module.picture
    picture = 2.0 * seen[:, picture_columns(spec).flatten()].reshape(4, 1, 8, 12) - 1.0
    first = encoder.layers[0]
    by_hand = th.nn.functional.conv2d(picture, first.weight, first.bias, stride=2, padding=1)
    np.testing.assert_allclose(
        encoder.layers[1:](by_hand).detach(), module(seen).detach(), atol=1e-6
    )


def test_a_training_goes_through_the_picture_by_torch_and_says_so() -> None:
    told = ObservationSettings(camera=CameraSettings(width=12, height=8))
    network = NetworkSettings(layers=(8,), picture=PictureSettings(alone=True))
    plan = units_plan(env={"observation": told}, network=network, engine="auto")
    training = Training(plan)
    assert any("network.picture" in remark for remark in training.remarks)
    encoder = training.model.policy.features_extractor.picture
    before = [weight.detach().clone() for weight in encoder.parameters()]
    training.learn(Sink(), SilentObserver(), lambda: False)
    after = list(encoder.parameters())
    assert len(after) == 6
    assert not any(th.equal(one, other) for one, other in zip(before, after, strict=True))
