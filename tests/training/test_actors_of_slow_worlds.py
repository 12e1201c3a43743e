"""Actors of worlds that are not ours: each has its own, learns with the rest, and may be lost."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from actor_groups import OwnActors
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.registration import EnvSpec
from test_shared_training import Record
from tiny_training import learn

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.named_code import EVERYTHING, TRUST
from aimbot_lab.training.actors import rollouts, supply
from aimbot_lab.training.actors.actor import Answer, LocalActors, _Process
from aimbot_lab.training.actors.block import ActorPlan, Block, unpacked_block
from aimbot_lab.training.actors.rollouts import actor_plans, correct
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.settings import ActorSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule

ROWS, STEPS = 8, 32


def plan(actors: ActorSettings, *, rollouts: int = 4, **given: Any) -> TrainingPlan:
    criteria = CompletionCriteria(threshold=0.001, min_lesson_length=8)
    lessons = (
        Lesson(name="one", targets={"task": 1.0}, completion_criteria=criteria),
        Lesson(name="two", targets={"task": 1.0}),
    )
    env = GymnasiumSettings(
        id="CartPole-v1", win=WinRule(length_above=15), max_episode_steps=20, num_envs=ROWS
    )
    train = {
        **{"algo": "hybrid_ppo", "total_steps": rollouts * ROWS * STEPS, "n_steps": STEPS},
        **{"batch_size": 64, "n_epochs": 1, "network": NetworkSettings(layers=(16,))},
        **{"reward_scale": 1.0, "actors": actors, **given},
    }
    return TrainingPlan(seed=1, env=env, lessons=lessons, train=TrainSettings(**train))


def trained(made: TrainingPlan, group: Any) -> tuple[Training, Record]:
    record, training = Record(), Training(made, group=group)
    learn(training, record, links=record.both)
    return training, record


def test_actors_pass_a_lesson_and_an_update_from_older_samples_begins_at_ratios_of_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[float] = []

    def corrected(model: HybridPPO, blocks: Sequence[Block]) -> None:
        correct(model, blocks)
        buffer = model.rollout_buffer
        seen, actions = (
            th.as_tensor(one).flatten(end_dim=1) for one in (buffer.observations, buffer.actions)
        )
        with th.no_grad():
            _, wanted, _ = model.policy.evaluate_actions(seen, actions)
        np.testing.assert_allclose(buffer.log_probs.ravel(), wanted.numpy().ravel(), atol=1e-5)
        made = np.concatenate([one.columns["log_probs"] for one in blocks], axis=1)
        moved.append(float(np.abs(made - buffer.log_probs).max()))

    monkeypatch.setattr(rollouts, "correct", corrected)
    actors = ActorSettings(number=2, lag=2, correction="vtrace")
    training, record = trained(plan(actors, rollouts=6, objective="per_branch"), OwnActors())
    assert max(moved) > 1e-3  # some were played by older weights
    assert training.model.num_timesteps == 6 * ROWS * STEPS
    assert '"kind": "lesson"' in record.files["events.jsonl"]
    assert record.files["episodes.csv"].splitlines()[1:]


class Leaves(CartPoleEnv):
    """Ends the program after some steps, as a closed window does."""

    left = 40

    def step(self, action: Any) -> Any:
        self.left -= 1
        return super().step(action) if self.left else sys.exit("closed")


def test_an_environment_that_ends_the_program_of_its_actor_ends_the_run_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = EnvSpec("Leaves-v0", Leaves, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, "Leaves-v0", spec)
    made = plan(ActorSettings(number=2, lag=1))
    made = replace(made, env=replace(made.env, id="Leaves-v0"))
    told = r"^actor \d: Leaves-v0: .* SystemExit: closed \(.*\)$"
    with pytest.raises(RunFailedError, match=told):
        trained(made, OwnActors())


def test_actors_have_worlds_that_differ() -> None:
    seen: list[np.ndarray] = []

    class Watched(OwnActors):
        def answers(self, seconds: float) -> Any:
            found = super().answers(seconds)
            packed = [one.value for one in found if one.value is not None]
            seen.extend(unpacked_block(one).columns["observations"][0] for one in packed)
            return found

    trained(plan(ActorSettings(number=4), rollouts=1), Watched())
    firsts = np.concatenate(seen)
    assert len(np.unique(firsts, axis=0)) == len(firsts) == ROWS


@pytest.mark.campaign
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_actor_comes_back_and_its_unfinished_episodes_are_dropped(
    monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setattr(supply, "LEAST_SECONDS", 2.0)  # of those that are stopped
    monkeypatch.setattr(supply, "TIMES_THE_SLOWEST", 2.0)
    monkeypatch.setattr(supply, "TIMES_A_PROGRAM", 0.0)  # which may take five minutes
    group, killed = LocalActors(), list[int]()

    def should_stop() -> bool:
        source: Any = training.model
        has_played = 1 in source.source._supply._patience._proven
        if not killed and has_played and 1 in group.pids:
            os.kill(group.pids[1], how)
            killed.append(group.pids[1])
        counts = training.env.world.counts  # type: ignore[attr-defined]
        return bool(killed) and counts.restarts == 1

    made = plan(ActorSettings(number=2, lag=2, correction="vtrace"), rollouts=10**5)
    training = Training(made, group=group)
    ended = learn(training, should_stop=should_stop)
    counts = training.env.world.counts  # type: ignore[attr-defined]
    assert ended.stopped
    assert counts.restarts == 1
    assert counts.episodes_dropped >= 4  # what ran in its rows
    assert group.pids == {}


def test_a_process_that_ended_is_lost_though_another_holds_its_line_open() -> None:
    group = LocalActors()
    ours, theirs = multiprocessing.Pipe()  # of which this process keeps both ends
    process = subprocess.Popen(["sleep", "600"])
    group._processes[0] = _Process(process, ours)
    group.end(0)
    assert group.answers(60.0) == [Answer(0, is_lost=True)]
    assert group.pids == {}
    theirs.close()


def test_actors_whose_world_can_not_be_made_are_refused_before_anything_is_created() -> None:
    class Elsewhere(OwnActors):
        """Actors on a machine that lacks the environment."""

        def start(self, plan: ActorPlan) -> None:
            super().start(plan._replace(env=replace(plan.env, id="Missing-v0")))

    with pytest.raises(ConfigurationError, match=r"actor 0: .*Missing"):
        Training(plan(ActorSettings(number=2)), group=Elsewhere())


ENVIRONMENTS = """
import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Counted(CartPoleEnv):
    def __init__(self):
        super().__init__()
        print("made", file=open("FILE", "a"), flush=True)

    def close(self):
        print("closed", file=open("FILE", "a"), flush=True)

gymnasium.register("Counted-v0", Counted, max_episode_steps=20)
"""


def test_an_actor_runs_no_script_of_a_user_and_closes_its_environments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script, told = tmp_path / "script.py", tmp_path / "told"
    script.write_text(f"open({str(tmp_path / 'again')!r}, 'w')\n", encoding="utf-8")
    text = ENVIRONMENTS.replace("FILE", str(told))
    (tmp_path / "counted_envs.py").write_text(text, encoding="utf-8")
    main = ModuleType("__main__")
    main.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(TRUST, EVERYTHING)
    made = plan(ActorSettings(number=2))
    env = replace(made.env, id="Counted-v0", module="counted_envs", num_envs=2)
    group = LocalActors()
    first, *_ = actor_plans(made)
    group.start(first._replace(env=env, actors=1, rows=2, placed=False))
    group.ask(0, "get_ready")
    assert group.answers(120.0) == [Answer(0)]
    group.close()
    assert not (tmp_path / "again").exists()
    assert told.read_text("utf-8").split() == ["made"] * 2 + ["closed"] * 2
