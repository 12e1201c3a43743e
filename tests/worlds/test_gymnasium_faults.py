"""Mistakes in a Gymnasium curriculum or its environment: each is reported in one line."""

import gc
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from corridor import Corridor, corridors, register, results
from gymnasium import spaces
from pole_curriculum import CURRICULUM

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, LabError, RunFailedError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import Scenario, new_notices
from aimbot_lab.worlds.gymnasium.environments import environment_shape
from aimbot_lab.worlds.gymnasium.observations import ObservationReader
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, ObservationParts, WinRule
from aimbot_lab.worlds.gymnasium.spaces import MisfitError
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from aimbot_lab.worlds.gymnasium.wrapping import tried_environment
from aimbot_lab.worlds.registry import spec_of


def refused(tmp_path: Path, old: str, new: str) -> list[str]:
    text = CURRICULUM.replace("ALGO", "ppo")
    assert old in text
    (tmp_path / "c.yaml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(tmp_path / "c.yaml", may_run=always)
    return [line.partition("c.yaml:")[2] for line in caught.value.faults]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "CartPole-v1",
            "Mars-v1",
            "5:7: env.id: Mars-v1 can't be made: NameNotFound: Environment `Mars` doesn't exist. "
            "If a module registers it, name that in env.module.",
        ),
        (
            "CartPole-v1",
            "mars/Rover-v1",
            "5:7: env.id: mars/Rover-v1 can't be made: NamespaceNotFound: Namespace mars not "
            "found. Have you installed the proper package for mars? If a module registers it, name",
        ),
        ("{return_above: 100}", "{}", "7:8: env.win: must have exactly one of return_above, "),
        ("length:", "lenght:", "10:26: lessons.0.parameters.lenght: CartPoleEnv has no number"),
        ("num_envs: 8", "module: nowhere.at_all", "6:11: env.module: there is no module nowhere: "),
        ("num_envs: 8", "module: at.py", "6:11: env.module: a module is written without .py: at, "),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, old: str, new: str, what: str) -> None:
    lines = refused(tmp_path, old, new)
    assert any(line.startswith(what) for line in lines), lines
    assert len([line for line in lines if "aim_bins" not in line and "batch" not in line]) == 1


def test_a_world_with_several_targets_asks_for_targets(tmp_path: Path) -> None:
    text = "name: x\nlessons:\n  - name: one\n"
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(tmp_path / "c.yaml", may_run=always)
    assert [line.partition("c.yaml:")[2] for line in caught.value.faults] == [
        "3:5: lessons.0.targets: is missing"
    ]


def test_what_an_environment_raises_is_told_in_one_line() -> None:
    world = corridors(WinRule(terminated="win"), kwargs={"length": None})
    with pytest.raises(RunFailedError, match=r"^Corridor-v0: its step raised TypeError: '>=' not"):
        results(world)


class WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_whose_own_words_raise_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise WordlessError

    monkeypatch.setattr(Corridor, "step", refuse)
    with pytest.raises(RunFailedError, match=r"^Corridor-v0: its step raised WordlessError \("):
        results(corridors(WinRule(terminated="win")))


class Wrong(Corridor):
    """Sees or rewards what its spaces don't have, `at` reset or step."""

    def __init__(self, wrong: Any = None, at: int = 1, reward: float = 0.0) -> None:
        super().__init__()
        self.wrong, self.at, self.reward = wrong, at, reward

    def seen(self):
        return super().seen() if self.wrong is None or self.place < self.at else self.wrong

    def step(self, action):
        seen, _, over, cut, info = super().step(action)
        return seen, self.reward, over, cut, info


KIND, PLACE = np.int64(2), np.zeros(1, np.float32)
LONGER = {"kind": KIND, "place": np.zeros(2, np.float32)}
NAN, INF = {"kind": KIND, "place": PLACE * np.nan}, {"kind": KIND, "place": PLACE + np.inf}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"wrong": LONGER}, "its step gave an observation that does not fit "
         "its observation_space: place has 2 numbers, not 1"),
        ({"wrong": LONGER, "at": 0}, "its reset gave an "
         "observation that does not fit its observation_space: place has 2 numbers, not 1"),
        ({"wrong": {"kind": KIND, "place": None}}, "its step gave None as place"),
        ({"wrong": {"kind": np.int64(7), "place": PLACE}},
         "its step gave kind as 7; its space says 1 to 3"),
        ({"wrong": {"place": PLACE}}, "its step gave an observation that does not fit its "
         "observation_space: KeyError: 'kind'"),
        ({"wrong": NAN}, "its step gave place_0 as nan"),
        ({"wrong": INF}, "its step gave place_0 as inf"),
        ({"reward": np.nan}, "its step gave a reward of nan"),
        ({"reward": np.zeros(2)}, "its step gave a reward that is not a number: [0. 0.]"),
    ],
)  # fmt: skip
def test_what_an_environment_gives_must_fit_its_spaces(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], what: str
) -> None:
    register(monkeypatch, "Wrong-v0", Wrong)
    with pytest.raises(RunFailedError) as caught:
        results(corridors(WinRule(terminated="win"), id="Wrong-v0", kwargs=given))
    assert str(caught.value) == f"Wrong-v0: {what}"


