"""What Gymnasium environments show: pictures in every layout, and entries that are left out."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space_channels_first

from aimbot_lab.evaluation.episodes import play
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.world import Scenario, new_notices, new_observations, step_buffers
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.checkpoint import unpack
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.observations import ObservationReader
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, ObservationParts, WinRule
from aimbot_lab.worlds.gymnasium.spaces import MisfitError
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from tests.training.tiny_training import Keeper, Sink


def picture(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


def reader(space: spaces.Space[Any], **parts: Any) -> ObservationReader:
    return ObservationReader(space, ObservationParts(**parts))


def kind_of(seen: ObservationReader) -> np.dtype[Any]:
    shown = [(one.name, np.uint8, one.shape) for one in seen.blocks if one.kind == "image"]
    columns = ("columns", np.float32, (len(seen.names),))
    return np.dtype([columns, *shown], align=True) if shown else np.dtype((np.float32, columns[2]))


@pytest.mark.parametrize("shape", [(36, 36, 3), (3, 36, 36), (4, 84, 84), (7, 7, 3), (8, 9, 8)])
def test_the_channels_are_where_stable_baselines3_looks_for_them(shape: tuple[int, ...]) -> None:
    seen, given = reader(picture(*shape)), picture(*shape).sample()
    first = is_image_space_channels_first(picture(*shape))
    found = seen.read(given, kind_of(seen))["obs"]
    np.testing.assert_array_equal(found, np.moveaxis(given, 0, 2) if first else given)
    assert seen.blocks[0].shape == found.shape


def test_two_axes_are_a_picture_of_one_channel() -> None:
    seen, given = reader(picture(20, 30)), picture(20, 30).sample()
    np.testing.assert_array_equal(seen.read(given, kind_of(seen))["obs"], given[:, :, None])


@pytest.mark.parametrize("shape", [(84, 3, 84), (4, 36, 36, 3)])
def test_what_is_not_plainly_a_picture_is_asked_for(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"^env\.id: obs has .*flatten: \[obs\]}"):
        reader(picture(*shape))
    flat = reader(picture(*shape), flatten=("obs",))
    given = picture(*shape).sample()
    np.testing.assert_array_equal(flat.read(given, kind_of(flat)), given.ravel())


def test_the_file_says_the_layout_where_the_channels_are_not_fewest() -> None:
    given = picture(8, 8, 12).sample()
    seen = reader(picture(8, 8, 12), pictures={"obs": "hwc"})
    np.testing.assert_array_equal(seen.read(given, kind_of(seen))["obs"], given)


@pytest.mark.parametrize(
    "space",
    [spaces.Box(-1.0, 3.0, (2, 5, 6)), spaces.MultiBinary((2, 5, 6))],
    ids=["box", "binary"],
)
def test_numbers_are_a_picture_where_the_file_says_so(space: Any) -> None:
    assert reader(space).blocks[0].kind == "vector"
    seen, given = reader(space, pictures={"obs": "chw"}), space.sample()
    low, high = (-1.0, 3.0) if isinstance(space, spaces.Box) else (0.0, 1.0)
    levels = np.rint((np.moveaxis(given, 0, 2) - low) * (255 / (high - low)))
    np.testing.assert_array_equal(seen.read(given, kind_of(seen))["obs"], levels)


@pytest.mark.parametrize(
    ("space", "parts", "what"),
    [
        (picture(9, 9, 3), {"drop": ("mission",)}, "drop: no entry mission (there are obs)"),
        (picture(9, 9, 3), {"pictures": {"obs": "hw"}}, "pictures.obs: hw needs 2 axes"),
        (spaces.Box(-np.inf, 0, (4, 5)), {"pictures": {"obs": "hw"}}, "pictures.obs: needs bounds"),
        (spaces.Dict({"a": picture(9, 9, 3)}), {"drop": ("a",)}, "drop: leaves nothing"),
        (spaces.Dict({"a": picture(9, 9, 3)}), {"flatten": ("b",)}, "flatten: no entry b"),
    ],
)
def test_parts_that_do_not_fit_are_refused(space: Any, parts: Any, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        reader(space, **parts)
    assert str(caught.value).startswith(f"env.observation.{what}")


NESTED = spaces.Dict(
    {
        "eyes": spaces.Tuple([picture(3, 8, 8), picture(8, 8, 3)]),
        "inner": spaces.Dict({"b": spaces.Box(0, 1, (2,)), "a": spaces.Discrete(2)}),
        "mission": spaces.Text(9),
    }
)


def test_entries_are_named_blocks_at_any_depth_and_some_are_left_out() -> None:
    with pytest.raises(ConfigurationError, match=r"Text in the entry mission.*drop: \[mission\]"):
        reader(NESTED)
    seen = reader(NESTED, drop=("mission", "inner_a"))
    assert [(one.name, one.kind) for one in seen.blocks] == [
        *(("eyes_0", "image"), ("eyes_1", "image"), ("inner_b", "vector"))
    ]
    assert seen.names == ("inner_b_0", "inner_b_1")
    given = NESTED.sample()
    found = seen.read(given, kind_of(seen))
    np.testing.assert_array_equal(found["eyes_0"], np.moveaxis(given["eyes"][0], 0, 2))
    np.testing.assert_array_equal(found["columns"], given["inner"]["b"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            np.full((1, 9, 9, 3), 7, np.uint8),
            "gave obs with the shape (1, 9, 9, 3); its space says",
        ),
        (np.full((9, 9, 3), 7.2), "gave obs as float64; its space says uint8"),
        (np.full((9, 9, 3), 7), "gave obs as int64; its space says uint8"),
    ],
)
def test_another_type_or_shape_is_told(given: Any, told: str) -> None:
    seen = reader(picture(9, 9, 3))
    found = seen.read(given, kind_of(seen))["obs"]
    assert (found == 7).all()
    assert (seen.fault or "").startswith(told)


@pytest.mark.parametrize("given", [np.zeros((3, 9, 9), np.uint8), np.full((9, 9, 3), np.nan), None])
def test_what_can_not_be_the_picture_is_refused(given: Any) -> None:
    seen = reader(picture(9, 9, 3))
    with pytest.raises(MisfitError):
        seen.read(given, kind_of(seen))


class Seer(gymnasium.Env):
    """Shows how far it went as a bar in a picture and as a number; ends at five."""

    observation_space = spaces.Dict({"image": picture(9, 10, 3), "place": spaces.Box(0, 9, (2,))})
    action_space = spaces.Discrete(2)

    def seen(self) -> Any:
        image = np.zeros((9, 10, 3), np.uint8)
        image[:, : self.place] = 255
        return {"image": image, "place": np.full(2, self.place, np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.place += int(action)
        return self.seen(), float(action), self.place == 5, False, {}


gymnasium.register("Seer-v0", Seer, max_episode_steps=12)


def test_pictures_stand_beside_columns_and_the_last_ones_are_kept_at_an_episodes_end() -> None:
    settings = GymnasiumSettings(id="Seer-v0", win=WinRule(terminated="win"), num_envs=3)
    world = GymnasiumWorld(settings)
    world.set_scenario(Scenario({"task": 1.0}))
    world.reset(1, new_observations(world))
    buffers, actions = step_buffers(world), np.array([[1.0], [1.0], [0.0]], np.float32)
    for _ in range(5):
        world.step(actions, buffers)
    assert buffers.finished.tolist() == [True, True, False]
    assert not buffers.observations["image"].any()
    last = buffers.final_observations[0]
    assert last["columns"].tolist() == [5.0, 5.0]
    assert (last["image"] == 255).sum() == 9 * 5 * 3
    assert new_notices(world) == []


FILE = """
name: seer
env: {{world: gymnasium, id: Seer-v0, num_envs: 4, win: {{terminated: win}}}}
lessons: [{{name: only}}]
train:
  algo: {algo}
  total_steps: 256
  n_steps: 32
  batch_size: 32
  n_epochs: 1
