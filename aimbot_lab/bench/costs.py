"""What evaluation, replays and being watched cost a training: with it and without, by turns.

Seconds are those of the processor, in which other programs count little.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.bench.train import Stopwatch
from aimbot_lab.bench.turns import NoSink, Report, Say, by_turns, group, mean_ratio, seconds_of
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.settings import EvaluationSettings
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.replay.files import replay_text
from aimbot_lab.replay.playback import as_replay
from aimbot_lab.replay.recorder import RowRecorder
from aimbot_lab.tracking.runs.control_channel import LOOK_SECONDS as CHANNEL_SECONDS
from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder
from aimbot_lab.training.callbacks.live_publication import LivePublication
from aimbot_lab.training.callbacks.rollout_times import rollout_times
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.run_hooks import LivePublisher, RunLinks
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import default_type, make_world, settings_with

REPLAYS_A_LESSON = 3
WARM_UP = 4  # rollouts that are not counted
N_STEPS = 64
NEVER = 10**12  # steps
STRETCH_SECONDS = 5.0  # in which a training shows one agent and up to ten states
WATCH_SECONDS, RENEW_SECONDS = 15.0, 5.0  # as the panel's: for which a request holds, between two
LOOK_SECONDS = 0.25  # between two looks at the state
REQUEST = {"kind": "watch", "seconds": WATCH_SECONDS, "agent": True}
OWN = "own"  # what answering and showing take


def _plan(num_envs: int = 512, **train: Any) -> TrainingPlan:
    """A training on Goto."""
    lesson = Lesson(name="all", targets={default_type().default_target(): 1.0})
    return TrainingPlan(1, settings_with(num_envs=num_envs), (lesson,), TrainSettings(**train))


def bench_evaluation(evaluation: EvaluationSettings, *, steps: int, repeats: int) -> Report:
    """What `evaluation` costs a training of `steps`.

    With the same seed both end in the same weights, so all that they differ in is the evaluation.
    """
    plan, counted = _plan(algo="hybrid_ppo", total_steps=steps), _EvaluationCounter()

    def learn(plan: TrainingPlan) -> float:
        training = Training(plan)
        call = partial(training.learn, counted, SilentObserver(), lambda: False)
        return seconds_of(call, time.process_time)

    learn(replace(plan, train=replace(plan.train, total_steps=1)))  # compiles
    without, with_it = by_turns(
        {one: partial(learn, replace(plan, evaluation=one)) for one in (None, evaluation)}, repeats
    ).values()
    usual, more, number = median(without), median(with_it), counted.evaluations // repeats
    world = default_type()
    found = {
        "evaluations": number,  # in a training
        "episodes": max(world.targets(None)[world.default_target()], 1) * evaluation.episodes,
        "seconds_without": usual,
        "seconds_with": more,
        "seconds_an_evaluation": (more - usual) / number,
        "share": more / usual - 1,  # by which the training takes longer
    }
    text = (
        f"A training of {steps:,} steps, medians of {repeats}: {usual:.2f} s without evaluation, "
        f"{more:.2f} s with it ({found['share']:+.1%}).\n{number} evaluations of "
        f"{found['episodes']} episodes, {1000 * found['seconds_an_evaluation']:.0f} ms each."
    )
    return Report(found, [text])


class _EvaluationCounter:
    evaluations = 0

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:  # noqa: ARG002
        """Count one where `metrics` are of one."""
        self.evaluations += "eval/win_rate" in metrics


def bench_replays(rollouts: int, *, num_envs: int = 512, n_steps: int = N_STEPS) -> Report:
    """What keeping replays costs: one PPO training, in which every other rollout keeps them.

    Seconds are those from the beginning of a rollout to that of the next, so that what changes
    slowly hits both kinds alike.
    """
    size = num_envs * n_steps
    steps = (2 * rollouts + WARM_UP + 1) * size  # the last has no next one that ends it
    times = rollout_times(_plan(num_envs, total_steps=steps, n_steps=n_steps, batch_size=size // 4))
    found = replay_cost(times.rollouts[WARM_UP:], times.keeping)
    text = (
        "A rollout and its update, medians of {rollouts}: {seconds_without:.4f} s without replays, "
        "{seconds_with:.4f} s with them.\nOf that, keeping takes {share:.3%}, timed by itself. "
        "Pairs differ by {difference:+.2%} [{lower:+.2%}, {upper:+.2%}].\nWhen a lesson ends, "
        "three replays of whole episodes take {seconds_a_lesson:.3f} s."
    )
    return Report(found, [text.format(**found)])


def replay_cost(seconds: Sequence[float], keeping: float) -> dict[str, Any]:
    """What `seconds` of rollouts say, by turns without replays and with them.

    `keeping` are those that keeping takes of one, timed by itself.
    """
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


def _difference(ratios: Any) -> dict[str, float]:
    """The geometric mean of `ratios` less 1, with its 95 % interval; NaN of a single one."""
    names = "difference", "lower", "upper"
    return {name: one - 1.0 for name, one in zip(names, mean_ratio(ratios), strict=True)}


def _seconds_a_lesson() -> float:
    """To write the replays of a lesson when it ends, if each is a whole episode."""
    world = make_world(settings_with(num_envs=1))
    world.set_scenario(Scenario({default_type().default_target(): 1.0}))
    spec = world.spec
    buffers = new_step_buffers(1, len(spec.observation_names))
    world.reset(1, buffers.observations)
    still = np.zeros((1, len(spec.branches) + spec.continuous), np.float32)
    recorder, episode = RowRecorder(world, 0), None
    while episode is None:
        episode = recorder.add(still, world.step(still, buffers))
    begun = time.process_time()
    for _ in range(REPLAYS_A_LESSON):
        replay_text(as_replay(episode, {}))
    return time.process_time() - begun


class Stretch(NamedTuple):
    """What a stretch of a training took for a million steps.

    From the beginning of a rollout to that of another: whole rollouts and their updates.
    """

    watched: bool
    processor: float  # s of the training's process
    clock: float  # s
    own: float  # s of `processor` within the code that answers and shows


class Pair(NamedTuple):
    """Two stretches of a training, one after the other."""

    alone: Stretch
    watched: Stretch


class WatchedByTurns:
    """Shows a training in every other pair of stretches: alone, watched, watched, alone, ...

    What drifts while the training learns, or the machine warms up, falls out of the pairs. `new`
    makes a publication that nobody watches; `turn` tells the watcher whether to watch from now on;
    `ended` gets each stretch of `seconds` or little more, but the first, which warms up.
    """

    def __init__(
        self,
        new: Callable[[], LivePublisher],
        *,
        turn: Callable[[bool], object],
        ended: Callable[[Stretch], None],
        seconds: float,
    ) -> None:
        self._new, self._turn, self._ended, self._seconds = new, turn, ended, seconds
        self.stopwatch = Stopwatch(time.process_time)
        self._number = -1  # of the stretch; the one before the first is not counted
        self._begin(0)

    @property
    def watched(self) -> bool:
        """Whether the present stretch is watched."""
        return self._number % 4 in (1, 2)

    def _begin(self, step: int) -> None:
        self._shown = self._new()
        self.stopwatch.watch(self._shown, "watch publish", OWN)
        self._begun = step, time.perf_counter()
        self.stopwatch.begin()

    def watch(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Somebody watches; at rest the request came too late."""
        return self._shown.watch(document) if self.watched else {"watched_for": 0}

    def publish(self, progress: CurriculumProgress, *, step: int, policy: Any) -> None:
        """A rollout begins at environment step `step`: the next stretch, where it is time."""
        clock = time.perf_counter() - self._begun[1]
        if clock >= self._seconds:
            processor, millions = self.stopwatch.end(), (step - self._begun[0]) / 1e6
            taken = sum(processor.values()), clock, processor.get(OWN, 0.0)
            if self._number >= 0:
                self._ended(Stretch(self.watched, *(seconds / millions for seconds in taken)))
            self._number += 1
            self._turn(self.watched)
            self._begin(step)
        self._shown.publish(progress, step=step, policy=policy)

    def show_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """As the publication of the stretch."""
        return self._shown.show_agent(policy, about)