def picture(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


def read(space: spaces.Space[Any], **parts: Any) -> ObservationReader:
    return ObservationReader(space, ObservationParts(**parts))


def test_observations_of_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^env\.id: an observation has no numbers"):
        read(spaces.Dict({"none": spaces.Box(0, 1, (0,))}))


def test_choices_are_marked_where_they_begin_and_others_are_refused() -> None:
    space = spaces.MultiDiscrete([[2, 3], [1, 4]], start=[[0, -1], [7, 2]])
    reader = read(space)
    kind = np.dtype((np.float32, (10,)))
    given = np.array([[1, -1], [7, 4]])
    np.testing.assert_array_equal(reader.read(given, kind), spaces.flatten(space, given))
    assert reader.names[2] == "obs_1_is_-1"
    with pytest.raises(MisfitError, match="gave obs_1 as 2; its space says -1 to 1"):
        reader.read(np.array([[1, 2], [7, 4]]), kind)


def test_a_whole_number_beyond_its_type_is_seen_as_it_is() -> None:
    """Cast to 8 bits it would come round, within its bounds, without a word."""
    reader = read(spaces.Box(0, 255, (2,), np.uint8))
    kind = np.dtype((np.float32, (2,)))
    assert reader.read([300, 7], kind).tolist() == [300.0, 7.0]
    assert reader.read(np.array([1.5, 7.0]), kind).tolist() == [1.0, 7.0]


def test_a_reward_may_be_an_array_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, "Wrong-v0", Wrong)
    world = corridors(WinRule(terminated="win"), id="Wrong-v0", kwargs={"reward": np.array([0.5])})
    assert {one.total for one in results(world)} == {5.0}


def test_what_can_not_be_flattened_is_refused_by_its_name_whatever_its_class() -> None:
    class Mission(spaces.Space[str]):
        """Says nothing of being flattenable."""

    inner = spaces.Dict({"words": Mission()})
    space = spaces.Dict({"image": picture(7, 7, 3), "mission": inner})
    with pytest.raises(ConfigurationError, match=r"of Mission in the entry mission_words"):
        read(space)


def test_plain_numbers_that_are_too_many_are_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"more than 100,000 numbers .*drop: \[\.\.\.\]"):
        read(picture(1000, 1000, 3), flatten=("obs",))


@pytest.mark.parametrize(
    "space", [spaces.Text(3), spaces.Dict({"a": spaces.Box(0, 1), "b": spaces.Text(3)})]
)
def test_observations_without_numbers_are_refused_before_anything_starts(
    space: spaces.Space[Any],
) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^env.id: observations of Text( in the entry b)? can't be used"
    ):
        read(space)


def test_an_info_that_never_comes_is_reported_once() -> None:
    """`is_success` misspelled would train to the end without a won episode, and without a word."""
    world = corridors(WinRule(info="is_sucess"))
    results(world, 10 * 50)
    (notice,) = new_notices(world)
    assert notice == (
        "env.win.info: none of the first 20 episodes ended with 'is_sucess' in its info, so none "
        "was won; there was is_success"
    )
    results(world, 10 * 60)
    assert not new_notices(world)


NUMBERS = {"score": -1.5, "unknown": float("nan")}


class Nested(Corridor):
    """Says in a nested info how it ended."""

    def step(self, action):
        seen, reward, over, cut, info = super().step(action)
        told = {"success": info.get("is_success", False), "flags": [False], "r": np.float32(0)}
        return seen, reward, over, cut, {"episode": told, "a.b": over, "word": "lost", **NUMBERS}


@pytest.fixture
def nested(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, "Nested-v0", Nested)


