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
from corridor import BY_END, Corridor, corridors, register, results
from gymnasium import spaces
from pole_curriculum import CURRICULUM

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, LabError, RunFailedError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import Scenario, new_notices, step_buffers
from aimbot_lab.worlds.gymnasium.environments import environment_shape
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from aimbot_lab.worlds.gymnasium.wrapping import tried_environment
from aimbot_lab.worlds.registry import spec_of


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium knows the environments of this file."""
    register(monkeypatch, Wrong, Nested, Goals, Spaced, Ends, Closes, Unseeded, Old, Bare, Wanders)


def refused(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path, may_run=always)
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
        (
            "num_envs: 8",
            "module: ends_it",
            "6:11: env.module: ends_it can't be imported: SystemExit: 1 (",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, what: str
) -> None:
    (tmp_path / "ends_it.py").write_text("import sys\nsys.exit(1)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    text = CURRICULUM.replace("ALGO", "ppo")
    assert old in text
    lines = refused(tmp_path / "c.yaml", text.replace(old, new))
    assert any(line.startswith(what) for line in lines), lines
    assert len([line for line in lines if "aim_bins" not in line and "batch" not in line]) == 1


def test_a_world_with_several_targets_asks_for_targets(tmp_path: Path) -> None:
    lines = refused(tmp_path / "c.yaml", "name: x\nlessons:\n  - name: one\n")
    assert lines == ["3:5: lessons.0.targets: is missing"]


class Wrong(Corridor):
    """Sees `wrong` from place `at` on, rewards with `reward`, and may be `over` otherwise."""

    def __init__(self, wrong: Any = None, at: int = 1, reward: Any = 0.0, over: Any = None) -> None:
        super().__init__()
        self.wrong, self.at, self.reward, self.over = wrong, at, reward, over

    def seen(self):
        return super().seen() if self.wrong is None or self.place < self.at else self.wrong

    def step(self, action):
        seen, _, over, cut, info = super().step(action)
        return seen, self.reward, over if self.over is None else self.over, cut, info


KIND, PLACE = np.int64(2), np.zeros(1, np.float32)


def at_place(place: Any) -> dict[str, Any]:
    return {"kind": KIND, "place": place}


LONGER = at_place(np.zeros(2, np.float32))
UNFIT = "an observation that does not fit its observation_space:"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"wrong": LONGER}, f"step gave {UNFIT} place has 2 numbers, not 1"),
        ({"wrong": LONGER, "at": 0}, f"reset gave {UNFIT} place has 2 numbers, not 1"),
        ({"wrong": at_place(None)}, "step gave None as place"),
        (
            {"wrong": {"kind": np.int64(7), "place": PLACE}},
            "step gave kind as 7; its space says 1 to 3",
        ),
        ({"wrong": {"place": PLACE}}, f"step gave {UNFIT} KeyError: 'kind'"),
        ({"wrong": at_place(PLACE * np.nan)}, "step gave place_0 as nan"),
        ({"wrong": at_place(PLACE + np.inf)}, "step gave place_0 as inf"),
        (
            {"wrong": at_place(PLACE + 1j)},
            f"step gave {UNFIT} place has no real numbers (complex64)",
        ),
        ({"over": [False]}, "step gave terminated as [False], which must be true or false"),
        ({"over": np.nan}, "step gave terminated as nan, which must be true or false"),
        ({"over": "no"}, "step gave terminated as no, which must be true or false"),
        ({"reward": np.nan}, "step gave a reward of nan"),
        ({"reward": np.zeros(2)}, "step gave a reward that is not a number: [0. 0.]"),
    ],
)
def test_what_an_environment_gives_must_fit_its_spaces(given: dict[str, Any], what: str) -> None:
    with pytest.raises(RunFailedError) as caught:
        results(corridors("Wrong", kwargs=given))
    assert str(caught.value) == f"Wrong-v0: its {what}"


@pytest.mark.parametrize(
    ("wrong", "at", "what"),
    [
        (PLACE + 2.5, 2, "step gave place_0 as 2.5; its space says 0 to 1"),
        (PLACE[None], 0, "reset gave place with the shape (1, 1); its space says (1,)"),
        (PLACE + 1.000001, 2, None),
    ],
)
def test_an_observation_that_is_not_of_its_space_is_told_of_once(
    wrong: Any, at: int, what: str | None
) -> None:
    world = corridors("Wrong", kwargs={"wrong": at_place(wrong), "at": at})
    results(world)
    results(world)
    told = [] if what is None else [f"Wrong-v0: its {what} (reported once)"]
    assert new_notices(world) == told


def test_what_was_closed_and_is_played_on_is_refused_in_a_line() -> None:
    """A callback may close the environments that it is shown."""
    world = corridors()
    results(world, 3)
    world.close()
    actions, buffers = np.zeros((2, 2), np.float32), step_buffers(world)
    for play in (lambda: results(world), lambda: world.step(actions, buffers)):
        with pytest.raises(RunFailedError, match=r"^Corridor-v0: it was closed while it was play"):
            play()


def test_a_reward_may_be_an_array_of_one() -> None:
    world = corridors("Wrong", kwargs={"reward": np.array([0.5])})
    assert {one.total for one in results(world)} == {5.0}


class Nested(Corridor):
    """Says in a nested info how it ended."""

    def step(self, action):
        seen, reward, over, cut, info = super().step(action)
        told = {"success": info.get("is_success", False), "flags": [False], "r": np.float32(0)}
        numbers = {"score": -1.5, "unknown": float("nan")}
        return seen, reward, over, cut, {"episode": told, "a.b": over, "word": "lost", **numbers}


@pytest.mark.parametrize(
    ("kind", "key", "there"),
    [
        ("Corridor", "is_sucess", "is_success"),
        (
            "Nested",
            "episode.sucess",
            "a.b, episode.flags, episode.r, episode.success, score, unknown, word",
        ),
    ],
)
def test_an_info_that_never_comes_is_reported_once_with_those_that_do(
    kind: str, key: str, there: str
) -> None:
    """`is_success` misspelled would train to the end without a won episode, and without a word."""
    world = corridors(kind, win=WinRule(info=key))
    results(world, 120)
    assert new_notices(world) == [
        f"env.win.info: none of the first 20 episodes ended with '{key}' in its info, so none was "
        f"won; there was {there}"
    ]
    results(world, 120)
    assert not new_notices(world)


@pytest.mark.parametrize(
    ("key", "won"), [("episode.success", True), ("episode.r", False), ("a.b", True)]
)
def test_dots_lead_into_an_info(key: str, won: bool) -> None:
    world = corridors("Nested", win=WinRule(info=key), max_episode_steps=20)
    assert {one.won for one in results(world, 240)} == {won}
    assert not new_notices(world)


BOOLEAN = "env.win.info must name what is true or false, 1 or 0"


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (
            "episode",
            "a dict at 'episode', which is always true: env.win.info must name an entry of it "
            "(there is episode.success, episode.flags, episode.r)",
        ),
        ("episode.flags", f"[False] (list) at 'episode.flags': {BOOLEAN}"),
        ("word", f"lost (str) at 'word': {BOOLEAN}"),
    ],
)
def test_what_is_always_true_is_no_way_to_win(key: str, what: str) -> None:
    with pytest.raises(RunFailedError) as caught:
        results(corridors("Nested", win=WinRule(info=key)))
    assert str(caught.value) == f"Nested-v0: its info has {what}"


def no_masks(_: object) -> None:
    raise ValueError("not today\nnor tomorrow")


WRONG_MASKS = (
    (no_masks, "raised ValueError: not today"),
    (lambda _: [np.array([True])], "gave 1 masks; its actions have 5 choices"),
    (lambda _: [[False, False], [True] * 3], "gave no choice for action_0"),
    (lambda _: [0.0, -np.inf, 0.0, 0.0, 0.0], "gave -inf in a mask, which must be true or "),
    (lambda _: ["a\nb"] * 5, "gave a\\nb in a mask, which must be true or "),
)


@pytest.mark.parametrize(("masks", "what"), WRONG_MASKS, ids=range(len(WRONG_MASKS)))
def test_masks_that_do_not_fit_the_actions_end_a_run_in_one_line(
    monkeypatch: pytest.MonkeyPatch, masks: Any, what: str
) -> None:
    monkeypatch.setattr(Corridor, "action_masks", masks)
    with pytest.raises(LabError) as caught:
        masks_of(corridors())
    assert str(caught.value).startswith(f"Corridor-v0: its action_masks {what}")
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
def test_goals_are_of_one_shape_which_is_that_of_the_rewards(given: Any, has_goals: bool) -> None:
    settings = GymnasiumSettings(id="Goals-v0", **given)
    with tried_environment(settings) as env:
        assert environment_shape(env, settings).can("goals") == has_goals


def test_rewards_of_goals_may_be_a_column_and_where_they_raise_it_is_told_what_is_given() -> None:
    goals = np.zeros((3, 2), np.float32)
    world = corridors("Goals", kwargs={"column": True})
    assert world.goal_rewards(goals, goals, [{}] * 3).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RunFailedError, match=r"its compute_reward raised .*given goals.*rewards"):
        corridors("Goals").goal_rewards(goals, goals, [{}] * 3)


class Spaced(Corridor):
    """Has these spaces."""

    def __init__(self, **given: spaces.Space[Any]) -> None:
        super().__init__()
        vars(self).update(given)


def spaced(**given: spaces.Space[Any]) -> GymnasiumSettings:
    return GymnasiumSettings(id="Spaced-v0", kwargs=given)


NUMBER = spaces.Box(0, 1, (1,))


@pytest.mark.parametrize(
    "settings",
    [
        spaced(observation_space=spaces.Dict({"": NUMBER, "none": spaces.Box(0, 1, (0,))})),
        spaced(action_space=spaces.MultiBinary(1500)),
    ],
    ids=["entries", "choices"],
)
def test_the_shape_of_whatever_trains_can_be_read_again(settings: GymnasiumSettings) -> None:
    spec = spec_of(settings)
    document = json.loads(json.dumps(spec_document(spec)))
    assert spec_document(spec_from(document)) == spec_document(spec)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (spaced(observation_space=spaces.Dict({"a\nb": NUMBER})), "blocks: .*'a.nb'"),
        (spaced(observation_space=spaces.Dict({"k" * 201: NUMBER})), "blocks: .* 200 characters"),
        (spaced(action_space=spaces.Dict({"": spaces.Discrete(2)})), "action_names: .* 1 charact"),
    ],
    ids=["lines", "length", "empty"],
)
def test_what_could_not_be_read_again_is_refused_before_it_trains(
    settings: GymnasiumSettings, what: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^env.id: agents of Spaced-v0 .*: {what}"):
        spec_of(settings)


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (spaces.Discrete(10**13), "of more than 100,000 numbers beside pictures is too large"),
        (spaces.Box(0, 255, (0, 36, 3), np.uint8), "has no numbers, so nothing could be learned"),
    ],
)
def test_an_observation_of_too_many_or_no_numbers_is_refused_at_once(
    seen: spaces.Space[Any], what: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^env.id: an observation {what}"):
        spec_of(spaced(observation_space=seen))


@pytest.mark.parametrize(
    ("name", "given", "what"),
    [("observation_space", None, "missing"), ("action_space", [0, 1], "a builtins.list")],
)
def test_what_is_no_space_is_refused_with_what_is_wanted(name: str, given: Any, what: str) -> None:
    with pytest.raises(ConfigurationError, match=f"env.id: its {name} is {what}; it must be"):
        spec_of(spaced(**{name: given}))


class PanicError(BaseException):
    """What code in Rust raises, which is no Exception either."""


class WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


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


def play_ends(place: str, raised: BaseException | None) -> None:
    kwargs = {"at": place, "raised": raised, "render_mode": "rgb_array"}
    ENDS[place][0](corridors("Ends", kwargs=kwargs))


@pytest.mark.parametrize("place", ENDS)
@pytest.mark.parametrize(
    ("raised", "what"),
    [
        (None, "SystemExit: window closed"),
        (PanicError("no cell"), "PanicError: no cell"),
        (WordlessError(), "WordlessError"),
    ],
)
def test_what_an_environment_raises_is_told_in_one_line_but_for_ctrl_c_which_stays_one(
    place: str, raised: BaseException | None, what: str
) -> None:
    with pytest.raises(LabError) as caught:
        play_ends(place, raised)
    here = r"\(.*test_gymnasium_faults\.py:\d+\)"
    assert re.fullmatch(f"{re.escape(ENDS[place][1])} {what} {here}", str(caught.value))
    with pytest.raises(KeyboardInterrupt):
        play_ends(place, KeyboardInterrupt())


class Old(Corridor):
    """Has the interface of the old gym, in one of its parts."""

    def __init__(self, how: str = "") -> None:
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
    ("Old", "done", "step raised ValueError: not enough values to unpack"),
    ("Old", "observation alone", "reset gave a float64 in the place of its info"),
    ("Bare", "", "reset raised TypeError: Bare.reset() got an unexpected keyword argument"),
]


@pytest.mark.parametrize(("kind", "how", "what"), OLD)
def test_the_old_gyms_interface_is_told_with_its_place_and_what_is_wanted(
    kind: str, how: str, what: str
) -> None:
    with pytest.raises(RunFailedError) as caught:
        results(corridors(kind, kwargs={"how": how}))
    line = str(caught.value)
    assert line.startswith(f"{kind}-v0: its {what}")
    wanted = r"test_gymnasium_faults\.py:\d+\), .*shimmy\..*; it must .*info\)$"
    assert re.search(wanted, line), line


def test_an_environment_that_only_the_old_seed_seeds_is_told_of_once() -> None:
    world = corridors("Unseeded")
    results(world)
    (notice,) = new_notices(world)
    assert notice.startswith("Unseeded-v0: its reset takes no seed (")
    assert "shimmy" in notice


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
    monkeypatch.setattr(Closes, "made", 0)
    monkeypatch.setattr(Closes, "closed", [])
    return Closes.closed


def test_all_environments_of_a_world_are_closed_once_even_where_one_refuses(
    closes: list[int],
) -> None:
    world = corridors("Closes", 3, kwargs={"at": "close", "refuses": 1})
    world.close()
    (notice,) = new_notices(world)
    assert notice.startswith("Closes-v0: its close raised SystemExit: window")
    world.close()
    assert not new_notices(world)
    assert sorted(closes) == [0, 1, 2]


def test_environments_are_closed_where_one_more_can_not_be_made(closes: list[int]) -> None:
    kwargs = {"at": "constructor", "refuses": 2}
    copy = "it is copy 3 of 3 \\(see env.num"
    with pytest.raises(ConfigurationError, match=f"can't be made: .*; {copy}"):
        corridors("Closes", 3, kwargs=kwargs)
    assert sorted(closes) == [0, 1]
    Closes.made = 0
    world = corridors("Closes", kwargs=kwargs, remake=True)
    with pytest.raises(RunFailedError, match="can't be made"):  # anew, in a run that has begun
        results(world)
    assert sorted(closes) == [0, 0, 1]


def test_environments_of_a_world_that_is_forgotten_are_closed(closes: list[int]) -> None:
    gc.collect()  # those of tests before
    closes.clear()
    corridors("Closes")
    gc.collect()
    assert sorted(closes) == [0, 1]


def test_what_raises_each_time_it_is_closed_can_be_asked_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Corridor, "close", lambda _: sys.exit("window closed"))
    settings = GymnasiumSettings(id="Corridor-v0", win=BY_END, kwargs={"length": 9})
    assert spec_of(settings).branches == (2, 3)
    world = corridors(remake=True)
    assert len(results(world)) > 4
    (notice,) = new_notices(world)
    assert "its close raised" in notice


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
    spec_of(GymnasiumSettings(id="Wanders-v0", win=BY_END))
    assert Path.cwd() == tmp_path
    world = corridors("Wanders")
    for play in (results, masks_of, lambda world: world.close()):
        assert Path.cwd() == tmp_path
        play(world)
    assert Path.cwd() == tmp_path
