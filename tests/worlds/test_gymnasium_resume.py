"""Episodes of Gymnasium environments go on where a checkpoint was kept, by their actions."""

import io
import random
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch as th
from corridor import TASK, Corridor, begun, corridors, register
from pole_curriculum import planned

from aimbot_lab.experiment.analysis.recording import RecordingRequest, filmed, record_agent
from aimbot_lab.experiment.runs.agents import fetch_agent
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import TRUST, allow, is_allowed
from aimbot_lab.foundation.settings import Uniform, UniformParameters
from aimbot_lab.foundation.world import Scenario, new_notices, step_buffers
from aimbot_lab.foundation.world_type import RandomAgent
from aimbot_lab.replay.episode import (
    RecordedEpisode,
    ReplayError,
    RowRecorder,
    as_replay,
    replay_steps,
    summarize,
    verify,
)
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium import copies
from aimbot_lab.worlds.gymnasium.process_state import WATCHED_CALLS, ProcessGuard
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from aimbot_lab.worlds.registry import code_of
from aimbot_lab.worlds.testing import Subject
from aimbot_lab.worlds.testing.laws import a_recorded_episode_is_played_again_bit_for_bit
from tests.cli.tiny_runs import invoke, write
from tests.mlagents.test_demonstrations import messages
from tests.training.tiny_training import Keeper, learn


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium knows the environments of this file."""
    register(monkeypatch, Restless, Meddler, Shown, Counted, max_episode_steps=20)


DRAWN = Scenario(
    {"task": 1.0},
    parameters={
        "length": Uniform(sampler_parameters=UniformParameters(min_value=0.3, max_value=0.9))
    },
)


def poles(rows: int = 3) -> GymnasiumWorld:
    settings = GymnasiumSettings(id="CartPole-v1", win=WinRule(return_above=100), num_envs=rows)
    return GymnasiumWorld(settings)


def played(world: Any, steps: int, *, seed: int = 0) -> list[Any]:
    """Everything that `steps` random steps bring."""
    buffers, act, found = step_buffers(world), RandomAgent(world.spec, seed), []
    for _ in range(steps):
        batch = world.step(act(buffers.observations), buffers)
        arrays = [array.copy() for array in buffers[:4]]
        found.append([*arrays, batch.order.copy(), batch.length, batch.returns])
    return found


def resumed(before: Any, after: Any) -> np.ndarray:
    """Rows of `after`, which goes on from `before`, in which new episodes began."""
    after.restore(before.snapshot())
    begun: np.ndarray = after.resume_episodes(step_buffers(after).observations)
    return begun


def assert_same(one: list[Any], two: list[Any]) -> None:
    for step, other in zip(one, two, strict=True):
        for array, same in zip(step, other, strict=True):
            np.testing.assert_array_equal(array, same)


def test_running_episodes_go_on_to_the_bit_also_those_of_an_earlier_scenario() -> None:
    world, other = poles(), poles()
    world.set_scenario(DRAWN)
    world.reset(3, step_buffers(world).observations)
    played(world, 30)
    world.set_scenario(Scenario({"task": 1.0}, parameters={"masspole": 0.3}))
    played(world, 12, seed=2)
    assert len(set(world._scenarios)) == 2, "the test wants episodes of both scenarios"
    assert not resumed(world, other).any()
    assert not new_notices(other)
    assert_same(played(world, 60, seed=1), played(other, 60, seed=1))


def test_a_parameter_that_a_later_lesson_leaves_out_is_what_it_was_at_first() -> None:
    world = poles(1)
    world.set_scenario(Scenario({"task": 1.0}, parameters={"length": 0.9}))
    world.reset(0, step_buffers(world).observations)
    world.set_scenario(Scenario({"task": 1.0}))
    played(world, 100)
    assert world._copies._envs[0].unwrapped.length == 0.5  # type: ignore[attr-defined]


class Restless(Corridor):
    """Says of each episode that it is another one than all before that it has played."""

    begun = 0

    def reset(self, *, seed=None, options=None):
        seen, info = super().reset(seed=seed, options=options)
        self.begun += 1
        return {**seen, "place": np.array([self.begun / 1000], np.float32)}, info


def restless(**given: Any) -> tuple[GymnasiumWorld, Any]:
    """A world in second episodes, and one like it that has not begun."""
    world, other = begun("Restless", **given), corridors("Restless", **given)
    played(world, 13)
    return world, other


def test_an_episode_that_is_not_the_same_again_is_told_of_and_another_begins() -> None:
    world, other = restless()
    assert resumed(world, other).all()
    (notice,) = new_notices(other)
    ran = "2 of 2 episodes that ran are others when they are played again"
    assert [words in notice for words in (ran, "env.remake: true", "new ones begin")] == [True] * 3
    assert other._order.tolist() == [4, 5]


def test_an_episode_goes_on_where_nothing_is_left_of_others_in_its_environment() -> None:
    world, other = restless(remake=True)
    assert not resumed(world, other).any()
    assert_same(played(world, 30, seed=1), played(other, 30, seed=1))
    assert not new_notices(other)


def test_an_episode_that_is_too_long_begins_anew_and_its_actions_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies, "MAX_REPLAYED", 5)
    world, other = begun(), corridors()
    played(world, 5)
    assert not resumed(world, other).any()
    played(world, 1)
    assert len(world.snapshot()["actions"]) == 0
    assert resumed(world, other).all()
    assert "longer than 5 steps" in new_notices(other)[0]


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo"])
def test_a_resumed_training_ends_in_the_bits_of_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algo: str
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at every rollout
    plan = planned(tmp_path / "c.yaml", algo)
    keeper, whole = Keeper(), Training(plan)
    ended = learn(whole, links=keeper.links)
    middle = keeper.checkpoints[len(keeper.checkpoints) // 2]
    assert 0 < middle.step < 2048
    second = keeper.resumed(Training(plan), middle)
    assert not new_notices(second.env.world)
    assert learn(second).state_sha256 == ended.state_sha256


class Meddler(Corridor):
    """Changes what belongs to the process, and walks by a global generator that it seeds itself."""

    def reset(self, *, seed=None, options=None):
        np.random.seed(seed)
        random.seed(1)
        th.manual_seed(1)
        sys.stdout.write("new episode\n")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        np.seterr(all="raise")
        th.set_default_dtype(th.float64)
        th.set_default_device("meta")
        th.set_grad_enabled(False)
        warnings.simplefilter("error")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.place += int(np.random.randint(2)) - int(random.random() < 0.3)
        return super().step(action)


def process() -> list[Any]:
    """What the environment changes of the process."""
    drawn = random.getstate(), np.random.get_state()[1].tolist(), th.get_rng_state().tolist()
    settings = th.get_default_dtype(), th.get_default_device(), th.is_grad_enabled()
    return [signal.getsignal(signal.SIGTERM), *drawn, np.geterr(), *settings, warnings.filters[:]]


def test_handlers_and_generators_are_put_back_and_told_of_once() -> None:
    before = process()
    world = begun("Meddler")
    played(world, 30)
    assert process() == before
    told = list(new_notices(world))
    assert len(told) == 9
    for what in (
        *("changed what SIGTERM does", "generator random", "numpy.random", "called numpy.seterr"),
        *("generator torch", "called torch.set_default_dtype", "called torch.set_default_device"),
        *("called torch.set_grad_enabled", "called warnings.simplefilter"),
    ):
        assert any(what in one for one in told)
    played(world, WATCHED_CALLS)
    assert process() == before
    assert not new_notices(world)


@pytest.mark.parametrize("name", ["Corridor", "Meddler"])
def test_the_generator_of_a_gpu_stays_where_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not an environment seeds it; a list stands in for a GPU's."""
    states = [th.tensor([7], dtype=th.uint8)]
    fakes = {
        "is_initialized": lambda: True,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_rng_state_all": lambda: list(states),
        "set_rng_state_all": lambda given: states.__setitem__(slice(None), given),
        "manual_seed_all": lambda _: states.__setitem__(0, th.tensor([8], dtype=th.uint8)),
    }
    for attribute, fake in fakes.items():
        monkeypatch.setattr(th.cuda, attribute, fake)
    world = begun(name)
    played(world, 30)
    assert states[0].tolist() == [7]
    world.close()


