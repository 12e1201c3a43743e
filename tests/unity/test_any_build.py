"""What builds of other people send: compressed pictures, groups, several behaviors, no agents."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from PIL import Image

from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.world import Scenario, new_notices
from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    ActionTuple,
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, behavior_spec
from aimbot_lab.mlagents.messages import OK, BuildMessage, write_bytes, write_packed, write_varint
from aimbot_lab.mlagents.session import PlayerSession, introduction
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings, ObservationSettings
from aimbot_lab.worlds.unity import channels
from aimbot_lab.worlds.unity.settings import BuildShape, UnitySettings, UnityWinRule
from aimbot_lab.worlds.unity.world import AWAY, UnityWorld
from tests.unity.played_builds import (
    SCRIPTED,
    ScriptedLink,
    SessionLink,
    Told,
    begun,
    scripted_world,
    steps_of,
)

NONE, MOVES = DimensionProperty.NONE, DimensionProperty.TRANSLATIONAL_EQUIVARIANCE
GOTO, TASK = Scenario({"goto": 1.0}), Scenario({"task": 1.0})
WIN = UnityWinRule(return_above=1.0)


def png(pixels: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def shown(files: bytes, shape: tuple[int, ...], mapping: list[int], *, first: bool) -> np.ndarray:
    """What an agent with one compressed picture is read to see [1, ...]."""
    properties = (NONE, MOVES, MOVES) if first else (MOVES, MOVES, NONE)
    sensor = ObservationSpec(shape, properties, ObservationType.DEFAULT, "camera")
    picture = write_packed(1, shape) + b"\x10\x01" + write_bytes(3, files)
    picture += write_packed(5, [one % 2**64 for one in mapping]) if mapping else b""
    picture += write_packed(6, map(int, properties)) + write_bytes(8, b"camera")
    info = write_bytes(13, picture) + b"\x50" + write_varint(7)
    codec = InfoCodec(BehaviorSpec([sensor], SCRIPTED.action_spec))
    return codec.decode(write_bytes(1, info))[0].obs[0]


RANDOM = np.random.default_rng(1)
ONE, TWO = (RANDOM.integers(0, 256, (5, 6, 3), np.uint8) for _ in range(2))
BOTH = np.concatenate([ONE, TWO], axis=2)
FOUR, GREY = BOTH[..., :4], ONE[..., :1]
DEEP = GREY[..., 0] * np.uint16(257)  # the same shades in 16 bits
PICTURES = [
    ((5, 6, 3), png(ONE), [], ONE),
    ((5, 6, 3), png(ONE), [2, 0, 1], ONE[..., [1, 2, 0]]),
    ((5, 6, 1), png(ONE), [], ONE.mean(axis=2, keepdims=True)),
    ((5, 6, 4), png(ONE) + png(TWO), [], BOTH[..., :4]),
    ((5, 6, 4), png(ONE) + png(TWO), [0, 1, 2, 3, -1, -1], BOTH[..., :4]),
    ((5, 6, 3), png(FOUR), [], ONE),
    ((5, 6, 4), png(FOUR), [], FOUR),
    ((5, 6, 3), png(GREY[..., 0]), [], GREY.repeat(3, axis=2)),
    ((5, 6, 1), png(DEEP), [], GREY),
    ((5, 6, 2), png(ONE) + png(TWO), [0, 0, 0, 1, 1, 1], np.stack([ONE.mean(2), TWO.mean(2)], 2)),
]
HUGE = png(ONE)[:16] + 2 * (60_000).to_bytes(4, "big") + png(ONE)[24:]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("shape", "files", "mapping", "wanted"), PICTURES)
def test_compressed_pictures_are_read_as_ml_agents_reads_them(
    shape: tuple[int, ...], files: bytes, mapping: list[int], wanted: np.ndarray, first: bool
) -> None:
    height, width, channels_ = shape
    told = (channels_, height, width) if first else shape
    seen = shown(files, told, mapping, first=first)
    assert seen.shape == (1, *told)
    found = np.moveaxis(seen[0], 0, 2) if first else seen[0]
    np.testing.assert_allclose(found, wanted / 255, atol=1e-6)


@pytest.mark.parametrize(
    ("files", "mapping", "line"),
    [
        (png(ONE)[:-30], [], "a compressed picture can't be read"),
        (png(ONE)[:10], [], "a compressed picture can't be read: it is not a PNG file"),
        (HUGE, [], "a compressed picture has 60000x60000 pixels; it must have 6x5"),
        (b"", [], "a compressed picture has 0 channels; it must have 3"),
        (png(ONE[:4]), [], "a compressed picture has 6x4 pixels; it must have 6x5"),
        (png(ONE), [0, 1, 5], "a compressed picture of 3 channels is mapped to 3 by"),
    ],
)
def test_pictures_that_can_not_be_read_end_in_a_line(
    files: bytes, mapping: list[int], line: str
) -> None:
    with pytest.raises(Exception, match=line) as caught:
        shown(files, (5, 6, 3), mapping, first=False)
    assert "\n" not in str(caught.value)


def camera_world(*, compressed: bool) -> UnityWorld:
    told = ObservationSettings(camera=CameraSettings(width=8, height=6, grey=False))

    def arena() -> Arena:
        return Arena(ArenaSettings(num_envs=2, time_limit=1.0, observation=told))

    def start(number: int) -> SessionLink:
        return SessionLink(PlayerSession(arena(), GOTO, png=compressed))

    spec = behavior_spec(arena().spec, channels_first=False)
    settings = UnitySettings(file_name="Test", num_envs=4, win=WIN)
    return UnityWorld(settings, BuildShape("AimbotLab", spec, 2, {}), start=start)


def test_a_build_with_a_camera_shows_the_same_compressed_or_not() -> None:
    seen = []
    for compressed in (False, True):
        world = camera_world(compressed=compressed)
        buffers = begun(world, TASK)
        for _ in range(12):
            world.step(np.zeros((4, 4), np.float32), buffers)
        seen.append(buffers.observations.copy())
    (picture,) = world.spec.pictures
    assert picture.shape == (6, 8, 3)
    assert seen[0][picture.name].std() > 0
    for name in seen[0].dtype.names or ():
        np.testing.assert_array_equal(seen[0][name], seen[1][name])


class TwoBehaviors:
    """A build of the learner `Walker` and of `Enemy`; walkers are a group that is rewarded.

    Walkers ask for actions in the messages `walks`, by their ids one after the other if `by_turns`.
    """

    def __init__(
        self, *, agents: int = 1, walks: range = range(10**9), by_turns: bool = False
    ) -> None:
        self.codec, self.actions = InfoCodec(SCRIPTED), ActionCodec(SCRIPTED.action_spec)
        self.sent: dict[str, list[ActionTuple]] = {"Walker?team=0": [], "Enemy?team=1": []}
        self.agents, self.walks, self.by_turns, self.told = agents, walks, by_turns, -1

    def greet(self, seed: int) -> None:
        """Nothing to greet."""

    def send(self, command: int, actions: Mapping[str, bytes], channels: bytes) -> None:
        for name, data in actions.items():
            self.sent[name].append(self.actions.decode(data))

    def receive(self) -> BuildMessage:
        self.told += 1
        infos = {name: self._infos(name, ids) for name, ids in self._asking() if len(ids)}
        return BuildMessage(OK, infos, b"", introduction(list(infos), SCRIPTED))

    def close(self, *, at_once: bool = False) -> None:
        """Nothing to close."""

    def _asking(self) -> list[tuple[str, np.ndarray]]:
        walkers = np.arange(self.agents if self.told in self.walks else 0, dtype=np.int32)
        if self.by_turns:
            walkers = walkers[self.told % self.agents :][:1]
        enemies = np.arange(3 * self.agents, dtype=np.int32)
        return list(zip(self.sent, (walkers, enemies), strict=True))

    def _infos(self, name: str, ids: np.ndarray) -> bytes:
        count, group = len(ids), 1.5 if "Walker" in name else 0.0
        masks = [np.tile(np.array([[False, True, False]]), (count, 1))]
        steps = DecisionSteps(
            [np.zeros((count, 1), np.float32)],
            np.full(count, 0.25, np.float32),
            ids,
            masks,
            np.full(count, int(group > 0), np.int32),
            np.full(count, group, np.float32),
        )
        return self.codec.encode(steps, steps_of(Told())[1])


@pytest.mark.parametrize("others", [{}, {"Enemy": "random"}])
def test_a_groups_reward_counts_and_other_behaviors_act_as_they_are_told(
    others: dict[str, Any],
) -> None:
    build = TwoBehaviors()
    world = two_behaviors(build, others=others)
    buffers = begun(world, TASK)
    for _ in range(40):
        world.step(np.full((1, 1), 2, np.float32), buffers)
        assert buffers.rewards[0] == 1.75
    assert {int(one.discrete[0, 0]) for one in build.sent["Walker?team=0"][1:]} == {2}
    enemies = np.concatenate([one.discrete[:, 0] for one in build.sent["Enemy?team=1"]])
    assert {*enemies.tolist()} == ({0, 2} if others else {0})  # 1 is forbidden
    (said,) = [line for line in new_notices(world) if "group" in line]
    assert said == "agents of Walker are in groups: a group's reward is added to each member's"


def two_behaviors(build: TwoBehaviors, **settings: Any) -> UnityWorld:
    settings |= {"num_envs": 1, "behavior": "Walker", "win": WIN, "max_lifetime_restarts": 0}
    chosen = UnitySettings(file_name="Test", **settings)
    shape = BuildShape("Walker", SCRIPTED, 1, {})
    return UnityWorld(chosen, shape, start=lambda number: build)


@pytest.mark.parametrize("walks", [range(3), range(0)])
def test_a_learner_that_vanishes_while_others_go_on_ends_in_a_line(walks: range) -> None:
    world = two_behaviors(TwoBehaviors(walks=walks), timeout_wait=0.001)

    def play() -> None:
        buffers = begun(world, TASK)
        for _ in range(9):
            world.step(np.full((1, 1), 2, np.float32), buffers)

    with pytest.raises(
        ForeignCodeError, match=r"behavior Walker: .* needed an action within 0\.001"
    ):
        play()


@pytest.mark.parametrize(
    ("build", "agents"),
    [
        (TwoBehaviors(agents=2, walks=range(4, 10**9)), 2),
        (TwoBehaviors(agents=3, by_turns=True), 3),
    ],
    ids=["late", "by turns"],
)
def test_agents_that_come_late_or_ask_by_turns_are_counted(
    monkeypatch: pytest.MonkeyPatch, build: TwoBehaviors, agents: int
) -> None:
    monkeypatch.setattr(channels, "Build", lambda *_: build)
    monkeypatch.setattr(channels, "launch_of", lambda _: None)
    shape = channels.probe(UnitySettings(file_name="Test", behavior="Walker"))
    assert (shape.behavior, shape.agents) == ("Walker", agents)


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (ActionSpec.create_discrete((3, 2)), r"Discrete: \(3,\); before they were .*\(3, 2\)"),
        (ActionSpec.create_continuous(2), "before they were Continuous: 2, Discrete"),
        (None, r"its sensors have the shapes \[\(1,\)\]; before they had \[\(2,\)\]"),
    ],
)
def test_a_build_that_is_another_one_after_a_restart_is_told(
    before: ActionSpec | None, line: str
) -> None:
    sensor = SCRIPTED.observation_specs[0]
    asked = (
        SCRIPTED._replace(action_spec=before)
        if before
        else SCRIPTED._replace(observation_specs=[sensor._replace(shape=(2,))])
    )
    world = UnityWorld(
        UnitySettings(file_name="Test", num_envs=1),
        BuildShape("Walker", asked, 1, {}),
        start=lambda _: ScriptedLink([Told({0: 1.0})]),
    )
    with pytest.raises(LabError, match=line):
        begun(world, TASK)


def test_an_agent_that_left_for_good_holds_no_lesson_up() -> None:
    first, away = Told({0: 1.0, 1: 2.0}), Told({1: 3.0}, {0: 9.0}, reward=1.0)
    others = [Told({1: float(step)}, {1: 8.0} if step % 2 else {}) for step in range(AWAY)]
    back = Told({0: 5.0, 1: 6.0})
    world = scripted_world([first, away, *others, back], win=WIN)
    buffers, ended, running = begun(world, TASK), [], []
    for _ in range(AWAY + 2):
        batch = world.step(np.full((2, 1), 2, np.float32), buffers)
        ended += [(row, won) for row, won in zip(batch.row, batch.won, strict=True) if row == 0]
        running.append(batch.running_scenario[0] >= 0)
    assert ended == [(0, True)]
    assert running == [True] * (AWAY - 1) + [False] * 2 + [True]
    assert batch.untold == (0,)
    assert (buffers.finished.tolist(), buffers.truncated[0]) == ([True, False], True)
    assert buffers.observations[0] == 5.0


def test_an_agent_beyond_the_rows_takes_one_that_is_left() -> None:
    script = [
        Told({0: 1.0, 1: 2.0}),
        Told({1: 3.0}, ended={0: 9.0}),
        Told({1: 4.0}),
        Told({1: 6.0}, ended={1: 5.0}),
        Told({1: 7.0}),
    ]
    world = scripted_world(script, rows=1, win=WIN)
    buffers = begun(world, TASK)
    world.step(np.full((1, 1), 2, np.float32), buffers)
    assert (buffers.observations.item(), buffers.finished.item()) == (6.0, True)


@pytest.mark.parametrize(
    ("agents", "given", "line"),
    [
        (0, {}, "showed no agents that decide within 0.001 s; does each have a Decision Requester"),
        (1, {}, "env.behavior: the build has several, choose one: Enemy, Walker"),
        (1, {"behavior": "Foe"}, r"env.behavior: the build has no behavior Foe \(it has Enemy, W"),
        (1, {"behavior": "Walker", "others": {"Foe": "zeros"}}, "env.others: the build has no"),
    ],
)
def test_builds_that_lack_something_are_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, agents: int, given: dict[str, Any], line: str
) -> None:
    monkeypatch.setattr(channels, "Build", lambda *_: TwoBehaviors(agents=agents))
    monkeypatch.setattr(channels, "launch_of", lambda _: None)
    settings = UnitySettings(file_name="Test", timeout_wait=0.001, **given)
    with pytest.raises(ConfigurationError, match=line):
        channels.probe(settings)


def test_statistics_are_averaged_summed_or_the_last() -> None:
    def told(name: str, value: float, kind: int) -> tuple[UUID, bytes]:
        message = OutgoingMessage()
        message.write_string(name)
        message.write_float32(value)
        message.write_int32(kind)
        return STATS, bytes(message.buffer)

    values = [(0, "Speed"), (1, "Lesson"), (2, "Shots"), (0, "%odd\n")]
    stats = [told(name, value, kind) for value in (1.0, 4.0) for kind, name in values]
    world = scripted_world(
        [Told({0: 1.0}, channels=stats), Told({0: 1.0}, channels=[told("Speed", np.nan, 0)])],
        rows=1,
        win=WIN,
    )
    buffers = begun(world, TASK)
    found = {"unity/Speed": 2.5, "unity/Lesson": 4.0, "unity/Shots": 5.0, "unity/_odd_": 2.5}
    assert world.take_metrics() == found
    world.step(np.zeros((1, 1), np.float32), buffers)
    assert world.take_metrics() == {}
