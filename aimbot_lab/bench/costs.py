"""What evaluation, replays and being watched cost a training: with it and without, by turns.

Seconds are those of the processor, in which other programs count little.
"""

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean, median
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from aimbot_lab.bench.train import FILE, Stopwatch, only, train_in_turns, training_plan
from aimbot_lab.bench.turns import Report, Say, Table, by_turns, group, mean_ratio, seconds_by_turns
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.replay.episode import RowRecorder, as_replay, replay_text
from aimbot_lab.tracking.control_channel import LOOK_SECONDS as CHANNEL_SECONDS
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.callbacks.assembly import LivePublication
from aimbot_lab.training.callbacks.rollout_times import rollout_times
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver
from aimbot_lab.training.settings import EvaluationSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import default_type, make_world, settings_with

REPLAYS_A_LESSON = 3
WARM_UP = 4  # rollouts that are not counted
NUM_ENVS, N_STEPS = 512, 64
NEVER = 10**12  # steps
STRETCH_SECONDS = 5.0  # in which a training shows one agent and up to ten states
WATCH_SECONDS, RENEW_SECONDS = 15.0, 5.0  # as the panel's: for which a request holds, between two
LOOK_SECONDS = 0.25  # between two looks at the state
REQUEST = {"kind": "watch", "seconds": WATCH_SECONDS, "agent": True}
OWN = "own"  # what answering and showing take


def _plan(*train: str, steps: int) -> TrainingPlan:
    """A training on Goto, of rollouts of N_STEPS and with so much of `train`."""
    sizes = f"env.num_envs={NUM_ENVS}", f"train.total_steps={steps}", f"train.n_steps={N_STEPS}"
    batch = f"train.batch_size={NUM_ENVS * N_STEPS // 4}"
    own = (f"train.{one}" for one in train)
    return training_plan(FILE, only(default_type().default_target()), *sizes, batch, *own)


def bench_evaluation(
    evaluation: EvaluationSettings, say: Say, *, steps: int, repeats: int
) -> Report:
    """What `evaluation` costs a training of `steps`; `say` is called with what begins.

    With the same seed both end in the same weights, so all that they differ in is the evaluation.
    """
    world, sink = default_type(), MemoryTracker()
    sizes = f"env.num_envs={NUM_ENVS}", f"train.total_steps={steps}"
    plan = training_plan(FILE, only(world.default_target()), *sizes)

    def learn(plan: TrainingPlan) -> None:
        Training(plan).learn(sink, SilentObserver(), lambda: False)

    learn(replace(plan, train=replace(plan.train, total_steps=1)))  # compiles
    plans = {one: replace(plan, evaluation=one) for one in (None, evaluation)}
    calls = {one: partial(learn, plan) for one, plan in plans.items()}
    taken = seconds_by_turns(calls, repeats, time.process_time, say=say, what="trainings")
    usual, more = (median(seconds) for seconds in taken.values())
    number = len(sink.metrics["eval/win_rate"]) // repeats
    found = {
        "evaluations": number,  # in a training
        "episodes": max(world.targets(None)[world.default_target()], 1) * evaluation.episodes,
        "seconds_without": usual,
        "seconds_with": more,
        "seconds_an_evaluation": (more - usual) / number,
        "share": more / usual - 1,  # by which the training takes longer
    }
    title = (
        f"A training of {steps:,} steps, medians of {repeats}; seconds of the processor; share: "
        "by which it takes longer"
    )
    return Report(found, [Table(title, [found])])


def bench_replays(rollouts: int, say: Say) -> Report:
    """What keeping replays costs: one PPO training, in which every other rollout keeps them."""
    say(f"{2 * rollouts} rollouts, every other one with replays")
    steps = (2 * rollouts + WARM_UP + 1) * NUM_ENVS * N_STEPS  # the last has no next one
    seconds, keeping = rollout_times(_plan("algo=ppo", steps=steps))
    found = replay_cost(seconds[WARM_UP:], keeping)
    title = (
        "A rollout and its update, medians; the share that keeping takes, timed by itself; the "
        "difference of pairs with its 95 % interval; what three replays take when a lesson ends"
    )
    ends = {key: found[key] for key in ("difference", "lower", "upper")}
    row = {key: ends if key == "difference" else one for key, one in found.items()}
    del row["lower"], row["upper"]
    return Report(found, [Table(title, [row], ("share", "difference"))])


def replay_cost(seconds: Sequence[float], keeping: float) -> dict[str, Any]:
    """What `seconds` of rollouts say, by turns without replays and with them, of `keeping`."""
    pairs = list(zip(seconds[::2], seconds[1::2], strict=False))
    with_them = median(kept for _, kept in pairs)
    return {
        "rollouts": len(pairs),  # of each kind
        "seconds_without": median(alone for alone, _ in pairs),
        "seconds_with": with_them,
        "share": keeping / with_them,
        **_difference(kept / alone for alone, kept in pairs),
        "seconds_a_lesson": _seconds_a_lesson(),
    }


def _difference(ratios: Iterable[float]) -> dict[str, float]:
    """The geometric mean of `ratios` less 1, with its 95 % interval; NaN of a single one."""
    mean, lower, upper = mean_ratio(ratios).values()
    return {"difference": mean - 1, "lower": lower - 1, "upper": upper - 1}