def test_what_is_drawn_while_environments_are_made_is_put_back_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Corridor, "__init__", lambda _: random.seed(1))
    before = process()
    world = corridors()
    assert process() == before
    assert not new_notices(world)


def test_what_a_module_changes_that_loads_torch_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, guard = process(), ProcessGuard("Corridor-v0", 1)
    monkeypatch.delitem(sys.modules, "torch")
    with guard.kept():
        monkeypatch.setitem(sys.modules, "torch", th)
        th.set_grad_enabled(False)
        th.set_default_device("meta")
    assert process() == before
    assert len(guard.take_notices()) == 2


def test_what_an_environment_prints_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun("Meddler")
    sys.stdout.write("ours\n")
    assert capsys.readouterr() == ("ours\n", "new episode\n" * 2)


def test_streams_that_an_environment_replaces_are_put_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def replace_streams(env: Any, **_: Any) -> Any:
        sys.stdout = sys.stderr = io.StringIO()
        return env.seen(), {}

    before = sys.stdout, sys.stderr
    monkeypatch.setattr(Corridor, "reset", replace_streams)
    with suppress(LabError):
        begun()
    assert (sys.stdout, sys.stderr) == before


def test_a_stream_that_an_environment_closes_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def close_stream(env: Any, **_: Any) -> Any:
        sys.stdout.close()
        return env.seen(), {}

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(Corridor, "reset", close_stream)
    world = begun()
    assert not sys.stderr.closed
    assert "closed standard error" in new_notices(world)[0]


