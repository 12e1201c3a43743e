"""What keeping replays costs a training: one training, in which every other rollout keeps them.

Seconds are those of the processor, from the beginning of a rollout to that of the next, so that
other programs on the machine count little, and what changes slowly hits both kinds alike.
"""

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.replay.files import replay_text
from aimbot_lab.replay.playback import as_replay
from aimbot_lab.replay.recorder import RowRecorder
from aimbot_lab.training.callbacks.rollout_times import rollout_times
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import TrainingPlan
from aimbot_lab.worlds.registry import default_type, make_world, settings_with

RESAMPLES = 2000
REPLAYS_A_LESSON = 3
WARM_UP = 4  # rollouts that are not counted


@dataclass(frozen=True)
class ReplayCost:
    """Seconds of a rollout and its update, without replays and with them."""

    rollouts: int  # of each kind
    seconds_without: float  # median
    seconds_with: float  # median
    share: float  # of a rollout and its update that keeping takes, timed by itself
    difference: float  # share by which the one median is more than the other
    lower: float  # interval at 95 %, by resampling
    upper: float
    seconds_a_lesson: float  # to write its three replays when it ends, if each is a whole episode


def measure_replay_cost(rollouts: int, *, num_envs: int = 512, n_steps: int = 64) -> ReplayCost:
    """The cost over `rollouts` of each kind of a PPO training on Goto."""
    steps = (2 * rollouts + WARM_UP) * num_envs * n_steps
    plan = TrainingPlan(
        seed=1,
        env=settings_with(num_envs=num_envs),
        lessons=(Lesson(name="all", targets={default_type().default_target(): 1.0}),),
        train=TrainSettings(total_steps=steps, n_steps=n_steps, batch_size=num_envs * n_steps // 4),
    )
    times = rollout_times(plan)
    return _cost(times.rollouts[WARM_UP:], times.keeping)


def _cost(seconds: list[float], keeping: float) -> ReplayCost:
    pairs = np.array(seconds[: len(seconds) // 2 * 2]).reshape(-1, 2)
    random = np.random.default_rng(1)
    drawn = pairs[random.integers(0, len(pairs), (RESAMPLES, len(pairs)))]
    ratios = np.median(drawn[:, :, 1], axis=1) / np.median(drawn[:, :, 0], axis=1) - 1
    without, with_them = median(pairs[:, 0].tolist()), median(pairs[:, 1].tolist())
    lower, upper = np.quantile(ratios, (0.025, 0.975)).tolist()
    return ReplayCost(
        rollouts=len(pairs),
        seconds_without=without,
        seconds_with=with_them,
        share=keeping / with_them,
        difference=with_them / without - 1,
        lower=lower,
        upper=upper,
        seconds_a_lesson=_seconds_a_lesson(),
    )


def _seconds_a_lesson() -> float:
    world = make_world(settings_with(num_envs=1))
    world.set_scenario(Scenario({default_type().default_target(): 1.0}))
    spec = world.spec
    buffers = new_step_buffers(1, len(spec.observation_names))
    world.reset(1, buffers.observations)
    still = np.zeros((1, len(spec.branches) + spec.continuous), np.float32)
    recorder, episode = RowRecorder(world, 0), None
    while episode is None:
        episode = recorder.add(still, world.step(still, buffers))
    began = time.process_time()
    for _ in range(REPLAYS_A_LESSON):
        replay_text(as_replay(episode, {}))
    return time.process_time() - began