@pytest.mark.usefixtures("nested")
@pytest.mark.parametrize(
    ("key", "won"), [("episode.success", True), ("episode.r", False), ("a.b", True)]
)
def test_dots_lead_into_an_info(key: str, won: bool) -> None:
    world = corridors(WinRule(info=key), id="Nested-v0", max_episode_steps=20)
    assert {one.won for one in results(world, 600)} == {won}
    assert not new_notices(world)


@pytest.mark.usefixtures("nested")
@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("episode", "a dict at 'episode', which is always true: env.win.info must name an entry of "
         "it (there is episode.success, episode.flags, episode.r)"),
        ("episode.flags", "[False] (list) at 'episode.flags': env.win.info must name what is true "
         "or false, 1 or 0"),
        ("word", "lost (str) at 'word': env.win.info must name what is true or false, 1 or 0"),
    ],
)  # fmt: skip
def test_what_is_always_true_is_no_way_to_win(key: str, what: str) -> None:
    with pytest.raises(RunFailedError) as caught:
        results(corridors(WinRule(info=key), id="Nested-v0"))
    assert str(caught.value) == f"Nested-v0: its info has {what}"


@pytest.mark.usefixtures("nested")
def test_the_keys_that_there_are_are_named_with_the_way_to_them() -> None:
    world = corridors(WinRule(info="episode.sucess"), id="Nested-v0")
    results(world, 10 * 60)
    (notice,) = new_notices(world)
    keys = "a.b, episode.flags, episode.r, episode.success, score, unknown, word"
    assert notice.endswith(f"there was {keys}")


class Beyond(Corridor):
    """Sees what its spaces do not hold, from the second step on, and in another shape."""

    def __init__(self, shape: tuple[int, ...] = (1,), by: float = 0.0) -> None:
        super().__init__()
        self.shape, self.by = shape, by

    def seen(self):
        place = np.full(self.shape, float(self.place > 1) * (1.0 + self.by), np.float32)
        return {"kind": np.int64(2), "place": place}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"by": 1.5}, "step gave place_0 as 2.5; its space says 0 to 1"),
        ({"shape": (1, 1)}, "reset gave place with the shape (1, 1); its space says (1,)"),
        ({"by": 1e-6}, None),
    ],
)
def test_an_observation_that_is_not_of_its_space_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], what: str | None
) -> None:
    register(monkeypatch, "Beyond-v0", Beyond)
    world = corridors(WinRule(terminated="win"), id="Beyond-v0", kwargs=given)
    results(world)
    results(world)
    told = [] if what is None else [f"Beyond-v0: its {what} (reported once)"]
    assert new_notices(world) == told


def no_masks(_: object) -> None:
    raise ValueError("not today\nnor tomorrow")


GIVES = "its action_masks gave"
WRONG_MASKS = (
    (no_masks, "its action_masks raised ValueError: not today"),
    (lambda _: [np.array([True])], f"{GIVES} 1 masks; its actions have 5 choices"),
    (lambda _: [[False, False], [True] * 3], f"{GIVES} no choice for action_0"),
    (lambda _: [0.0, -np.inf, 0.0, 0.0, 0.0], f"{GIVES} -inf in a mask, which must be true or "),
)


@pytest.mark.parametrize(("masks", "what"), WRONG_MASKS, ids=range(len(WRONG_MASKS)))
def test_masks_that_do_not_fit_the_actions_end_a_run_in_one_line(
    monkeypatch: pytest.MonkeyPatch, masks: Any, what: str
) -> None:
    monkeypatch.setattr(Corridor, "action_masks", masks)
    world = corridors(WinRule(terminated="win"))
    with pytest.raises(LabError) as caught:
        world.action_masks(np.zeros((2, 5), np.bool_))
    assert str(caught.value).startswith(f"Corridor-v0: {what}")
    assert "\n" not in str(caught.value)


class Goals(Corridor):
    """Its goals are two numbers, or as `given`; its rewards are by one goal alone or a `column`."""

    def __init__(self, *, column: bool = False, **given: spaces.Space[Any]) -> None:
        super().__init__()
        self.column = column
        box = spaces.Box(0, 9, (2,))
        self.observation_space = spaces.Dict({"achieved_goal": box, "desired_goal": box, **given})

    def compute_reward(self, achieved, desired, infos):
        if self.column:
            return (achieved == desired).all(axis=1, keepdims=True)
        return float(achieved[0] == infos["time"])


