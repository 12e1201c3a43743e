"""Plain data as a checked curriculum, or everything that is wrong with them.

pydantic checks each section by itself. What hangs together between sections is checked here, once,
and as far as the sections that are right by themselves allow.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from aimbot_lab.curriculum.settings import Lesson, chain_faults
from aimbot_lab.experiment.config.schema import section_diagnostics, without_tags
from aimbot_lab.experiment.config.settings import (
    ONLY_LESSON,
    SECTION,
    CurriculumFile,
    Parameters,
    environment_diagnostics,
    lesson_parameter_diagnostics,
    self_play_env,
)
from aimbot_lab.experiment.config.yaml_reader import (
    Diagnostic,
    KeyPath,
    is_parameters,
    shown_value,
    starts_with,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import MayRun, allow, never
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.training.algorithms.algorithm import POLICY_KWARGS, named_layers
from aimbot_lab.training.algorithms.registry import ALGORITHMS, AnyTrain, algorithm_of, shard_count
from aimbot_lab.training.checks import (
    MAX_MULTIPLY_ADDS,
    MAX_WEIGHTS,
    actor_faults,
    as_option,
    callback_code,
    callback_faults,
    elsewhere,
    replay_fault,
    settings_faults,
    update_cost,
    with_defaults,
)
from aimbot_lab.training.networks.network import NETWORKS, network_fault, network_of, stack_of
from aimbot_lab.training.networks.network_parts import divisors, nearest, part_faults
from aimbot_lab.training.processes.exchange import ShardCountError
from aimbot_lab.training.settings import (
    AIM_BINS,
    REWARD_SCALE,
    USUAL_BINS,
    SelfPlaySettings,
    TrainSettings,
)
from aimbot_lab.worlds.registry import (
    AnyWorld,
    code_of,
    default_type,
    knows_spec,
    named_type,
    seats_in,
    spec_of,
    type_of,
    world_types,
)

MAX_ROLLOUT_STEPS = 2**24
MAX_REWARD = 1e12  # that a learner is given; its square is summed in 32 bits
SELF_PLAY, RATIO = "self_play", "play_against_latest_model_ratio"

_ROLLOUT: frozenset[KeyPath] = frozenset(
    {
        ("env",),
        ("env", "num_envs"),
        ("train",),
        ("train", "algo"),
        ("train", "n_steps"),
        ("train", "batch_size"),
    }
)
_COST: frozenset[KeyPath] = frozenset(
    {("env", "rewards"), ("train", "n_epochs"), ("train", "reward_scale"), ("train", "network")}
)
_NETWORK: frozenset[KeyPath] = frozenset({("train",), ("train", "algo"), ("train", "network")})
_ALGORITHM: frozenset[KeyPath] = frozenset({("train",), ("train", "algo")})


def validate(
    data: dict[str, Any], *, may_run: MayRun = never
) -> tuple[CurriculumFile | None, list[Diagnostic]]:
    """The curriculum that `data` describe, None where anything is wrong, and all faults.

    Code that its world and its callbacks name is run where `may_run` says so; elsewhere nothing is
    held against a world whose shape is not known without it.
    """
    data = with_defaults(data)
    config, faults = formed(data)
    faults = [_with_way(fault, data.get("train")) for fault in faults]
    known = {fault.path for fault in faults}
    lessons, env, parameters, train, self_play = _sections(config or _without(data, known), known)
    codes = None if env is None else code_of(env), None if train is None else callback_code(train)
    for code in codes:
        if code is not None and may_run(code):
            allow(code)
    world = named_type(data.get("env"))
    between: list[Diagnostic] = []
    if env is not None and knows_spec(env):
        between += _refusals(("env", "world"), partial(spec_of, env))
    if between or (env is not None and not knows_spec(env)):
        env = world = None
    if unlearned := list(learner_diagnostics(train)):
        train = None
    between += [*unlearned, *self_play_diagnostics(lessons, env, train, self_play)]
    if env is not None:
        env = self_play_env(env, self_play)
    floor = None if known & _floor(world) else env
    between += lesson_diagnostics(lessons, floor, world)
    between += environment_diagnostics(lessons, parameters, floor, world=world)
    between += learning_diagnostics(env, train, known)
    for fault in between:
        if not any(starts_with(place, fault.path) for place in known):
            faults.append(fault)
    return (None if faults else config), faults


def _with_way(fault: Diagnostic, train: Any) -> Diagnostic:
    """`fault`; that of a key of `train` that other tools have, with what says the same here."""
    if len(fault.path) != 2 or fault.path[0] != "train" or not isinstance(train, Mapping):
        return fault
    key, what = str(fault.path[1]), None
    if not fault.about_key:
        what = as_option(key, train)
    elif (way := elsewhere(key, train)) is not None:
        what = f"unknown key ({way})"
    return fault if what is None else fault._replace(what=what)


def formed(data: dict[str, Any]) -> tuple[CurriculumFile | None, list[Diagnostic]]:
    """As `validate`, with each section by itself alone."""
    try:
        return TypeAdapter(CurriculumFile).validate_python(data), []
    except ValidationError as error:
        return None, list(section_diagnostics(error, CurriculumFile))


def learning_diagnostics(
    env: WorldSettings | None, train: TrainSettings | None, known: Collection[KeyPath] = ()
) -> Iterator[Diagnostic]:
    """What is wrong between the learner and its world, a part of which is None where it is wrong.

    What hangs on the places that are `known` to be wrong is left out.
    """

    def knows(places: frozenset[KeyPath]) -> bool:
        return not places.isdisjoint(known)

    if train is None:
        return
    if env is not None and not knows(_ROLLOUT):
        yield from rollout_diagnostics(env, train)
        if not knows(_COST):
            yield from cost_diagnostics(env, train)
    if env is not None:
        yield from aim_diagnostics(env, train)
        if not knows(_ALGORITHM):
            yield from number_diagnostics(env, train)
            yield from mask_diagnostics(env, train)
    if not knows(_ALGORITHM):
        yield from option_diagnostics(env, train)
    yield from (Diagnostic(("train", *key), what) for key, what in callback_faults(train))
    if env is not None and not knows(_NETWORK):
        yield from network_diagnostics(env, train)
    if env is not None and not knows(_ALGORITHM) and algorithm_of(train).table is not None:
        lacking = type_of(env).states_fault(env)
        if lacking is not None:
            yield Diagnostic(("train", "algo"), f"{train.algo} needs {lacking}")


def _sections(
    data: CurriculumFile | dict[str, Any], known: Collection[KeyPath]
) -> tuple[
    list[Lesson | None] | None,
    WorldSettings | None,
    Parameters | None,
    TrainSettings | None,
    SelfPlaySettings | None,
]:
    """Those sections that are right by themselves; of lessons those whose targets are."""
    if isinstance(data, CurriculumFile):
        parameters = data.environment_parameters
        return list(data.lessons), data.env, parameters, data.train, data.self_play
    doubtful = {path[1] for path in known if path[:1] == ("lessons",) and path[2:3] == ("targets",)}
    given, self_play = data.get("lessons"), data.get("self_play")
    lessons = [
        None if number in doubtful else _checked(Lesson, lesson)
        for number, lesson in enumerate(given if isinstance(given, list) else ())
    ]
    return (
        lessons if isinstance(given, list) else None,
        _checked(AnyWorld, data.get("env", {})),
        _checked(Parameters, data.get(SECTION, {})),
        _checked(AnyTrain, data.get("train", {})),
        None if self_play is None else _checked(SelfPlaySettings, self_play),
    )


def _checked(kind: Any, data: Any) -> Any:
    """The section in `data`, if need be without keys that are wrong, None where that won't do."""
    for _ in range(2):
        try:
            return TypeAdapter(kind).validate_python(data)
        except ValidationError as error:
            places = (without_tags(kind, detail["loc"]) for detail in error.errors())
            wrong = {place[0] for place in places if place}
        if isinstance(data, dict):
            data = {key: value for key, value in data.items() if key not in wrong}
    return None


