"""Checks across the sections of a curriculum."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isqrt

from aimbot_lab.curriculum.settings import Lesson, chain_faults
from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.experiment.config.key_path import KeyPath, shown_value
from aimbot_lab.experiment.config.keys import advice
from aimbot_lab.experiment.config.parameter_checks import (
    environment_diagnostics,
    lesson_parameter_diagnostics,
)
from aimbot_lab.experiment.config.parameter_lessons import Parameters
from aimbot_lab.experiment.config.self_play.checks import self_play_diagnostics, self_play_env
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.training.actors.checks import actor_faults
from aimbot_lab.training.algorithms.options import settings_faults
from aimbot_lab.training.algorithms.registry import ALGORITHMS, algorithm_of
from aimbot_lab.training.algorithms.rollout_algorithms import shard_count
from aimbot_lab.training.algorithms.update_cost import MAX_MULTIPLY_ADDS, MAX_WEIGHTS, update_cost
from aimbot_lab.training.networks.parts.part_checks import part_faults
from aimbot_lab.training.networks.registry import NETWORKS, network_of
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import AIM_BINS, REWARD_SCALE, USUAL_BINS, TrainSettings
from aimbot_lab.worlds.registry import knows_spec, seats_in, spec_of, type_of

MAX_ROLLOUT_STEPS = 2**24
MAX_REWARD = 1e12  # that a learner is given; its square is summed in 32 bits


def cross_section_diagnostics(
    lessons: Sequence[Lesson],
    *,
    env: WorldSettings,
    parameters: Parameters,
    train: TrainSettings,
    self_play: SelfPlaySettings | None = None,
) -> Iterator[Diagnostic]:
    """Diagnostics about several sections together."""
    unmade = list(world_diagnostics(env))
    unmade += learner_diagnostics(train)
    unmade += self_play_diagnostics(lessons, env, train, self_play)
    yield from unmade
    if unmade or not knows_spec(env):
        return
    env = self_play_env(env, self_play)
    yield from lesson_diagnostics(lessons, env, type_of(env))
    yield from environment_diagnostics(lessons, parameters, env, world=type_of(env))
    yield from rollout_diagnostics(env, train)
    yield from cost_diagnostics(env, train)
    yield from aim_diagnostics(env, train)
    yield from mask_diagnostics(env, train)
    yield from option_diagnostics(train)
    yield from network_diagnostics(env, train)
    yield from table_diagnostics(env, train)


def world_diagnostics(env: WorldSettings | None) -> Iterator[Diagnostic]:
    """Why no world can be made of `env`, as far as that may be asked here."""
    if env is not None and knows_spec(env):
        yield from _refusals(("env", "world"), partial(spec_of, env))


def _refusals(path: KeyPath, ask: Callable[[], object]) -> Iterator[Diagnostic]:
    """What a package's code, asked at `path`, is refused for, each fault at its own key."""
    try:
        ask()
    except ConfigurationError as error:
        for line in error.faults:
            key, _, what = line.partition(": ")
            known = key.startswith((f"{path[0]}.", f"{path[0]}:"))
            yield Diagnostic(tuple(key.split(".")) if known else path, what if known else line)


def learner_diagnostics(train: TrainSettings | None) -> Iterator[Diagnostic]:
    """Why a package's algorithm or network can't be asked anything, where `train` is not None."""
    if train is None:
        return
    algorithm, network = algorithm_of(train), network_of(train.network)

    def ask_algorithm() -> None:
        with ALGORITHMS.blamed(train.algo, "raised"):
            algorithm.adapter(train)
            if train.options:
                algorithm.load()

    def ask_network() -> None:
        with NETWORKS.blamed(train.network.kind, "raised"):
            network.layers(train.network)
            network.activation(train.network)
            network.weights(train.network, 1, 1)

    yield from _refusals(("train", "algo"), ask_algorithm)
    yield from _refusals(("train", "network"), ask_network)