class Watcher:
    """What the panel asks of a run that somebody watches at play, for as long as `look` is called.

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


def watched_pairs(
    pairs: int, *, say: Say, seconds: float = STRETCH_SECONDS, num_envs: int = 512
) -> list[Pair]:
    """So many pairs of stretches of a training on Goto; `say` is called with each.

    Raises LabError where the training showed itself to nobody.
    """
    found: list[Stretch] = []
    measured: list[Pair] = []

    def take(stretch: Stretch) -> None:
        found.append(stretch)
        if len(found) % 2 == 0:
            alone, watched = sorted(found[-2:])
            measured.append(Pair(alone, watched))
            more = watched.processor / alone.processor - 1
            say(f"pair {len(measured)} of {pairs}: {more:+.2%}")

    size = num_envs * N_STEPS
    plan = _plan(
        num_envs, algo="hybrid_ppo", total_steps=NEVER, n_steps=N_STEPS, batch_size=size // 4
    )
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as name:
        folder = Path(name)
        live, channel = LiveFolder.of(folder), ControlChannel(folder, look_seconds=CHANNEL_SECONDS)
        training = Training(plan)
        with group(_watch, (folder,)) as ask:
            ask(False)  # it is there
            new = partial(LivePublication, live, env=plan.env, train=plan.train)
            turns = WatchedByTurns(new, turn=ask, ended=take, seconds=seconds)
            turns.stopwatch.watch(channel, "requests answer", OWN)
            links = RunLinks(requests=channel, live=turns)
            training.learn(NoSink(), SilentObserver(), lambda: len(measured) >= pairs, links=links)
        if not live.status.exists():
            raise LabError("a training showed itself to nobody")
    return measured[:pairs]


def bench_panel(pairs: int, say: Say) -> Report:
    """What being watched costs a training, from so many pairs of stretches.

    Seconds are counted three times: of the training's process, in which other programs count
    little; on the clock; and within the code that answers and shows, which says how much of the
    first difference the training does itself.
    """
    found = watch_cost(watched_pairs(pairs, say=say))
    words = "{difference:+.2%} [{lower:+.2%}, {upper:+.2%}]"
    text = (
        f"A million steps, medians of {found['pairs']} pairs: {found['seconds_alone']:.3f} s of "
        f"the processor alone, {found['seconds_watched']:.3f} s watched.\nWatched it takes "
        f"{words.format(**found['processor'])} of the processor's time, "
        f"{words.format(**found['clock'])} on the clock.\nAnswering and showing take "
        f"{found['own']:.2%} of the processor's time while it is watched."
    )
    return Report({"schema": 3, **found}, [text])


def watch_cost(pairs: Sequence[Pair]) -> dict[str, Any]:
    """What `pairs`, of which there is one at least, say of the cost."""
    watched = [pair.watched for pair in pairs]
    return {
        "pairs": len(pairs),
        "seconds_alone": median(pair.alone.processor for pair in pairs),
        "seconds_watched": median(one.processor for one in watched),
        "processor": _difference(pair.watched.processor / pair.alone.processor for pair in pairs),
        "clock": _difference(pair.watched.clock / pair.alone.clock for pair in pairs),
        "own": fmean(one.own for one in watched) / fmean(one.processor for one in watched),
    }