def _seconds_a_lesson() -> float:
    """To write the replays of a lesson when it ends, if each is a whole episode."""
    world = make_world(settings_with(num_envs=1))
    world.set_scenario(Scenario({default_type().default_target(): 1.0}))
    spec = world.spec
    buffers = step_buffers(world)
    world.reset(1, buffers.observations)
    still = np.zeros((1, len(spec.branches) + spec.continuous), np.float32)
    train = TrainSettings(algo="ppo")
    agent = Agent(new_policy(train, spec), spec, train)
    recorder, episode = RowRecorder(world, 0, lambda: buffers.observations), None
    while episode is None:
        episode = recorder.add(still, world.step(still, buffers))
    begun = time.process_time()
    for _ in range(REPLAYS_A_LESSON):
        replay_text(as_replay(episode, {}, agent.mind))
    return time.process_time() - begun


class Watcher:
    """What the panel asks of a run whose play is watched, for as long as `look` is called.

    The parts Training and Watch of the panel ask for it.
    """

    def __init__(self, run_folder: Path) -> None:
        self._channel, self._live = ControlChannel(run_folder), LiveFolder.of(run_folder)
        self._key, self._renewed = self._channel.send(REQUEST), time.monotonic()

    def look(self) -> bytes:
        """The state that the run shows; empty: none yet. Requests are renewed where it is time."""
        self._channel.wait(self._key, 0.0, still_open=lambda: True)
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            self._key, self._renewed = self._channel.send(REQUEST), time.monotonic()
        with suppress(OSError):
            return self._live.status.read_bytes()
        return b""


def _watch(end: Connection, run_folder: Path) -> None:
    """In a process of its own: watch the run, or rest, as is asked for."""
    watcher: Watcher | None = None
    while True:
        if end.poll(None if watcher is None else LOOK_SECONDS):
            watcher = Watcher(run_folder) if end.recv() else None
            end.send(None)
        elif watcher is not None:
            watcher.look()


def _train(end: Connection, run_folder: Path) -> None:
    """In a process of its own: train (rollouts, whether that is watched) as is asked for."""
    plan = _plan(steps=NEVER)
    stopwatch = Stopwatch(time.process_time)
    channel = ControlChannel(run_folder, look_seconds=CHANNEL_SECONDS)
    stopwatch.watch(channel, "requests answer", OWN)
    shown, seen = cast(LivePublication, None), False  # new in each turn; whether it is watched
    live: Any = SimpleNamespace(
        watch=lambda request: shown.watch(request) if seen else {"watched_for": 0},  # too late
        publish=lambda progress, step, policy: shown.publish(progress, step=step, policy=policy),
        show_agent=lambda _, about: dict(about),  # which the watcher does not ask for
    )
    stopwatch.watch(live, "watch publish", OWN)

    def begin(rollouts: int, watched: bool) -> int:
        nonlocal shown, seen
        seen = watched
        shown = LivePublication(LiveFolder.of(run_folder), env=plan.env, train=plan.train)
        return rollouts

    links = RunLinks(requests=channel, live=live)
    train_in_turns(end, Training(plan), stopwatch, begin, links=links)


def bench_panel(pairs: int, say: Say) -> Report:
    """What being watched costs a training on Goto, from `pairs` pairs of stretches.

    Seconds are those of the training's process, of the clock, and within the code that answers and
    shows, which says how much of the first difference the training does itself. What drifts while
    it learns falls out of the pairs. Raises LabError where it never showed itself.
    """
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        watch = stack.enter_context(group(_watch, (folder,)))
        train = stack.enter_context(group(_train, (folder,)))
        for _ in range(2):  # compiles, then tells how long a stretch is
            (warm_up,) = train((WARM_UP, False))
        rollouts = max(1, round(STRETCH_SECONDS * WARM_UP / warm_up["seconds"]))

        def stretch(watched: bool) -> dict[str, float]:
            """What a million steps took."""
            watch(watched)
            (taken,) = train((rollouts, watched))
            millions = rollouts * NUM_ENVS * N_STEPS / 1e6
            return {key: taken[key] / millions for key in ("seconds", "processor", OWN)}

        stretches = {one: partial(stretch, one) for one in (False, True)}
        found = by_turns(stretches, pairs, say=say, what="stretches")
        if not LiveFolder.of(folder).status.exists():
            raise LabError("a training never showed itself")
    cost = watch_cost(found[False], found[True])
    title = (
        "Seconds of the processor for a million steps, medians; by how much more of the "
        "processor's time and of the clock's it takes watched [95 %]; the part of it that "
        "answering and showing take"
    )
    return Report({"schema": 3, **cost}, [Table(title, [cost], ("processor", "clock", "own"))])


def watch_cost(
    alone: Sequence[Mapping[str, float]], watched: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    """What stretches that took turns, of which there is one at least, say of the cost."""
    more = {
        key: _difference(seen[key] / one[key] for one, seen in zip(alone, watched, strict=True))
        for key in ("processor", "seconds")
    }
    return {
        "pairs": len(alone),
        "seconds_alone": median(one["processor"] for one in alone),
        "seconds_watched": median(one["processor"] for one in watched),
        "processor": more["processor"],
        "clock": more["seconds"],
        "own": fmean(one[OWN] for one in watched) / fmean(one["processor"] for one in watched),
    }