def lesson_diagnostics(
    lessons: Sequence[Lesson | None] | None,
    env: WorldSettings | None,
    world: WorldType | None,
) -> Iterator[Diagnostic]:
    """What is wrong with the lessons together and in `env`, settings of `world`.

    A part that is None is wrong by itself, and nothing is held against it.
    """
    if lessons is None:
        return
    for path, what in chain_faults(lessons):
        yield Diagnostic(("lessons", *path), what)
    for number, lesson in enumerate(lessons):
        if lesson is not None:
            here: KeyPath = ("lessons", number)
            if world is not None:
                yield from _mix_diagnostics(
                    lesson, here, world.targets(env), world.self_play_targets
                )
            yield from lesson_parameter_diagnostics(
                lesson.parameters, env, (*here, "parameters"), world=world
            )


def rollout_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """What is wrong with the steps between two updates, where neither part is None."""
    if env is None or train is None:
        return
    steps = seats_in(env) * train.n_steps
    product = f"{rollout_product(env)} = {steps}"
    if _is_too_large(env, train):
        what = f"is too large: {product} must be at most {MAX_ROLLOUT_STEPS}"
        yield Diagnostic(("train", "n_steps"), what)
    elif train.samples.keep * steps > MAX_ROLLOUT_STEPS:
        most = f"must be at most {MAX_ROLLOUT_STEPS // steps} with rollouts of {product} steps"
        what = f"{most} (got {train.samples.keep})"
        yield Diagnostic(("train", "samples", "keep"), what)
    elif steps % train.batch_size and _takes_whole_minibatches(train):
        nearest = nearest_divisor(steps, train.batch_size)
        got = f"got {train.batch_size}; nearest that does: {nearest}"
        yield Diagnostic(("train", "batch_size"), f"must divide {product} ({got})")
    else:
        yield from _shard_diagnostics(train, seats_in(env))
        yield from (Diagnostic(("train", *key), what) for key, what in actor_faults(env, train))


def _shard_diagnostics(train: TrainSettings, rows: int) -> Iterator[Diagnostic]:
    try:
        shard_count(train, rows)
    except ValueError as error:
        yield Diagnostic(("train", "shards"), str(error))


def rollout_product(env: WorldSettings) -> str:
    """Of what the number of steps between two updates is the product."""
    agents, mirrored = spec_of(env).agents, type_of(env).rows(env) - env.num_envs
    several = f"{agents} agents * " if agents > 1 else ""
    rows = f"(env.num_envs + {mirrored} mirrored)" if mirrored else "env.num_envs"
    return f"{several}{rows} * train.n_steps"


def _takes_whole_minibatches(train: TrainSettings) -> bool:
    algorithm = algorithm_of(train)
    return "batch_size" in algorithm.takes and not algorithm.replay_buffer


def _is_too_large(env: WorldSettings, train: TrainSettings) -> bool:
    return seats_in(env) * train.n_steps > MAX_ROLLOUT_STEPS


def cost_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """What no update could compute in reasonable time or numbers, where neither part is None."""
    if env is None or train is None:
        return
    cost = update_cost(train, env)
    if cost.weights > MAX_WEIGHTS:
        what = f"must have at most {MAX_WEIGHTS:,} weights between them (got {cost.weights:,})"
        key = ("layers",) if hasattr(train.network, "layers") else ()
        yield Diagnostic(("train", "network", *key), what)
    elif cost.multiply_adds > MAX_MULTIPLY_ADDS and not _is_too_large(env, train):
        what = (
            f"is too much work: an update would take {cost.multiply_adds:.1e} multiply-adds, "
            f"must be at most {MAX_MULTIPLY_ADDS:.0e}"
        )
        yield Diagnostic(("train", "n_epochs"), what)
    largest = type_of(env).reward_bound(env)
    scale = REWARD_SCALE if train.reward_scale is None else train.reward_scale
    if scale != "running" and largest * scale > MAX_REWARD:
        what = (
            f"times the largest of env.rewards, {largest:g}, must be at most {MAX_REWARD:g}, as "
            f"updates compute with 32 bits (got {scale:g})"
        )
        yield Diagnostic(("train", "reward_scale"), what)