"""


def planned(path: Path, algo: str) -> TrainingPlan:
    path.write_text(FILE.format(algo=algo), encoding="utf-8")
    config = load_curriculum(path, may_run=always).config
    return TrainingPlan(1, config.env, config.lessons, config.train)


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo", "dqn"])
def test_a_picture_beside_a_vector_trains_resumes_and_plays(tmp_path: Path, algo: str) -> None:
    plan = planned(tmp_path / "c.yaml", algo)
    assert plan.train.network.picture.encoder == "small"
    training, kept = Training(plan), Keeper()
    training.learn(Sink(), SilentObserver(), lambda: False, links=kept.links)
    last = kept.checkpoints[-1]
    again = kept.resumed(Training(plan), last)
    there = unpack(last.state)["model"]["parameters"]["policy"]
    for name, weight in again.model.policy.state_dict().items():
        assert weight.equal(there[name])
    agent = Agent(training.model.policy, training.env.world.spec, plan.train)
    world = training.env.world
    assert len(play(world, agent.player(world), Cell("task", 0), seed=1).won) == 4


def test_an_algorithm_that_sees_no_pictures_is_refused(tmp_path: Path) -> None:
    text = FILE.format(algo="crossq").replace("  n_steps: 32\n  n_epochs: 1\n", "")
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(
        ConfigurationError, match=r"train\.algo: crossq can't see pictures \(image\)"
    ):
        load_curriculum(tmp_path / "c.yaml", may_run=always)