@pytest.mark.parametrize(
    ("given", "has_goals"),
    [
        ({}, True),
        ({"kwargs": {"desired_goal": spaces.Box(0, 9, (1,))}}, False),
        ({"frame_stack": 2}, False),
        ({"wrappers": ({"wrapper": "FrameStackObservation", "kwargs": {"stack_size": 2}},)}, False),
    ],
)
def test_goals_are_of_one_shape_which_is_that_of_the_rewards(
    monkeypatch: pytest.MonkeyPatch, given: Any, has_goals: bool
) -> None:
    register(monkeypatch, "Goals-v0", Goals)
    settings = GymnasiumSettings(id="Goals-v0", **given)
    with tried_environment(settings) as env:
        assert environment_shape(env, settings).can("goals") == has_goals


def test_rewards_of_goals_that_raise_are_told_with_what_they_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(monkeypatch, "Goals-v0", Goals)
    goals = np.zeros((3, 2), np.float32)
    with pytest.raises(RunFailedError, match=r"its compute_reward raised .*given goals.*rewards"):
        corridors(WinRule(terminated="win"), id="Goals-v0").goal_rewards(goals, goals, [{}] * 3)


def test_rewards_of_goals_may_be_a_column_as_in_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(monkeypatch, "Goals-v0", Goals)
    world = corridors(WinRule(terminated="win"), id="Goals-v0", kwargs={"column": True})
    goals = np.zeros((3, 2), np.float32)
    assert world.goal_rewards(goals, goals, [{}] * 3).tolist() == [1.0, 1.0, 1.0]


class Spaced(Corridor):
    """Has these spaces."""

    def __init__(self, **given: spaces.Space[Any]) -> None:
        super().__init__()
        vars(self).update(given)


NUMBER = spaces.Box(0, 1, (1,))


@pytest.mark.parametrize(
    "given",
    [
        {"observation_space": spaces.Dict({"": NUMBER, "none": spaces.Box(0, 1, (0,))})},
        {"action_space": spaces.MultiBinary(1500)},
    ],
    ids=["entries", "choices"],
)
def test_the_shape_of_whatever_trains_can_be_read_again(
    monkeypatch: pytest.MonkeyPatch, given: Any
) -> None:
    register(monkeypatch, "Spaced-v0", Spaced)
    spec = spec_of(GymnasiumSettings(id="Spaced-v0", kwargs=given))
    document = json.loads(json.dumps(spec_document(spec)))
    assert spec_document(spec_from(document)) == spec_document(spec)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"observation_space": spaces.Dict({"a\nb": NUMBER})}, "blocks: .*'a.nb'"),
        ({"observation_space": spaces.Dict({"k" * 201: NUMBER})}, "blocks: .* 200 characters"),
        ({"action_space": spaces.Dict({"": spaces.Discrete(2)})}, "action_names: .* 1 character"),
    ],
    ids=["lines", "length", "empty"],
)
def test_what_could_not_be_read_again_is_refused_before_it_trains(
    monkeypatch: pytest.MonkeyPatch, given: Any, what: str
) -> None:
    register(monkeypatch, "Spaced-v0", Spaced)
    settings = GymnasiumSettings(id="Spaced-v0", kwargs=given)
    with pytest.raises(ConfigurationError, match=f"^env.id: agents of Spaced-v0 .*: {what}"):
        spec_of(settings)


class PanicError(BaseException):
    """What code in Rust raises, which is no Exception either."""