def aim_diagnostics(env: WorldSettings | None, train: TrainSettings | None) -> Iterator[Diagnostic]:
    """Whether the agent aims where the world has no mouse, or farther than the arena lets it.

    Where a part is None nothing is held against it.
    """
    if env is None or train is None:
        return
    if spec_of(env).continuous == 0:
        usual = USUAL_BINS.get(train.algo, AIM_BINS)
        given = (("aim", train.aim != "bins"), ("aim_bins", train.aim_bins != usual))
        what = f"world {env.world} has no mouse"
        yield from (Diagnostic(("train", key), what) for key, is_given in given if is_given)
        return
    if train.aim == "hybrid" or "mouse_limit" not in type_of(env).shape_keys:
        return  # there are no bins, or they are shares of the world's own limits
    farthest = max(train.aim_bins, key=abs)
    limit = spec_of(env).continuous_limit
    if abs(farthest) > limit:
        what = f"must not go beyond env.mouse_limit, {limit:g} (got {farthest:g})"
        yield Diagnostic(("train", "aim_bins"), what)


def mask_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """Why nothing would be masked though `train` says so, where neither part is None."""
    if env is None or train is None or spec_of(env).can("masks"):
        return
    way = "give the environment a method action_masks, or wrap it in sb3_contrib's ActionMasker"
    what = f"needs action masks, and there are none here (world {env.world}): {way}"
    if train.masks:
        yield Diagnostic(("train", "masks"), f"{what}, or leave this out")
    elif algorithm_of(train).masked:
        yield Diagnostic(("train", "algo"), f"{train.algo} {what}, or use ppo")


def option_diagnostics(train: TrainSettings | None) -> Iterator[Diagnostic]:
    """What the algorithm does not take, where `train` is not None."""
    if train is None:
        return
    for key, option, what, known in settings_faults(train):
        path: KeyPath = ("train", key) if option is None else ("train", key, option)
        if known and option is not None:
            yield Diagnostic(path, f"{what} ({advice(option, known)})", about_key=True)
        elif what.startswith("must be"):
            yield Diagnostic(path, f"{what} (got {shown_value(train.options[str(option)])})")
        else:
            yield Diagnostic(path, what)


def network_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """Why the network can't be trained in that world, where neither part is None."""
    if env is None or train is None:
        return
    for fault in part_faults(train, env):
        known = f" (there are {', '.join(fault.known)})" if fault.known else ""
        yield Diagnostic(("train", *fault.key), f"{fault.what}{known}")
    network = network_of(train.network)
    what = network.fault(train.network, spec_of(env), algo=train.algo)
    if what is None:
        return
    key, colon, rest = what.partition(": ")
    if colon and hasattr(train.network, key):
        yield Diagnostic(("train", "network", key), rest)
    else:
        yield Diagnostic(("train", "network"), what)


def table_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """What a table of the world's states needs, where neither part is None."""
    if env is None or train is None or algorithm_of(train).table is None:
        return
    what = type_of(env).states_fault(env)
    if what is not None:
        yield Diagnostic(("train", "algo"), f"{train.algo} needs {what}")


def _mix_diagnostics(
    lesson: Lesson, path: KeyPath, targets: Mapping[str, int], past_selves: Sequence[str]
) -> Iterator[Diagnostic]:
    if not lesson.targets and len(targets) > 1:
        yield Diagnostic((*path, "targets"), "is missing")
    lacks_section = bool(past_selves) and not targets.keys() & set(past_selves)
    without = " without the section self_play" if lacks_section else ""
    for target in lesson.targets:
        if target in past_selves and target not in targets:
            what = "a past self of the learner: needs the section self_play"
            yield Diagnostic((*path, "targets", target), what, about_key=True)
        elif target not in targets:
            what = f"unknown target{without} ({advice(target, targets)})"
            yield Diagnostic((*path, "targets", target), what, about_key=True)
    for target, weights in lesson.difficulty.items():
        count = targets.get(target)
        if count == 0:
            yield Diagnostic(
                (*path, "difficulty", target), f"{target} has no difficulties: leave it out"
            )
        elif count is not None and len(weights) != count:
            what = f"must hold {count} weights, one for each difficulty (got {len(weights)})"
            yield Diagnostic((*path, "difficulty", target), what)


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number`, 1 excepted, that is nearest to `wanted`."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)} - {1}
    return min(divisors, key=lambda divisor: (abs(divisor - wanted), divisor))