def _floor(world: WorldType | None) -> frozenset[KeyPath]:
    """What a lesson's parameters are checked against in `world`."""
    keys = () if world is None else world.bounding_keys
    return frozenset({("env",), *(("env", *key.split(".")) for key in keys)})


def _without(data: dict[str, Any], wrong: Iterable[KeyPath]) -> dict[str, Any]:
    """A copy of `data` without the values at `wrong`, to check what the rest says together.

    Lessons keep their places and get names, so that a nameless one is checked as well.
    """
    rest = deepcopy(data)
    for path in wrong:
        _remove(rest, path)
    lessons = rest.get("lessons")
    for number, lesson in enumerate(lessons if isinstance(lessons, list) else []):
        if isinstance(lesson, dict):
            lesson.setdefault("name", f"nameless {number}")
    return rest


def _remove(data: Any, path: KeyPath) -> None:
    *sections, key = _up_to_whole(path)
    for section in sections:
        inside = isinstance(section, int) or (isinstance(data, dict) and section in data)
        data = data[section] if inside else None
    if isinstance(data, list):
        data[int(key)] = None
    elif isinstance(data, dict):
        data.pop(key, None)


def _up_to_whole(path: KeyPath) -> KeyPath:
    """`path` up to the list or the parameter that it leads into; those are checked whole."""
    length = next((end for end in (1, 3) if is_parameters(path[:end])), None)
    if length is not None:
        return path[: length + 1]
    lists = (place for place, key in enumerate(path) if isinstance(key, int) and place != 1)
    return path[: next(lists, len(path))]


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
            stack_of(train.network)
            weights: Any = network.weights(train.network, 1, 1)
            if not isinstance(weights, int | float):
                raise TypeError(f"weights must be a number (got {weights!r:.60})")

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
    if lessons == [ONLY_LESSON] and world is not None and len(world.targets(env)) > 1:
        which = f"world {world.name}"
        if world.name == default_type().name:
            which = f"without env.world the {world.name} is trained, which"
        yield Diagnostic(("lessons",), f"is missing ({which} needs lessons)")
        return
    for path, what in chain_faults(lessons):
        yield Diagnostic(("lessons", *path), what)
    if env is not None and not spec_of(env).has_wins:
        yield from _win_diagnostics(lessons)
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


