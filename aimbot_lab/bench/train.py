"""`bench train`: whole trainings by turns, of algorithms, of networks, and by self-play.

A repeat is a fresh training of a few rollouts with lessons, callbacks and tracking, as a
curriculum has them. Of each variant the fastest repeat counts.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

import numpy as np
from threadpoolctl import threadpool_limits

from aimbot_lab.bench.turns import Report, Say, Table, by_turns, group, seconds_of, turns
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.callbacks.report_callback import MetricSink
from aimbot_lab.training.fused.core.arrays import Floats
from aimbot_lab.training.fused.engine import PIECE
from aimbot_lab.training.fused.layout import HeadShape
from aimbot_lab.training.plain_scripts import check_plain, learn_plain_ppo
from aimbot_lab.training.processes.exchange import rank_from_environment
from aimbot_lab.training.processes.gloo import connect
from aimbot_lab.training.run_hooks import UNLINKED, RunLinks, SilentObserver
from aimbot_lab.training.self_play.pool import SnapshotPool
from aimbot_lab.training.self_play.session import PastSelves
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import default_type, world_types

FILE = Path(__file__).parent / "training.yaml"
REST, OPPONENTS = "rest", "opponents"  # opponents: acting and choosing of past selves
PARTS = ("simulator", "policy", "buffer", "update", "callbacks", "tracking", REST)
OURS, THEIRS = "hybrid_ppo", "stable-baselines3"
PLAIN, RECURRENT, SHARED = "plain", "recurrent_ppo", "recurrent_ppo, shared"
SEQUENCE_LENGTH = 16  # of a memory
SELF_PLAY = "self-play"
RATIO, WINDOW, AT_ONCE = 0.5, 10, 8  # mirrored matches of all, past selves, networks at once
ACTING_STEPS = 200  # of one repeat of acting by itself
EXCHANGE = "exchange"  # the part of a training in several processes
NEVER_ENDS = "train.total_steps=1000000000000"
ROLLOUTS_AT_ONCE = 40  # of two trainings beside each other
PIECES = 16  # of samples, whose products are timed together
PRODUCT_REPEATS = 300  # of which the best counts; together about a second


def training_plan(file: Path | str, *overrides: str) -> TrainingPlan:
    """The training of a curriculum with `overrides`."""
    return plan_of(load_curriculum(file, overrides).config)


def plan_of(config: CurriculumFile) -> TrainingPlan:
    """The training of `config`, without what only watches over it."""
    own = config.self_play
    return TrainingPlan(config.seed, config.env, config.lessons, config.train, self_play=own)


def only(target: str) -> str:
    """The override with which `target` is all that is learned, in all its difficulties."""
    return f"lessons=[{{name: {target}, targets: {{{target}: 1}}}}]"


class Variant(NamedTuple):
    """One way to train."""

    name: str
    threads: int  # of each process
    net: str  # the hidden layers, such as 64x64
    overrides: tuple[str, ...] = ()
    processes: int = 1


@dataclass(frozen=True)
class Sizes:
    """How long trainings are that take turns, and with how many threads and which nets."""

    threads: tuple[int, ...] = (1, 2)
    nets: tuple[str, ...] = ("64x64", "128x128")
    num_envs: int = 512
    n_steps: int = 64
    batch_size: int = 8192
    n_epochs: int = 4
    rollouts: int = 8  # of one repeat, after a first one that is not counted
    repeats: int = 6  # of each variant

    @property
    def steps(self) -> int:
        """Of the environments, of a rollout."""
        return self.num_envs * self.n_steps

    @property
    def mirrored(self) -> int:
        """Matches that a learner plays against itself; snapshots sit in the others."""
        return round(RATIO * self.num_envs)

    @property
    def shared(self) -> dict[str, int]:
        """The settings that all trainings share."""
        names = "num_envs", "n_steps", "batch_size", "n_epochs"
        return {name: getattr(self, name) for name in names}

    def training(self, variant: Variant) -> TrainingPlan:
        """The training of training.yaml with these sizes and the overrides of `variant`."""
        threads, shared = variant.threads, self.shared
        overrides = (
            *(f"env.num_envs={shared.pop('num_envs')}", f"env.threads={threads}"),
            *(f"train.{key}={value}" for key, value in shared.items()),
            f"train.total_steps={self.steps * (1 + self.rollouts)}",
            f"train.torch_threads={threads}",
            f"train.network.layers=[{variant.net.replace('x', ', ')}]",
        )
        return training_plan(FILE, *overrides, *variant.overrides)


FULL = Sizes()
OF_NETWORKS = replace(FULL, batch_size=4096, rollouts=2, repeats=4)
TINY = Sizes((1,), ("16x16",), 16, 16, batch_size=128, n_epochs=1, rollouts=2, repeats=1)


class Stopwatch:
    """Time by part, by `clock`. What a watched call does in another watched one counts there."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._clock, self._parts, self._since = clock, [REST], clock()

    def begin(self) -> None:
        """Forget what was measured; from now on all counts, as the rest where not watched."""
        self.seconds, self.calls, self._since = {}, {}, self._clock()

    def watch(self, owner: object, names: str, part: str) -> None:
        """From now on count calls of the methods `names` of `owner` as `part`."""
        for name in names.split():
            setattr(owner, name, self._watched(getattr(owner, name), part))

    def _watched(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self.end()
            self.calls[part] = self.calls.get(part, 0) + 1
            self._parts.append(part)
            try:
                return function(*arguments, **named)
            finally:
                self.end()
                self._parts.pop()

        return watched

    def end(self) -> dict[str, float]:
        """Seconds by part since `begin`."""
        now, part = self._clock(), self._parts[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now
        return self.seconds


Lap = dict[str, Any]  # steps a second, of all and of the update alone; shares of the time


def fastest_laps(
    sizes: Sizes, variants: Sequence[Variant], say: Say, parts: Sequence[str] = PARTS
) -> dict[Variant, Lap]:
    """The fastest repeat of each variant."""

    def lap(variant: Variant) -> Lap:
        training = Training(sizes.training(variant))
        tracker = open_run(data_folder, TrackingSettings(), RunDescription(name=variant.name))
        try:
            return timed_lap(training, tracker, parts)
        finally:
            tracker.finish("FINISHED")

    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as folder:
        say("making a store to track to, compiling what is not in the cache yet")
        data_folder = DataFolder(Path(folder))
        trainings = {one: partial(lap, one) for one in variants}
        laps = by_turns(trainings, sizes.repeats, say=say, what="trainings")
    return {one: max(own, key=lambda lap: lap["steps_per_second"]) for one, own in laps.items()}


def timed_lap(training: Training, sink: MetricSink, parts: Sequence[str]) -> Lap:
    """Train to the end; how fast it was from the end of its first update to that of its last.

    By self-play with as many past selves as may be met after a while.
    """
    model: Any = training.model  # one that learns from rollouts
    stopwatch, ends = Stopwatch(), list[int]()  # steps at which updates ended
    watch = stopwatch.watch
    watch(training.env, "step", "simulator")
    watch(model.policy, "forward predict_values", "policy")
    watch(model.rollout_buffer, "reset add compute_returns_and_advantage", "buffer")
    watch(model, "train", "update")
    watch(sink, "log_metrics", "tracking")
    if (own := training.self_play) is not None:
        fill(own.pool, model.policy.state_dict(), WINDOW)
        own.past_selves.line_up = tuple(range(AT_ONCE))
        watch(own.past_selves, "act seat ended", OPPONENTS)
    update, init, taken = model.train, model._init_callback, dict[str, float]()

    def counted() -> None:
        update()
        if not ends:
            stopwatch.begin()
        taken.update(stopwatch.end())
        ends.append(model.num_timesteps)

    def watched(*arguments: Any, **named: Any) -> Any:
        callback = init(*arguments, **named)
        watch(callback, "update_locals on_step on_rollout_start on_rollout_end", "callbacks")
        return callback

    model.train, model._init_callback = counted, watched
    training.learn(sink, SilentObserver(), lambda: False)
    whole, steps = sum(taken.values()), ends[-1] - ends[0]
    return {
        "engine": model.engine.name if hasattr(model, "engine") else "torch",
        "steps_per_second": steps / whole,
        "update_steps_per_second": steps / taken["update"],
        "shares": {part: taken.get(part, 0.0) / whole for part in parts},
    }


def train_in_turns(
    end: Connection,
    training: Training,
    stopwatch: Stopwatch,
    begin: Callable[..., int] = int,
    links: RunLinks = UNLINKED,
) -> None:
    """In a process of a group: train for turns of a few rollouts, and rest between them.

    `begin` gives their number from what is asked for. The answer has what a turn took by the
    clock, of the processor and of its main thread, the parts of `stopwatch`, and its calls.
    """
    left, begun, model = 0, dict[str, float](), cast(Any, training.model)
    update = model.train

    names = "seconds", "processor", "main_thread"
    clocks = dict(zip(names, (time.perf_counter, time.process_time, time.thread_time), strict=True))

    def wait() -> None:
        nonlocal left, begun
        left = begin(*end.recv())
        stopwatch.begin()
        begun = {key: clock() for key, clock in clocks.items()}

    def counted() -> None:
        nonlocal left
        update()
        left -= 1
        if left == 0:
            taken = {key: clock() - begun[key] for key, clock in clocks.items()}
            end.send({**taken, **stopwatch.end(), "calls": stopwatch.calls})
            wait()

    model.train = counted
    wait()
    training.learn(MemoryTracker(), SilentObserver(), lambda: False, links=links)


def worker(end: Connection, sizes: Sizes, variant: Variant) -> None:
    """In a process of a group: train in turns, with the others where the environment says so."""
    exchange, stopwatch = connect(rank_from_environment()), Stopwatch()
    stopwatch.watch(exchange, "sum_up gather gather_arrays", EXCHANGE)
    with closing(exchange):
        training = Training(sizes.training(variant), exchange=exchange)
        train_in_turns(end, training, stopwatch)


def fill(pool: SnapshotPool, weights: Any, count: int) -> None:
    """Have `count` snapshots that differ, made of `weights`."""
    for number in range(count):
        factor = 1.0 + 0.01 * number
        pool.take({name: tensor * factor for name, tensor in weights.items()}, step=number)


def of_algorithms(sizes: Sizes) -> list[Variant]:
    """hybrid_ppo and stable-baselines3's PPO, all targets and difficulties mixed."""
    algorithms = {OURS: ("train.algo=hybrid_ppo",), THEIRS: ("train.algo=ppo",)}
    every = product(sizes.nets, sizes.threads, algorithms.items())
    return [Variant(name, threads, net, own) for net, threads, (name, own) in every]


def bench_train(sizes: Sizes, say: Say) -> Report:
    """Both algorithms with each net and number of threads; `say` is called with what begins."""
    laps = fastest_laps(sizes, of_algorithms(sizes), say)
    say("the matrix products alone")
    rows, best = [], dict[tuple[str, str], float]()
    for one, lap in laps.items():
        best[one.name, one.net] = max(best.get((one.name, one.net), 0.0), lap["steps_per_second"])
        products = None
        if one.name == OURS:
            model: Any = Training(sizes.training(one)).model
            seconds = seconds_of_products(model.engine.shape.heads, one.threads)
            products = 1.0 / (seconds * sizes.n_epochs)
        about = {"name": one.name, "net": one.net, "threads": one.threads}
        rows.append({**about, **lap, "matrix_products_steps_per_second": products})
    ratios = {net: best[OURS, net] / best[THEIRS, net] for net in sizes.nets}
    texts = [f"{net}: {ratio:.2f} times {THEIRS}'s best" for net, ratio in ratios.items()]
    at_once = None
    if sizes is FULL:
        say("two trainings at once, 64x64, one thread each")
        lone = Variant(OURS, 1, "64x64", (NEVER_ENDS,))
        with group(worker, (sizes, lone), ({}, {})) as ask:
            ask((1,))
            taken = [one["seconds"] for one in ask((ROLLOUTS_AT_ONCE,))]
        at_once = sum(ROLLOUTS_AT_ONCE * sizes.steps / one for one in taken)
        texts.append(
            f"Two at once, 64x64, one thread each: {at_once:,.0f} steps per second together"
        )
    together = {"two_trainings_at_once_steps_per_second": at_once}
    title = (
        "Environment steps per second of the whole training, of its update by itself, and of its "
        "matrix products alone as numpy's BLAS does them; where the time goes"
    )
    document = {"settings": sizes.shared, "variants": rows, "ratio_to_stable_baselines3": ratios}
    return Report({**document, **together}, [Table(title, rows), "\n".join(texts)])


def seconds_of_products(shape: HeadShape, threads: int) -> float:
    """Seconds per sample and epoch of an update's products alone, as numpy's BLAS does them.

    As if all `threads` were as fast as one alone; each array lies in one piece.
    """
    products = list(_products(shape))

    def work() -> None:
        for _ in range(PIECES):
            for left, right, out in products:
                np.matmul(left, right, out=out)

    with threadpool_limits(1):
        best = min(seconds_of(work, time.perf_counter) for _ in range(PRODUCT_REPEATS))
    return best / (threads * PIECES * PIECE)


def _products(shape: HeadShape) -> Iterator[tuple[Floats, Floats, Floats]]:
    """(factor, factor, product) of a piece of samples, there and back, of actor and critic."""
    rng, below = np.random.default_rng(0), shape.inputs
    layers = []  # (inputs, outputs, whether gradients of the inputs are needed)
    for number, units in enumerate(shape.layers):
        layers += [(below, units, True)] * 2 if number else [(below, 2 * units, False)]
        below = units
    for inputs, outputs, slopes in (*layers, (below, shape.outputs, True), (below, 1, True)):
        sizes = (PIECE, inputs), (inputs, outputs), (PIECE, outputs)
        seen, weights, given = (rng.standard_normal(size, np.float32) for size in sizes)
        yield seen, weights, np.empty_like(given)
        yield seen.T, given, np.empty_like(weights)
        if slopes:
            yield given, weights.T, np.empty_like(seen)


def of_networks(network: str, sizes: Sizes) -> list[Variant]:
    """`network`, plain layers, and sb3-contrib's RecurrentPPO, on the hardest target.

    Its default has an LSTM each of actor and critic, the other form one for both. What is seen is
    the same for all. There is one layer after a memory or encoders, as their LSTM has it, or two.
    """
    units = int(sizes.nets[0].partition("x")[0])
    memory = (f"network.memory={{size: {units}, sequence_length: {SEQUENCE_LENGTH}}}",)
    layers = f"[{units // 2}, {units // 2}]"
    encoders = (f"network.scalars=[{units}]", f"network.units.layers={layers}", "target=attention")
    more = ("aim=hybrid", "masks=true", "objective=per_branch", "dual_clip=3")
    every = (*memory, *encoders, *more, "network.scaling=running")
    lstm = ("algo=recurrent_ppo", f"options.lstm_hidden_size={units}")
    shared = ("options.shared_lstm=true", "options.enable_critic_lstm=false")
    nets = {
        network: (f"{units}", {"memory": memory, "units": encoders, "all": every}[network]),
        PLAIN: (f"{units}x{units}", ()),
        RECURRENT: (f"{units}", lstm),
        SHARED: (f"{units}", (*lstm, *shared)),
    }
    target = only(default_type().hardest_target())
    seen = f"env.observation.units={'false' if network == 'memory' else 'true'}"
    return [
        Variant(name, threads, net, (target, seen, *(f"train.{one}" for one in own)))
        for threads, (name, (net, own)) in product(sizes.threads, nets.items())
    ]


def bench_networks(network: str, sizes: Sizes, say: Say) -> Report:
    """How many times as fast each is as the others; `say` is called with what begins."""
    laps = fastest_laps(sizes, of_networks(network, sizes), say)
    speeds = {(one.name, one.threads): lap["steps_per_second"] for one, lap in laps.items()}
    others = {"recurrent_ppo": RECURRENT, "recurrent_ppo_shared": SHARED, "plain": PLAIN}
    rows = []
    for (name, threads), lap in zip(speeds, laps.values(), strict=True):
        compared = {key: speeds[other, threads] for key, other in others.items()}
        compared["one_thread"] = speeds[name, sizes.threads[0]]
        speed = lap["steps_per_second"]
        ratios = {f"ratio_to_{key}": speed / other for key, other in compared.items()}
        rows.append({"network": name, "threads": threads, **lap, **ratios})
    title = (
        "Environment steps per second of the whole training and of its update by itself, where "
        "the time goes, and how many times as fast as others with as many threads"
    )
    own = {"units": int(sizes.nets[0].partition("x")[0]), "sequence_length": SEQUENCE_LENGTH}
    return Report({"settings": own | sizes.shared, "rows": rows}, [Table(title, rows)])


def of_self_play(world: str, sizes: Sizes) -> list[Variant]:
    """Self-play in `world`, and as many rows of the hardest target, with the same learner.

    Raises ConfigurationError where the world has no self-play.
    """
    able = [name for name, kind in world_types().items() if kind.self_play_targets]
    if world not in able:
        raise ConfigurationError(
            f"--world {world}: it has no self-play; worlds that have are {', '.join(able)}"
        )
    ours = (
        *(f"env.world={world}", only(world_types()[world].self_play_targets[0])),
        *(f"self_play.play_against_latest_model_ratio={RATIO}", f"self_play.window={WINDOW}"),
        f"self_play.at_once={AT_ONCE}",
    )
    hardest, rows = default_type().hardest_target(), sizes.num_envs + sizes.mirrored
    steps = f"train.total_steps={rows * sizes.n_steps * (1 + sizes.rollouts)}"
    trainings = {SELF_PLAY: ours, hardest: (only(hardest), f"env.num_envs={rows}")}
    every = product(sizes.threads, trainings.items())
    return [Variant(name, one, sizes.nets[0], (steps, *own)) for one, (name, own) in every]


def bench_self_play(world: str, sizes: Sizes, say: Say) -> Report:
    """How fast self-play learns in `world`; `say` is called with what begins."""
    laps = fastest_laps(sizes, of_self_play(world, sizes), say, (*PARTS, OPPONENTS))
    hardest, rows = default_type().hardest_target(), []
    speeds = {(one.name, one.threads): lap["steps_per_second"] for one, lap in laps.items()}
    for one, lap in laps.items():
        about = {"name": one.name, "net": one.net, "threads": one.threads}
        ratio = speeds[one.name, one.threads] / speeds[hardest, one.threads]
        rows.append({**about, **lap, "ratio_to_hardest_target": ratio})
    matches = {"matches": sizes.num_envs, "rows": sizes.num_envs + sizes.mirrored}
    settings = matches | {"ratio": RATIO, "window": WINDOW, "at_once": AT_ONCE} | sizes.shared
    del settings["num_envs"]
    say(f"acting of {AT_ONCE} networks and of one")
    own = (one for one in laps if one.name == SELF_PLAY)
    acting = [row for one in own for row in _acting(world_types()[world], sizes, one)]
    title = (
        "Learner steps per second of the whole training and of its update by itself, where the "
        "time goes, and how many times as fast as the other training with as many threads"
    )
    document = {"world": world, "settings": settings, "rows": rows, "acting": acting}
    return Report(document, [Table(title, rows), Table("Acting of past selves", acting)])


def _acting(kind: WorldType, sizes: Sizes, variant: Variant) -> Iterator[dict[str, Any]]:
    """How long one network and many take to act once, on as many rows; the best repeat counts."""
    train, rows = sizes.training(variant).train, sizes.num_envs - sizes.mirrored
    settings = kind.settings(num_envs=rows)
    spec = kind.spec(kind.self_play_settings(settings, 0.0))
    world = kind.make(kind.single_settings(settings))
    world.set_scenario(Scenario({next(iter(world.spec.targets)): 1.0}))
    buffers, played = step_buffers(world), kind.self_play_targets
    world.reset(1, buffers.observations)
    masks = np.ones((rows, sum(spec.branches)), np.bool_)
    actions = np.zeros((rows, len(spec.branches) + spec.continuous), np.float32)

    def seated(networks: int) -> PastSelves:
        """That many snapshots in all matches."""
        pool = SnapshotPool()
        fill(pool, new_policy(train, spec).state_dict(), networks)
        selves = PastSelves(pool, spec, train, played=played, seed=1)
        selves.engine, selves.line_up = "fused", tuple(range(networks))
        selves.begin(rows)
        selves.seat(np.arange(rows), [played[0]] * rows)
        return selves

    def seconds_a_step(selves: PastSelves) -> float:
        begun = time.perf_counter()
        for _ in range(ACTING_STEPS):
            selves.act(buffers.observations, masks, actions)
        return (time.perf_counter() - begun) / ACTING_STEPS

    players = {count: partial(seconds_a_step, seated(count)) for count in (1, AT_ONCE)}
    taken = by_turns(players, 2 * sizes.repeats, warm_up=True)  # compiles, and loads the weights
    for count, seconds in taken.items():
        about = {"rows": rows, "networks": count, "threads": variant.threads}
        best = {"seconds_per_step": min(seconds)}
        yield {**about, **best, "ratio_to_one_network": min(seconds) / min(taken[1])}


CURRICULUM = "curriculum"


def bench_peer(plan: TrainingPlan, *, seeds: int, say: Say) -> Report:
    """Both trainings for each seed; the curriculum's is compiled before the first.

    Raises ConfigurationError where plain stable-baselines3 can't train by `plan`.
    """
    check_plain(plan)
    learners = {CURRICULUM: _ours, THEIRS: learn_plain_ppo}
    _ours(replace(plan, train=replace(plan.train, total_steps=1)))
    done = []
    for turn, learner in turns(learners, seeds, alternate=False):
        seed = plan.seed + turn
        steps, seconds, passed = learners[learner](replace(plan, seed=seed))
        say(f"seed {seed}, {learner}: {seconds:.1f} s")
        about = {"learner": learner, "seed": seed, "steps": steps}
        done.append({**about, "seconds": seconds, "passed": passed})
    times = ratio(done)
    line = "no seed with which both passed" if times is None else f"{times:.1f} (median over seeds)"
    text = f"seconds of {THEIRS} over those of the curriculum: {line}"
    title = "Until the proof of the last lesson, or until the steps were spent"
    return Report({"trainings": done, "ratio": times}, [Table(title, done), text])


def _ours(plan: TrainingPlan) -> tuple[int, float, bool]:
    training = Training(plan)
    with closing(training):
        ended = training.learn(MemoryTracker(), SilentObserver(), lambda: False)
    return ended.steps, ended.seconds, training.progress.finished


def ratio(done: Sequence[Mapping[str, Any]]) -> float | None:
    """Median over seeds of plain stable-baselines3's seconds over the curriculum's.

    Of the seeds with which both passed; None: there is none.
    """
    passed = {(one["learner"], one["seed"]): one["seconds"] for one in done if one["passed"]}
    pairs = [
        theirs / passed[CURRICULUM, seed]
        for (learner, seed), theirs in passed.items()
        if learner == THEIRS and (CURRICULUM, seed) in passed
    ]
    return median(pairs) if pairs else None
