"""What Gymnasium environments show: pictures in every layout, and entries that are left out."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from corridor import corridors
from gymnasium import spaces
from pole_curriculum import agent_of, planned
from stable_baselines3.common.preprocessing import is_image_space_channels_first

from aimbot_lab.evaluation.episodes import play
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import new_notices, new_observations, step_buffers
from aimbot_lab.training.checkpoint import unpack
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.observations import ObservationReader
from aimbot_lab.worlds.gymnasium.settings import ObservationParts
from aimbot_lab.worlds.gymnasium.spaces import MisfitError
from tests.training.tiny_training import Keeper, learn


def picture(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


def reader(space: spaces.Space[Any], **parts: Any) -> ObservationReader:
    return ObservationReader(space, ObservationParts(**parts))


def read(seen: ObservationReader, given: Any) -> Any:
    """What `seen` makes of an observation."""
    shown = [(one.name, np.uint8, one.shape) for one in seen.blocks if one.kind == "image"]
    columns = ("columns", np.float32, (len(seen.names),))
    kind = np.dtype([columns, *shown], align=True) if shown else np.dtype((np.float32, columns[2]))
    return seen.read(given, kind)


@pytest.mark.parametrize(
    "shape", [(36, 36, 3), (3, 36, 36), (4, 84, 84), (7, 7, 3), (8, 9, 8), (20, 30)]
)
def test_the_channels_are_where_stable_baselines3_looks_for_them(shape: tuple[int, ...]) -> None:
    seen, given = reader(picture(*shape)), picture(*shape).sample()
    found = read(seen, given)["obs"]
    if len(shape) == 2:
        wanted = given[:, :, None]  # one channel
    elif is_image_space_channels_first(picture(*shape)):
        wanted = np.moveaxis(given, 0, 2)
    else:
        wanted = given
    np.testing.assert_array_equal(found, wanted)
    assert seen.blocks[0].shape == found.shape


@pytest.mark.parametrize("shape", [(84, 3, 84), (4, 36, 36, 3)])
def test_what_is_not_plainly_a_picture_is_asked_for(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"^env\.id: obs has .*flatten: \[obs\]}"):
        reader(picture(*shape))
    given = picture(*shape).sample()
    flat = read(reader(picture(*shape), flatten=("obs",)), given)
    np.testing.assert_array_equal(flat, given.ravel())


def test_the_file_says_the_layout_where_the_channels_are_not_fewest() -> None:
    given = picture(8, 8, 12).sample()
    seen = reader(picture(8, 8, 12), pictures={"obs": "hwc"})
    np.testing.assert_array_equal(read(seen, given)["obs"], given)


@pytest.mark.parametrize(
    ("space", "low", "high"),
    [(spaces.Box(-1.0, 3.0, (2, 5, 6)), -1.0, 3.0), (spaces.MultiBinary((2, 5, 6)), 0.0, 1.0)],
    ids=["box", "binary"],
)
def test_numbers_are_a_picture_where_the_file_says_so(space: Any, low: float, high: float) -> None:
    assert reader(space).blocks[0].kind == "vector"
    given = space.sample()
    levels = np.rint((np.moveaxis(given, 0, 2) - low) * (255 / (high - low)))
    seen = reader(space, pictures={"obs": "chw"})
    np.testing.assert_array_equal(read(seen, given)["obs"], levels)


class Mission(spaces.Space[str]):
    """Says nothing of being flattenable."""


INNER = spaces.Dict({"words": Mission()})
EYE = spaces.Dict({"a": picture(9, 9, 3)})
NOT_USED = r"id: observations of {} can't be used"


@pytest.mark.parametrize(
    ("space", "parts", "what"),
    [
        (
            picture(9, 9, 3),
            {"drop": ("mission",)},
            r"observation.drop: no entry mission \(there ar",
        ),
        (
            picture(9, 9, 3),
            {"pictures": {"obs": "hw"}},
            "observation.pictures.obs: hw needs 2 axes",
        ),
        (
            spaces.Box(-np.inf, 0, (4, 5)),
            {"pictures": {"obs": "hw"}},
            "observation.pictures.obs: needs bounds",
        ),
        (EYE, {"drop": ("a",)}, "observation.drop: leaves nothing"),
        (EYE, {"flatten": ("b",)}, "observation.flatten: no entry b"),
        (
            picture(1000, 1000, 3),
            {"flatten": ("obs",)},
            r".*more than 100,000 numbers .*drop: \[\.\.\.\]",
        ),
        (spaces.Dict({"none": spaces.Box(0, 1, (0,))}), {}, "id: an observation has no numbers"),
        (spaces.Text(3), {}, NOT_USED.format("Text")),
        (
            spaces.Dict({"a": spaces.Box(0, 1), "b": spaces.Text(3)}),
            {},
            NOT_USED.format("Text in the entry b"),
        ),
        (
            spaces.Dict({"image": picture(7, 7, 3), "mission": INNER}),
            {},
            NOT_USED.format("Mission in the entry mission_words"),
        ),
    ],
)
def test_spaces_and_parts_that_do_not_fit_are_refused_before_anything_starts(
    space: Any, parts: Any, what: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^env\.{what}"):
        reader(space, **parts)


def test_choices_are_marked_where_they_begin_and_others_are_refused() -> None:
    space = spaces.MultiDiscrete([[2, 3], [1, 4]], start=[[0, -1], [7, 2]])
    seen, given = reader(space), np.array([[1, -1], [7, 4]])
    np.testing.assert_array_equal(read(seen, given), spaces.flatten(space, given))
    assert seen.names[2] == "obs_1_is_-1"
    with pytest.raises(MisfitError, match="gave obs_1 as 2; its space says -1 to 1"):
        read(seen, np.array([[1, 2], [7, 4]]))


def test_a_whole_number_beyond_its_type_is_seen_as_it_is() -> None:
    """Cast to 8 bits it would come round, within its bounds, without a word."""
    seen = reader(spaces.Box(0, 255, (2,), np.uint8))
    assert read(seen, [300, 7]).tolist() == [300.0, 7.0]
    assert read(seen, np.array([1.5, 7.0])).tolist() == [1.0, 7.0]


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
    found = read(seen, given)
    np.testing.assert_array_equal(found["eyes_0"], np.moveaxis(given["eyes"][0], 0, 2))
    np.testing.assert_array_equal(found["columns"], given["inner"]["b"])


SEVENS = np.full((1, 9, 9, 3), 7, np.uint8)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (SEVENS, "gave obs with the shape (1, 9, 9, 3); its space says"),
        (SEVENS[0] + 0.2, "gave obs as float64; its space says uint8"),
        (SEVENS[0].astype(int), "gave obs as int64; its space says uint8"),
    ],
)
def test_another_type_or_shape_is_told(given: Any, told: str) -> None:
    seen = reader(picture(9, 9, 3))
    assert (read(seen, given)["obs"] == 7).all()
    assert (seen.fault or "").startswith(told)


@pytest.mark.parametrize("given", [np.zeros((3, 9, 9), np.uint8), np.full((9, 9, 3), np.nan), None])
def test_what_can_not_be_the_picture_is_refused(given: Any) -> None:
    with pytest.raises(MisfitError):
        read(reader(picture(9, 9, 3)), given)


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
    world = corridors("Seer", 3)
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
env: {world: gymnasium, id: Seer-v0, num_envs: 4, win: {terminated: win}}
lessons: [{name: only}]
train: {algo: ALGO, total_steps: 256, n_steps: 32, batch_size: 32, n_epochs: 1}
"""


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo", "dqn"])
def test_a_picture_beside_a_vector_trains_resumes_and_plays(tmp_path: Path, algo: str) -> None:
    plan = planned(tmp_path / "c.yaml", algo, FILE)
    assert plan.train.network.picture.encoder == "small"
    training, kept = Training(plan), Keeper()
    learn(training, links=kept.links)
    last = kept.checkpoints[-1]
    again = kept.resumed(Training(plan), last)
    there = unpack(last.state)["model"]["parameters"]["policy"]
    for name, weight in again.model.policy.state_dict().items():
        assert weight.equal(there[name])
    world = training.env.world
    player = agent_of(training).player(world)
    assert len(play(world, player, Cell("task", 0), seed=1).won) == 4


def test_an_algorithm_that_sees_no_pictures_is_refused(tmp_path: Path) -> None:
    text = FILE.replace(", n_steps: 32", "").replace(", n_epochs: 1", "")
    with pytest.raises(
        ConfigurationError, match=r"train\.algo: crossq can't see pictures \(image\)"
    ):
        planned(tmp_path / "c.yaml", "crossq", text)