def _win_diagnostics(lessons: Sequence[Lesson | None]) -> Iterator[Diagnostic]:
    """Which lessons are measured by wins, of which there are none."""
    for number, lesson in enumerate(lessons):
        criteria = None if lesson is None else lesson.completion_criteria
        if criteria is not None and criteria.measured.needs_wins:
            what = (
                f"{criteria.measure} needs a rule for what counts as won, and there is none: add "
                "env.win, or measure reward or progress"
            )
            yield Diagnostic(("lessons", number, "completion_criteria", "measure"), what)


def rollout_diagnostics(env: WorldSettings, train: TrainSettings) -> Iterator[Diagnostic]:
    """What is wrong with the steps between two updates."""
    algorithm = algorithm_of(train)
    if algorithm.candidates and seats_in(env) > 1:
        what = f"must be 1: {train.algo} plays one candidate after the other"
        yield Diagnostic(("env", "num_envs"), f"{what} (got {seats_in(env)})")
    steps = seats_in(env) * algorithm.rollout_steps(train)
    product = f"{rollout_product(env)} = {steps}"
    if steps > MAX_ROLLOUT_STEPS:
        what = f"is too large: {product} must be at most {MAX_ROLLOUT_STEPS}"
        yield Diagnostic(("train", "n_steps"), what)
    elif train.samples.keep * steps > MAX_ROLLOUT_STEPS:
        most = f"must be at most {MAX_ROLLOUT_STEPS // steps} with rollouts of {product} steps"
        what = f"{most} (got {train.samples.keep})"
        yield Diagnostic(("train", "samples", "keep"), what)
    elif (
        steps % train.batch_size and "batch_size" in algorithm.takes and not algorithm.replay_buffer
    ):
        fitting = nearest_divisor(steps, train.batch_size)
        got = f"got {train.batch_size}; nearest that does: {fitting}"
        yield Diagnostic(("train", "batch_size"), f"must divide {product} ({got})")
    else:
        try:
            shard_count(train, seats_in(env))
        except ShardCountError as error:
            yield Diagnostic(("train", "shards"), str(error))
        yield from (Diagnostic(("train", *key), what) for key, what in actor_faults(env, train))


def rollout_product(env: WorldSettings) -> str:
    """Of what the number of steps between two updates is the product."""
    agents, mirrored = spec_of(env).agents, type_of(env).rows(env) - env.num_envs
    several = f"{agents} agents * " if agents > 1 else ""
    rows = f"(env.num_envs + {mirrored} mirrored)" if mirrored else "env.num_envs"
    return f"{several}{rows} * train.n_steps"