class Ends(Corridor):
    """Raises `raised` at the place `at`."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}

    def __init__(
        self, at: str, raised: BaseException | None = None, render_mode: str | None = None
    ) -> None:
        super().__init__()
        self.at, self.raised, self.render_mode = at, raised, render_mode
        self.here("constructor")

    def here(self, place: str) -> None:
        if place == self.at:
            raise self.raised or SystemExit("window closed\nfor good")

    @property
    def speed(self):
        return self.here("parameters") or 1.0

    @speed.setter
    def speed(self, value):
        self.here("setter")

    def reset(self, **given):
        self.here("reset")
        return super().reset(**given)

    def step(self, action):
        self.here("step")
        seen, reward, over, cut, info = super().step(action)
        return seen, Unreal(self) if self.at == "reward" else reward, over, cut, info

    def action_masks(self):
        self.here("action_masks")
        return super().action_masks()

    def render(self):
        self.here("render")


class Unreal:
    """A reward whose number is asked for in vain."""

    def __init__(self, env: Ends) -> None:
        self.env = env

    def __float__(self) -> float:
        self.env.here("reward")
        return 0.0


def masks_of(world: GymnasiumWorld) -> None:
    world.action_masks(np.zeros((2, 5), np.bool_))


def drawn(world: GymnasiumWorld) -> None:
    results(world, 1)
    world.draw(0)


def played_at_speed(world: GymnasiumWorld) -> None:
    world.set_scenario(Scenario({"task": 1.0}, {}, {"speed": 1.0}))
    results(world)


ENDS: dict[str, tuple[Callable[[GymnasiumWorld], object], str]] = {
    "constructor": (results, "env.id: Ends-v0 can't be made:"),
    "parameters": (played_at_speed, "parameters.speed: it raised"),
    "setter": (played_at_speed, "parameters.speed: Ends refuses 1:"),
    "reset": (results, "Ends-v0: its reset raised"),
    "step": (results, "Ends-v0: its step raised"),
    "reward": (results, "Ends-v0: its step raised"),
    "action_masks": (masks_of, "Ends-v0: its action_masks raised"),
    "render": (drawn, "Ends-v0: its render raised"),
}


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, "Ends-v0", Ends)


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("place", ENDS)
@pytest.mark.parametrize(
    ("raised", "what"),
    [
        (None, "SystemExit: window closed"),
        (PanicError("no cell"), "PanicError: no cell"),
    ],
)
def test_an_environment_that_ends_the_program_is_told_as_one_that_raises(
    place: str, raised: BaseException | None, what: str
) -> None:
    play, words = ENDS[place]
    kwargs = {"at": place, "raised": raised, "render_mode": "rgb_array"}
    with pytest.raises(LabError) as caught:
        play(corridors(WinRule(terminated="win"), id="Ends-v0", kwargs=kwargs))
    here = r"\(.*test_gymnasium_faults\.py:\d+\)"
    assert re.fullmatch(f"{re.escape(words)} {what} {here}", str(caught.value)), caught.value


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("place", ENDS)
def test_ctrl_c_in_an_environment_stays_one(place: str) -> None:
    play, _ = ENDS[place]
    kwargs = {"at": place, "raised": KeyboardInterrupt(), "render_mode": "rgb_array"}
    with pytest.raises(KeyboardInterrupt):
        play(corridors(WinRule(terminated="win"), id="Ends-v0", kwargs=kwargs))


class Old(Corridor):
    """Has the interface of the old gym, in one of its parts."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def reset(self, *, seed=None, options=None):
        seen, info = super().reset(seed=seed, options=options)
        return np.zeros(2) if self.how == "observation alone" else (seen, info)

    def step(self, action):
        seen, reward, over, cut, info = super().step(action)
        return (seen, reward, over, info) if self.how == "done" else (seen, reward, over, cut, info)


class Unseeded(Old):
    def seed(self, seed=None):
        return [seed]

    def reset(self, **_):
        return super().reset()


class Bare(Unseeded):
    def reset(self):
        return super().reset()


OLD = [
    (Old, "done", "its step raised ValueError: not enough values to unpack"),
    (Old, "observation alone", "its reset gave a float64 in the place of its info"),
    (Bare, "", "its reset raised TypeError: Bare.reset() got an unexpected keyword argument"),
]


@pytest.mark.parametrize(("kind", "how", "what"), OLD)
def test_the_old_gyms_interface_is_told_with_its_place_and_what_is_wanted(
    monkeypatch: pytest.MonkeyPatch, kind: type[Old], how: str, what: str
) -> None:
    register(monkeypatch, "Old-v0", kind)
    with pytest.raises(RunFailedError) as caught:
        results(corridors(WinRule(terminated="win"), id="Old-v0", kwargs={"how": how}))
    line = str(caught.value)
    assert line.startswith(f"Old-v0: {what}")
    assert re.search(r"test_gymnasium_faults\.py:\d+\), .*shimmy\..*; it must .*info\)$", line), (
        line
    )


def test_an_environment_that_only_the_old_seed_seeds_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(monkeypatch, "Old-v0", Unseeded)
    world = corridors(WinRule(terminated="win"), id="Old-v0", kwargs={"how": ""})
    results(world)
    (notice,) = new_notices(world)
    assert notice.startswith("Old-v0: its reset takes no seed (")
    assert "shimmy" in notice
    assert not new_notices(world)


def test_a_module_that_ends_the_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_it.py").write_text("import sys\nsys.exit(1)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (line,) = refused(tmp_path, "num_envs: 8", "num_envs: 8\n  module: ends_it")
    assert re.match(r"7:11: env\.module: ends_it can't be imported: SystemExit: 1 \(", line)