def test_episodes_of_one_that_draws_from_global_generators_go_on_to_the_bit() -> None:
    world, other = begun("Meddler"), corridors("Meddler")
    played(world, 27)
    assert not resumed(world, other).any()
    np.random.rand(3)  # the learner draws as it likes
    assert_same(played(world, 40, seed=1), played(other, 40, seed=1))


class Shown(Corridor):
    """Renders a bar that grows with its place, which it draws by chance."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode: str | None = None, restless: bool = False) -> None:
        super().__init__()
        self.render_mode, self.restless = render_mode, restless

    def step(self, action):
        source = np.random.default_rng() if self.restless else self.np_random
        self.place += int(source.integers(2))
        return super().step(action)

    def render(self):
        return np.full((8, 8, 3), 10 * self.place, np.uint8)


def recorded(world: GymnasiumWorld) -> RecordedEpisode:
    buffers, act = step_buffers(world), RandomAgent(world.spec, 0)
    world.reset(1, buffers.observations)
    recorder, episode = RowRecorder(world, 0), None
    while episode is None:
        actions = act(buffers.observations)
        episode = recorder.add(actions, world.step(actions, buffers))
    return episode


def shown_worlds(rows: int, **kwargs: Any) -> GymnasiumWorld:
    return corridors("Shown", rows, kwargs={"render_mode": "rgb_array", **kwargs})


def test_an_episode_is_kept_as_a_replay_and_drawn_as_the_environment_renders_itself() -> None:
    subject = Subject(shown_worlds, TASK)
    a_recorded_episode_is_played_again_bit_for_bit(subject)
    episode = recorded(shown_worlds(1))
    steps = list(replay_steps(episode))
    assert steps[-1].line == episode.line
    assert steps[-1].scene.state().max() >= 100
    broken = {**episode.start, "kept": np.frombuffer(b"{}", np.uint8)}
    with pytest.raises(ReplayError, match=r"^the replay's initial state is invalid: [^\n]*$"):
        list(replay_steps(replace(episode, start=broken)))
    assert not corridors("Shown").spec.can("replay")


def test_a_replay_is_kept_without_a_picture_and_a_missing_screen_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def render(_: Any) -> Any:
        raise RuntimeError("an OpenGL platform library has not been loaded")

    monkeypatch.setattr(Shown, "render", render)
    world = shown_worlds(1)
    assert summarize(as_replay(recorded(world), {})).decisions > 0
    with pytest.raises(LabError, match=r"^Shown-v0: its render raised [^\n]* MUJOCO_GL=egl[^\n]*$"):
        world.draw(0)


SHADES = np.arange(8 * 6, dtype=np.uint8).reshape(8, 6)
SHADED = np.stack([SHADES] * 3, axis=2)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (SHADED, None),
        (SHADES, None),
        (SHADES[:, :, None], None),
        (np.dstack([SHADED, SHADES * 0]), None),
        (SHADED.astype(np.int64), None),
        (th.from_numpy(SHADED), None),
        (SHADED / 255.0, r"an array \[8, 6, 3\] of float64"),
        ([SHADED, SHADED], r"an array \[2, 8, 6, 3\]"),
        (SHADED[:0], r"an array \[0, 6, 3\]"),
        (None, "None"),
    ],
    ids=range(10),
)
def test_frames_are_shown_as_pictures_or_refused_with_what_is_wanted(
    monkeypatch: pytest.MonkeyPatch, given: Any, fault: str | None
) -> None:
    monkeypatch.setattr(Shown, "render", lambda _: given)
    world = begun("Shown", 1, kwargs={"render_mode": "rgb_array"})
    if fault is None:
        np.testing.assert_array_equal(world.draw(0), SHADED)
        assert world.draw(0).dtype == np.uint8
    else:
        with pytest.raises(LabError, match=f"^Shown-v0: its render gave {fault}.*render_mode"):
            world.draw(0)


def test_what_was_trained_without_being_drawn_is_filmed_where_it_can_be_drawn() -> None:
    drawn = GymnasiumSettings(id="Shown-v0", kwargs={"render_mode": "rgb_array"})
    assert filmed(GymnasiumSettings(id="Shown-v0")) == drawn
    assert filmed(drawn) == drawn
    never = GymnasiumSettings(id="Corridor-v0")  # takes no render_mode
    assert filmed(never) == never
    agent: Any = SimpleNamespace(config=SimpleNamespace(env=never))
    with pytest.raises(ConfigurationError, match=r"filmed unless its environment takes env.kwargs"):
        record_agent(agent, RecordingRequest(episodes=1, seed=1), on_episode=print)


class Counted(Shown):
    """Of which there is a limited number at a time."""

    most, open = 1, 0

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        assert Counted.open < Counted.most
        Counted.open += 1

    def close(self) -> None:
        Counted.open -= 1
        super().close()


COUNTED = """
name: counted
env: {world: gymnasium, id: Counted-v0, num_envs: 1, num_eval_envs: 1, win: {length_above: 4}}
lessons: [{name: only, targets: {task: 1}}]
train: {algo: ppo, total_steps: 64, n_steps: 32, batch_size: 32, n_epochs: 1, torch_threads: 1}
"""


def test_episodes_are_recorded_in_the_one_copy_that_there_may_be_of_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, demo = tmp_path / "data", tmp_path / "expert.demo"
    invoke(data, "run", write(tmp_path, text=COUNTED))
    invoke(data, "record", "latest", "--demo", "-o", demo, "--episodes", 3)
    meta, _, pairs = messages(demo.read_bytes())
    assert meta.number_episodes == sum(pair.agent_info.done for pair in pairs) == 3
    agent = fetch_agent("latest", "last", data_folder=DataFolder(data))
    request = RecordingRequest(episodes=3, seed=1)
    found = record_agent(agent, request, on_episode=print)
    assert len({one.trajectory_sha256 for one in found}) == 3
    monkeypatch.setattr(Counted, "most", 3)
    env: Any = agent.config.env
    config = replace(agent.config, env=replace(env, num_eval_envs=None))
    again = record_agent(replace(agent, config=config), request, on_episode=print)
    assert [(one.trajectory_sha256, one.about) for one in again] == [
        (one.trajectory_sha256, one.about) for one in found
    ]
    assert Counted.open == 0


def test_filming_runs_no_code_that_may_not_run_and_what_may_as_it_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = GymnasiumSettings(id="json:Shown-v0")
    drawn = replace(settings, kwargs={"render_mode": "rgb_array"})
    monkeypatch.setenv(TRUST, "")
    filmed(settings)
    assert not is_allowed(code_of(drawn))
    allow(code_of(settings))
    filmed(settings)
    assert is_allowed(code_of(drawn))


def test_an_episode_that_does_not_repeat_itself_is_refused_as_a_replay() -> None:
    found = []
    for _ in range(4):  # it may repeat itself by chance
        episode = recorded(shown_worlds(1, restless=True))
        with suppress(ReplayError):
            verify(as_replay(episode, {}))
            found.append(episode)
    assert len(found) < 4