def cost_diagnostics(env: WorldSettings, train: TrainSettings) -> Iterator[Diagnostic]:
    """What no update could compute in reasonable time or numbers."""
    cost = update_cost(train, env)
    if cost.weights > MAX_WEIGHTS:
        what = f"must have at most {MAX_WEIGHTS:,} weights between them (got {cost.weights:,})"
        key: KeyPath = ("network", "layers") if hasattr(train.network, "layers") else ("network",)
        if named_layers(train):
            key = ("options", POLICY_KWARGS, "net_arch")
        yield Diagnostic(("train", *key), what)
    elif (
        cost.multiply_adds > MAX_MULTIPLY_ADDS
        and seats_in(env) * train.n_steps <= MAX_ROLLOUT_STEPS
    ):
        what = (
            f"is too much work: an update would take {cost.multiply_adds:.1e} multiply-adds, "
            f"must be at most {MAX_MULTIPLY_ADDS:.0e}"
        )
        yield Diagnostic(("train", "n_epochs"), what)
    if (fault := replay_fault(train, env)) is not None:
        yield Diagnostic(("train", "options", "buffer_size"), fault)
    largest = type_of(env).reward_bound(env)
    scale = REWARD_SCALE if train.reward_scale is None else train.reward_scale
    if scale != "running" and largest * scale > MAX_REWARD:
        what = (
            f"times the largest of env.rewards, {largest:g}, must be at most {MAX_REWARD:g}, as "
            f"updates compute with 32 bits (got {scale:g})"
        )
        yield Diagnostic(("train", "reward_scale"), what)


def aim_diagnostics(env: WorldSettings, train: TrainSettings) -> Iterator[Diagnostic]:
    """Whether the agent aims where actions have no numbers, or farther than the arena lets it."""
    if spec_of(env).continuous == 0:
        usual = USUAL_BINS.get(train.algo, AIM_BINS)
        given = (("aim", train.aim != "bins"), ("aim_bins", train.aim_bins != usual))
        what = f"world {env.world} has no continuous actions"
        yield from (Diagnostic(("train", key), what) for key, is_given in given if is_given)
        return
    if train.aim == "bins" and not algorithm_of(train).chooses_bins(train, spec_of(env)):
        if train.aim_bins != USUAL_BINS.get(train.algo, AIM_BINS):
            what = f"{train.algo} acts on these numbers without bins: leave it out"
            yield Diagnostic(("train", "aim_bins"), what)
        return
    if train.aim == "hybrid" or "mouse_limit" not in type_of(env).shape_keys:
        return  # there are no bins, or they are shares of the world's own limits
    farthest = max(train.aim_bins, key=abs)
    limit = spec_of(env).continuous_limit
    if abs(farthest) > limit:
        what = f"must not go beyond env.mouse_limit, {limit:g} (got {farthest:g})"
        yield Diagnostic(("train", "aim_bins"), what)


def number_diagnostics(env: WorldSettings, train: TrainSettings) -> Iterator[Diagnostic]:
    """Why an algorithm that acts by bounded numbers alone can't act in that world."""
    algorithm, spec, key = algorithm_of(train), spec_of(env), ("train", "algo")
    if algorithm.candidates and len(spec.branches) + (spec.continuous > 0) > 1:
        what = (
            "needs continuous actions (a Box) or one choice (Discrete), and actions have more here"
        )
        yield Diagnostic(key, f"{train.algo} {what} (world {env.world}): use ppo")
    if not algorithm.numbers_only and (spec.branches or not algorithm.candidates):
        return
    if spec.branches:
        what = "needs continuous actions (a Box), and actions have choices here"
        yield Diagnostic(key, f"{train.algo} {what} (world {env.world}): use ppo or dqn")
        return
    bounded = np.isfinite(spec.action_bounds).all(axis=0)
    if not bounded.all():
        name = [*spec.action_names, *map(str, range(spec.continuous))][int(np.argmin(bounded))]
        yield Diagnostic(
            key,
            f"{train.algo} needs two bounds of each number of an action, and {name} has none or "
            "one: give its Box two bounds where it is defined or in a wrapper of your own "
            "(gymnasium.wrappers.ClipAction and RescaleAction keep those that there are), or use "
            "ppo",
        )
    elif algorithm.numbers_only and (fixed := np.equal(*spec.action_bounds)).any():
        yield Diagnostic(
            key,
            f"{train.algo} scales each number of an action between its bounds, and both of "
            f"{spec.action_names[int(np.argmax(fixed))]} are the same: leave it out by a wrapper "
            "(gymnasium.wrappers.TransformAction), or use ppo",
        )