def test_an_environment_that_ends_the_program_as_it_closes_can_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Corridor, "close", lambda _: sys.exit("closed"))
    settings = GymnasiumSettings(
        id="Corridor-v0", win=WinRule(terminated="win"), kwargs={"length": 9}
    )
    assert spec_of(settings).branches == (2, 3)


@pytest.mark.parametrize(
    ("name", "given", "what"),
    [("observation_space", None, "missing"), ("action_space", [0, 1], "a builtins.list")],
)
def test_what_is_no_space_is_refused_with_what_is_wanted(
    monkeypatch: pytest.MonkeyPatch, name: str, given: Any, what: str
) -> None:
    monkeypatch.setattr(Corridor, name, given)
    settings = GymnasiumSettings(id="Corridor-v0", kwargs={"length": 8})
    with pytest.raises(ConfigurationError, match=f"env.id: its {name} is {what}; it must be"):
        spec_of(settings)


class Closes(Ends):
    """Counts those that are open; one that is made at `refuses` can't be, or refuses to close."""

    made = 0
    closed: ClassVar[list[int]] = []

    def __init__(self, at: str = "", refuses: int = -1) -> None:
        super().__init__(at if Closes.made == refuses else "")
        self.number, Closes.made = Closes.made, Closes.made + 1

    def close(self) -> None:
        Closes.closed.append(self.number)
        self.here("close")


@pytest.fixture
def closes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    register(monkeypatch, "Closes-v0", Closes)
    monkeypatch.setattr(Closes, "made", 0)
    monkeypatch.setattr(Closes, "closed", [])
    return Closes.closed


def test_all_environments_of_a_world_are_closed_once_even_where_one_refuses(
    closes: list[int],
) -> None:
    world = corridors(
        WinRule(terminated="win"), rows=3, id="Closes-v0", kwargs={"at": "close", "refuses": 1}
    )
    world.close()
    (notice,) = new_notices(world)
    assert notice.startswith("Closes-v0: its close raised SystemExit: window")
    world.close()
    assert not new_notices(world)
    assert sorted(closes) == [0, 1, 2]


def test_environments_are_closed_where_one_more_can_not_be_made(closes: list[int]) -> None:
    kwargs = {"at": "constructor", "refuses": 2}
    with pytest.raises(
        ConfigurationError, match=r"can't be made: .*; it is copy 3 of 3 \(see env.num"
    ):
        corridors(WinRule(terminated="win"), rows=3, id="Closes-v0", kwargs=kwargs)
    assert sorted(closes) == [0, 1]


def test_one_that_can_not_be_made_anew_ends_a_run_that_has_begun(closes: list[int]) -> None:
    kwargs = {"at": "constructor", "refuses": 2}
    world = corridors(WinRule(terminated="win"), id="Closes-v0", kwargs=kwargs, remake=True)
    with pytest.raises(RunFailedError, match="can't be made"):
        results(world)
    assert closes == [0]


def test_what_raises_each_time_it_is_closed_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Corridor, "close", lambda _: sys.exit("window closed"))
    world = corridors(WinRule(terminated="win"), remake=True)
    assert len(results(world)) > 4
    (notice,) = new_notices(world)
    assert "its close raised" in notice


def test_environments_of_a_world_that_is_forgotten_are_closed(closes: list[int]) -> None:
    gc.collect()  # those of tests before
    closes.clear()
    corridors(WinRule(terminated="win"), rows=2, id="Closes-v0")
    gc.collect()
    assert sorted(closes) == [0, 1]


class Wanders(Corridor):
    """Changes the working directory wherever it is called."""

    def __init__(self) -> None:
        super().__init__()
        os.chdir("/")

    def reset(self, **given):
        os.chdir("/usr")
        return super().reset(**given)

    def step(self, action):
        os.chdir("/bin")
        return super().step(action)

    def action_masks(self):
        os.chdir("/etc")
        return super().action_masks()

    def close(self):
        os.chdir("/tmp")


def test_the_working_directory_is_what_it_was_wherever_an_environment_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    register(monkeypatch, "Wanders-v0", Wanders)
    spec_of(GymnasiumSettings(id="Wanders-v0", win=WinRule(terminated="win")))
    assert Path.cwd() == tmp_path
    world = corridors(WinRule(terminated="win"), id="Wanders-v0")
    for play in (results, masks_of, lambda world: world.close()):
        assert Path.cwd() == tmp_path
        play(world)
    assert Path.cwd() == tmp_path
