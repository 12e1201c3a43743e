"""Copies of a Gymnasium environment behind the `BatchWorld` protocol."""

import json
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.argument_checks import (
    FLOAT32,
    MisuseError,
    check_buffers,
    check_writable,
    checked_actions,
    checked_row,
    whole_seed,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.errors import (
    NEVER_BLAMED,
    ConfigurationError,
    ForeignCodeError,
    LabError,
    blamed,
)
from aimbot_lab.foundation.samplers import ParameterValue, Sampler
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import Float
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Picture,
    Scenario,
    StepBuffers,
    closed_on_failure,
)
from aimbot_lab.worlds.gymnasium.environments import (
    Env,
    check_info,
    checked_scenario,
    drawn_parameters,
    environment_shape,
    new_environment,
    raised_words,
    same_folder,
    seed_notice,
    set_attributes,
)
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.spaces import (
    MisfitError,
    bounded_columns,
    flat_masks,
    flat_observation,
    outside,
    reward_of,
    shape_fault,
)

EPISODES_WITHOUT_INFO = 100  # after which a key that has not come is reported
SHOWN = 10  # keys that a message names
PARAMETERS = TypeAdapter(Mapping[str, Float | Sampler])


class GymnasiumWorld:
    """`settings.num_envs` copies of an environment, stepped one after the other.

    Episode k that begins after a reset to `seed` begins from a seed that follows from `seed` and k
    alone, not from its player. An environment has no snapshot: `restore` begins new episodes. The
    environments are closed with the world, or with this object.
    """

    def __init__(self, settings: GymnasiumSettings) -> None:
        self.settings, self.num_envs = settings, settings.num_envs
        self._envs: list[Env] = []
        weakref.finalize(self, _close_quietly, self._envs)
        with closed_on_failure(self.close):
            for _ in range(self.num_envs):
                self._envs.append(new_environment(settings))
            with same_folder(), blamed(f"env.id: {settings.id} can't be used:", ConfigurationError):
                self.spec = environment_shape(self._envs[0], settings)
                self._space = self._envs[0].observation_space
                notice = seed_notice(self._envs[0], settings.id)
        self._notices = [] if notice is None else [notice]
        self._unshaped = {"reset", "step"}  # calls whose first observation is to be looked at
        self._bounded = bounded_columns(self.spec)  # () once a number lay beyond its bounds
        self._judge = WinJudge(settings.win)
        self.keep_endings = False
        self._endings: dict[int, Picture] = {}
        self._scenario = 0
        self._parameters: Mapping[str, ParameterValue] = {}
        self._seed: int | None = None
        self._begun = 0  # episodes since the reset
        self._order = np.zeros(self.num_envs, np.int64)
        self._scenarios = np.zeros(self.num_envs, np.int64)
        self._lengths = np.zeros(self.num_envs, np.int64)
        self._returns = np.zeros(self.num_envs)
        self._masks = np.ones((self.num_envs, sum(self.spec.branches)), np.bool_)

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return self._scenario

    @same_folder()
    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError for another target and for a parameter that there is not.
        """
        checked_scenario(scenario, self._envs[0], self.settings)
        self._parameters = dict(scenario.parameters)
        self._scenario += 1
        return self._scenario

    @same_folder()
    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B, D]."""
        self._seed, self._begun = whole_seed(seed), 0
        shape = (self.num_envs, len(self.spec.observation_names))
        check_writable(observations, "observations", shape=shape, dtype=FLOAT32)
        for row in range(self.num_envs):
            observations[row] = self._begin(row)
        self._note_outside("reset", observations)

    @same_folder()
    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        Raises ActionError, with the world as it was, for an action that does not exist.
        """
        if self._seed is None:
            raise MisuseError("step: reset the world first")
        check_buffers(buffers, (self.num_envs, len(self.spec.observation_names)))
        actions = checked_actions(actions, self.num_envs, spec=self.spec)
        buffers.finished[:] = buffers.truncated[:] = False
        assert self.spec.environment_actions is not None
        given = self.spec.environment_actions.of(actions)
        infos = {}
        for row in range(self.num_envs):
            # A single choice as Python's number, which some environments compare by `is`.
            taken = given[row, ...] if given.ndim > 1 or self.spec.continuous else int(given[row])
            info = self._step_row(row, taken, buffers)
            if buffers.finished[row]:
                infos[row] = info
        self._refuse_infinite(buffers)
        self._note_outside("step", buffers.observations)
        batch = self._ended(infos, buffers.truncated)
        for row in infos:
            if self.keep_endings and self.spec.can("draw"):
                self._endings[row] = self.draw(row)
            buffers.observations[row] = self._begin(row)
        return batch._replace(running_order=self._order, running_scenario=self._scenarios)

    def take_notices(self) -> list[str]:
        """What a person should know since the last call."""
        taken, self._notices = self._notices + self._judge.take_notices(), []
        return taken

    @same_folder()
    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, sum of branches]: what the method `action_masks` of each says."""
        if self.spec.can("masks"):
            for row, env in enumerate(self._envs):
                with self._blamed("action_masks"):
                    given = env.get_wrapper_attr("action_masks")()
                    self._masks[row] = flat_masks(given, self.spec)
        masks[:] = self._masks

    def snapshot(self) -> dict[str, np.ndarray]:
        """Its counters and the scenario in force; an environment's own state can't be read."""
        kept = {
            "seed": self._seed,
            "begun": self._begun,
            "scenario": self._scenario,
            "parameters": PARAMETERS.dump_python(self._parameters, mode="json"),
        }
        return {"kept": np.frombuffer(json.dumps(kept).encode(), np.uint8).copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Count on from `snapshot`, in its scenario; `begin_anew` is due before the next step."""
        kept = json.loads(snapshot["kept"].tobytes())
        parameters = PARAMETERS.validate_python(kept["parameters"])
        checked_scenario(Scenario({TARGET: 1.0}, {}, parameters), self._envs[0], self.settings)
        self._seed, self._begun, self._scenario = kept["seed"], kept["begun"], kept["scenario"]
        self._parameters = parameters

    @same_folder()
    def begin_anew(self, observations: Float32Array) -> None:
        """Break off what runs and begin an episode in every row; writes `observations` [B, D]."""
        for row in range(self.num_envs):
            observations[row] = self._begin(row)

    @same_folder()
    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` as the environment renders it; with `ending` as its last episode ended.

        Raises LabError where it renders nothing, MisuseError where no ending was kept.
        """
        row = checked_row(row, self.num_envs)
        if ending:
            if row not in self._endings:
                raise MisuseError("no ending was kept: set keep_endings before the step")
            return self._endings[row]
        with self._blamed("render"):
            frame = self._envs[row].render()
        if not isinstance(frame, np.ndarray):
            raise LabError(f"{self.settings.id} renders no picture; env.kwargs.render_mode says so")
        return frame.astype(np.uint8)

    @same_folder()
    def close(self) -> None:
        """Close all environments; there is nothing to play after that.

        Raises ForeignCodeError where one of them refuses, once all were asked.
        """
        with blamed(f"{self.settings.id}: its close raised", ForeignCodeError):
            _close_all(self._envs)

    def _begin(self, row: int) -> Float32Array:
        assert self._seed is not None
        values = drawn_parameters(self._parameters, self._seed, episode=self._begun)
        env = self._envs[row]
        options: dict[str, Any] | None = None
        if self.settings.via == "options":
            options = dict(values)
        else:
            set_attributes(env, values)
        seed = derive_seed(self._seed, "episode", self._begun) % 2**31
        with self._blamed("reset"):
            observation, info = env.reset(seed=seed, options=options)
            check_info(env, info)
            first = self._flat("reset", observation)
        self._refuse_infinite_observations(first, "reset")
        self._order[row], self._scenarios[row] = self._begun, self._scenario
        self._lengths[row], self._returns[row] = 0, 0.0
        self._begun += 1
        return first

    def _step_row(self, row: int, action: Any, buffers: StepBuffers) -> dict[str, Any]:
        with self._blamed("step"):
            observation, reward, terminated, truncated, info = self._envs[row].step(action)
            over, cut_off = bool(terminated), bool(truncated)
            if type(info) is not dict and not isinstance(info, Mapping):
                raise MisfitError("gave an info that is not a dict")
            buffers.observations[row] = self._flat("step", observation)
            buffers.rewards[row] = gained = reward_of(reward)
        self._lengths[row] += 1
        self._returns[row] += gained
        if over or cut_off:
            buffers.finished[row] = True
            buffers.truncated[row] = not over
            buffers.final_observations[row] = buffers.observations[row]
        return info

    @contextmanager
    def _blamed(self, call: str) -> Iterator[None]:
        """Raise ForeignCodeError, in a line, for what the environment raises or gives in `call`."""
        try:
            yield
        except MisfitError as error:
            raise ForeignCodeError(f"{self.settings.id}: its {call} {error}") from error
        except NEVER_BLAMED:
            raise
        except BaseException as error:
            words = raised_words(self._envs[0], call, error)
            raise ForeignCodeError(f"{self.settings.id}: its {call} raised {words}") from error

    def _flat(self, call: str, observation: Any) -> Float32Array:
        """The columns [D]; that the first one's shape is not the space's is said once."""
        flat = flat_observation(self._space, observation, size=len(self.spec.observation_names))
        if call in self._unshaped:
            self._unshaped -= {call}
            fault = shape_fault(self._space, observation)
            if fault is not None:
                self._unshaped = set()
                self._notices.append(f"{self.settings.id}: its {call} {fault} (told once)")
        return flat

    def _note_outside(self, call: str, observations: Float32Array) -> None:
        """Say once that a number lies beyond its bounds, which scaling by them counts on."""
        fault = outside(self.spec, self._bounded, observations)
        if fault is not None:
            self._bounded = ()
            self._notices.append(f"{self.settings.id}: its {call} {fault} (told once)")

    def _refuse_infinite(self, buffers: StepBuffers) -> None:
        """Raise ForeignCodeError for NaN and infinity, which learning would spread unseen."""
        if not np.isfinite(buffers.rewards).all():
            reward = buffers.rewards[~np.isfinite(buffers.rewards)][0]
            raise ForeignCodeError(f"{self.settings.id}: its step gave a reward of {reward:g}")
        self._refuse_infinite_observations(buffers.observations, "step")

    def _refuse_infinite_observations(self, observations: Float32Array, call: str) -> None:
        finite = np.isfinite(observations)
        if not finite.all():
            column = int(np.argwhere(~finite)[0][-1])
            value, name = observations[~finite].flat[0], self.spec.observation_names[column]
            raise ForeignCodeError(f"{self.settings.id}: its {call} gave {name} as {value:g}")

    def _ended(self, infos: Mapping[int, Mapping[str, Any]], truncated: BoolArray) -> EpisodeBatch:
        rows = np.array(sorted(infos), np.int64)
        won = [self._is_won(row, infos[row], bool(truncated[row])) for row in rows.tolist()]
        return EpisodeBatch(
            row=rows,
            agent=np.zeros_like(rows),
            order=self._order[rows],
            scenario=self._scenarios[rows],
            cell=(Cell(TARGET, 0),) * len(rows),
            outcome=np.where(won, WIN, LOSS).astype(np.int8),
            length=self._lengths[rows],
            terms=self._returns[rows, None],
            running_order=self._order,
            running_scenario=self._scenarios,
        )

    def _is_won(self, row: int, info: Mapping[str, Any], truncated: bool) -> bool:
        total, length = float(self._returns[row]), int(self._lengths[row])
        with self._blamed("info"):
            return self._judge.is_won(info, truncated=truncated, total=total, length=length)


def _close_quietly(envs: list[Env]) -> None:
    with suppress(LabError), same_folder(), blamed("close:"):
        _close_all(envs)


def _close_all(envs: list[Env]) -> None:
    """Close `envs` and forget them; raise what the first raises that refuses."""
    with ExitStack() as stack:
        while envs:
            stack.callback(envs.pop(0).close)


class WinJudge:
    """Judges episodes by one rule, and notices where that can't be right."""

    def __init__(self, rule: WinRule) -> None:
        self._rule = rule
        self._judged = 0
        self._came = False  # whether an info had the key
        self._keys: set[str] = set()  # that infos had
        self._notices: list[str] = []

    def is_won(
        self, info: Mapping[str, Any], *, truncated: bool, total: float, length: int
    ) -> bool:
        """Whether an episode of that return and length is won; `info` is its last step's.

        Raises MisfitError where what `info` has under the rule's key is neither true nor false.
        """
        rule = self._rule
        if rule.return_above is not None:
            return bool(total >= rule.return_above)
        if rule.length_above is not None:
            return bool(length >= rule.length_above)
        if rule.info is not None:
            found = _at(info, rule.info)
            self._note_keys(rule.info, info, came=found is not None)
            return _truth(found, rule.info)
        return truncated == (rule.terminated == "loss")

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def _note_keys(self, wanted: str, info: Mapping[str, Any], *, came: bool) -> None:
        if self._judged >= EPISODES_WITHOUT_INFO:
            return
        self._judged += 1
        self._came |= came
        self._keys |= set(_keys(info))
        if self._judged == EPISODES_WITHOUT_INFO and not self._came:
            there = ", ".join(sorted(self._keys)[:SHOWN]) or "nothing"
            self._notices.append(
                f"env.win.info: none of the first {EPISODES_WITHOUT_INFO} episodes ended with "
                f"{wanted!r} in its info, so none was won; there was {there}"
            )


def _at(info: Mapping[str, Any], key: str) -> Any:
    """What `info` has under `key`, in which dots may lead into dicts; None: nothing."""
    if key in info:
        return info[key]
    first, _, rest = key.partition(".")
    inner = info.get(first)
    return _at(inner, rest) if rest and isinstance(inner, Mapping) else None


def _truth(found: Any, key: str) -> bool:
    if isinstance(found, Mapping):
        entries = ", ".join(f"{key}.{name}" for name in islice(found, SHOWN)) or "nothing"
        raise MisfitError(
            f"has a dict at {key!r}, which is always true: env.win.info must name an entry of it "
            f"(there is {entries})"
        )
    if isinstance(found, np.ndarray) and found.size == 1:
        found = found.item()
    if found is None:
        return False
    if isinstance(found, bool | np.bool_ | int | float | np.number) and found in (0, 1):
        return bool(found)
    shown = shortened(one_line(str(found)), 40)
    what = f"{shown} ({type(found).__name__}) at {key!r}"
    raise MisfitError(f"has {what}: env.win.info must name what is true or false, 1 or 0")


def _keys(info: Mapping[str, Any]) -> Iterator[str]:
    """Every key, those of dicts within with the way to them."""
    for key, value in info.items():
        inner = value if isinstance(value, Mapping) and value else None
        yield from [str(key)] if inner is None else (f"{key}.{name}" for name in inner)