def mask_diagnostics(env: WorldSettings, train: TrainSettings) -> Iterator[Diagnostic]:
    """Why nothing would be masked though `train` says so."""
    spec = spec_of(env)
    if spec.can("masks"):
        return
    way = "give the environment a method action_masks, or wrap it in sb3_contrib's ActionMasker"
    if hasattr(env, "masks"):
        way += ", or say by env.masks.info where its info has them"
    there = f"there are none here (world {env.world}): {way}"
    if not spec.branches:
        there = "actions are numbers here, without choices to mask"
    what = f"needs action masks, and {there}"
    joined = ", or " if spec.branches else ": "
    if train.masks:
        yield Diagnostic(("train", "masks"), f"{what}{joined}leave this out")
    elif algorithm_of(train).masked:
        yield Diagnostic(("train", "algo"), f"{train.algo} {what}{joined}use ppo")


def option_diagnostics(env: WorldSettings | None, train: TrainSettings) -> Iterator[Diagnostic]:
    """What the algorithm does not take."""
    spec = None if env is None else spec_of(env)
    for key, what, known in settings_faults(train, spec):
        path: KeyPath = ("train", *key)
        if known:
            yield Diagnostic(path, f"{what} ({nearest_name(str(key[-1]), known)})", about_key=True)
        elif what.startswith("must"):
            value: Any = train.options
            for part in key[1:]:
                value = value[part]
            yield Diagnostic(path, f"{what} (got {shown_value(value)})")
        else:
            yield Diagnostic(path, what)


def network_diagnostics(env: WorldSettings, train: TrainSettings) -> Iterator[Diagnostic]:
    """Why the network can't be trained in that world."""
    spec = spec_of(env)
    if spec.pictures and not algorithm_of(train).sees_pictures:
        said = f"{train.algo} can't see pictures ({spec.pictures[0].name}): use ppo or sac"
        yield Diagnostic(("train", "algo"), f"{said}, or take their shades for plain numbers")
    for path, what, known in part_faults(
        train, env, takes_parts="target" in algorithm_of(train).takes
    ):
        there = f" (there are {', '.join(known)})" if known else ""
        yield Diagnostic(("train", *path), f"{what}{there}")
    fault = network_fault(train.network, spec, algo=train.algo)
    if fault is not None:
        key, colon, rest = fault.partition(": ")
        if colon and hasattr(train.network, key):
            yield Diagnostic(("train", "network", key), rest)
        else:
            yield Diagnostic(("train", "network"), fault)


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
            what = f"unknown target{without} ({nearest_name(target, targets)})"
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
    return nearest(divisors(number)[1:], wanted)


def self_play_diagnostics(
    lessons: Sequence[Lesson | None] | None,
    env: WorldSettings | None,
    train: TrainSettings | None,
    self_play: SelfPlaySettings | None,
) -> Iterator[Diagnostic]:
    """Why there can be no such self-play; a part that is None is wrong by itself, or left out."""
    if self_play is None:
        for number, lesson in enumerate(lessons or ()):
            criteria = None if lesson is None else lesson.completion_criteria
            if criteria is not None and criteria.by_running_rating:
                path = ("lessons", number, "completion_criteria", "measure")
                what = f"elo under rule: ml-agents needs the section {SELF_PLAY}"
                yield Diagnostic(path, what)
    if self_play is None or env is None:
        return
    world = type_of(env)
    if not world.self_play_targets:
        able = [name for name, kind in world_types().items() if kind.self_play_targets]
        needed = " or ".join(f"env.world: {name}" for name in able)
        yield Diagnostic((SELF_PLAY,), f"needs {needed} (got {env.world})")
        return
    if train is not None and not algorithm_of(train).self_play:
        able = [name for name, one in ALGORITHMS.own.items() if one.self_play]
        what = f"must be one of {', '.join(able)} under {SELF_PLAY} (got {train.algo})"
        yield Diagnostic(("train", "algo"), what)
    if train is not None and train.actors is not None:
        yield Diagnostic(("train", "actors"), f"must be left out under {SELF_PLAY}")
    if world.rows(self_play_env(env, self_play)) < 2 * env.num_envs:
        return
    mirrored = world.self_play_targets[0]
    for number, lesson in enumerate(lessons or ()):
        weights = {} if lesson is None else lesson.targets
        others = [name for name, weight in weights.items() if weight > 0 and name != mirrored]
        if others:
            what = (
                f"leaves no match for {', '.join(others)} of lessons.{number}: all {env.num_envs} "
                "are mirrored"
            )
            yield Diagnostic((SELF_PLAY, RATIO), what)
            return
