"""A parallel environment of PettingZoo as an environment of Gymnasium."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.util import find_spec
from itertools import chain
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers.utils import create_zero_array

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.named_code import imported
from aimbot_lab.foundation.settings import STRICT, dataclass
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import WorldSpec, closed_on_failure
from aimbot_lab.worlds.gymnasium.copies import LARGEST_REWARD
from aimbot_lab.worlds.gymnasium.environments import environment_shape
from aimbot_lab.worlds.gymnasium.observations import OBSERVATION
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, MaskRule, ObservationParts
from aimbot_lab.worlds.gymnasium.spaces import MisfitError, flat_masks, reward_of
from aimbot_lab.worlds.gymnasium.win_judge import WinJudge, info_entry
from aimbot_lab.worlds.gymnasium.wrapping import Env, new_environment
from aimbot_lab.worlds.pettingzoo.settings import PettingZooSettings

MASK, SEEN = "action_mask", "observation"  # entries of an observation, by PettingZoo's convention
RESULTS = "results"  # the entry of a joint observation that says what agents gained
REWARD, RETURN, WON, CUT_OFF = range(4)  # of each: in the step, in all, judged at the end, by it
NUMBERS = 4
PARALLEL = "parallel_env"
NEEDED = "possible_agents", "observation_space", "action_space", "reset", "step"
PADDING = {"observation": "pad_observations_v0", "action": "pad_action_space_v0"}
GIVEN = {
    "reset": ("observations", "infos"),
    "step": ("observations", "rewards", "terminations", "truncations", "infos"),
}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class JointSettings(GymnasiumSettings):
    """The same copies as Gymnasium's: in each, all agents act together."""

    agent_masks: MaskRule | None = None
    """Where an agent's info has its masks; those of all agents are a method's."""

    @classmethod
    def of(cls, settings: PettingZooSettings) -> "JointSettings":
        """The copies that `settings` describe."""
        same = {one.name: getattr(settings, one.name) for one in fields(settings)}
        return cls(**{**same, "world": "gymnasium", "masks": None}, agent_masks=settings.masks)


class JointEnv(gymnasium.Env[Any, Any]):
    """A parallel environment in which all agents act together, by a Dict of their actions.

    An agent that takes no part, not yet or no longer, idles: it is shown zeros, gains nothing, and
    its action is left out. The episode ends when no agent takes part, or at `max_episode_steps`.
    Observations are a Dict of what each agent is shown, and RESULTS [NUMBERS x A].
    """

    def __init__(self, settings: JointSettings) -> None:
        self._settings, self.env = settings, _parallel_env(settings)
        with (
            closed_on_failure(self.close),
            blamed(f"env.id: {settings.id} can't be used:", ConfigurationError),
        ):
            self.render_mode = getattr(self.env, "render_mode", None)
            self._agents = _agents_of(self.env)
            seen = _space_of_all(self.env, "observation", self._agents)
            self._does = _space_of_all(self.env, "action", self._agents)
            shows_masks = isinstance(seen, spaces.Dict) and MASK in seen.spaces
            self._is_masked = shows_masks or settings.agent_masks is not None
            self._seen = _without_masks(seen) if shows_masks else seen
            self._is_bare = shows_masks and self._seen is seen.spaces.get(SEEN)
            self._names = {agent: str(agent) for agent in self._agents}
            results = spaces.Box(-np.inf, np.inf, (NUMBERS * len(self._agents),), np.float64)
            shown = [(name, self._seen) for name in self._names.values()]
            self.observation_space = spaces.Dict([*shown, (RESULTS, results)])
            self.action_space = spaces.Dict([(name, self._does) for name in self._names.values()])
            self.seat_spec = self._seat_spec()
            self._nothing = create_zero_array(self._seen)
        count = len(self._agents)
        self._judge = None if settings.win is None else WinJudge(settings.win)
        self._live: Set[Any] = frozenset()  # agents that take part
        self._shown: dict[str, Any] = {}
        self._infos: dict[Any, Mapping[str, Any]] = {}  # of the last step of each
        self._results = [[0.0] * count for _ in range(NUMBERS)]
        self._masks = np.ones((count, sum(self.seat_spec.branches)), np.bool_)
        self._steps = [0] * count  # in which each took part
        self._cut_off = [False] * count  # by the last of these
        self._made = 0

    def _seat_spec(self) -> WorldSpec:
        """What an agent sees and does, as the spec of a world."""
        seat: Env = gymnasium.Wrapper(self)
        seat.observation_space, seat.action_space = self._seen, self._does
        spec = environment_shape(seat, replace(self._settings, masks=self._settings.agent_masks))
        return replace(spec, agents=len(self._agents), abilities=spec.abilities - {"goals"})

    @property
    def unwrapped(self) -> Any:
        """The parallel environment below its wrappers, whose code messages name."""
        return getattr(self.env, "unwrapped", self.env)

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether the parallel environment or a wrapper of it has `name`."""
        if name == "action_masks":
            return self._is_masked
        return _owner(self.env, name) is not None

    def get_wrapper_attr(self, name: str) -> Any:
        """What the outermost of these has."""
        return getattr(self if name == "action_masks" else _owner(self.env, name), name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set it there; False where none has it."""
        del force
        if (owner := _owner(self.env, name)) is None:
            return False
        setattr(owner, name, value)
        return True

    def seen_parts(self, told: ObservationParts) -> ObservationParts:
        """`told` of an agent's entries, as said of every agent's."""

        def named(entry: str) -> list[str]:
            inner = (
                f"_{entry}" if isinstance(self._seen, spaces.Dict) else entry[len(OBSERVATION) :]
            )
            return [f"{name}{inner}" for name in self._names.values()]

        return ObservationParts(
            drop=tuple(name for one in told.drop for name in named(one)),
            flatten=tuple(name for one in told.flatten for name in named(one)),
            pictures={name: form for one, form in told.pictures.items() for name in named(one)},
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What all agents see first, and an empty info."""
        observations, infos = _dicts("reset", self.env.reset(seed=seed, options=options))
        count = len(self._agents)
        self._results = [[0.0] * count for _ in range(NUMBERS)]
        self._steps, self._cut_off, self._made = [0] * count, [False] * count, 0
        self._masks[:], self._infos = True, {}
        self._live = set(self._present())
        if not self._live:
            raise MisfitError("left env.agents empty, so that no agent takes part")
        self._show(observations, infos, set())
        return self._observation(), {}

    def step(self, action: Mapping[str, Any]) -> tuple[dict[str, Any], float, bool, bool, Any]:
        """What all agents see, the first one's reward, whether no agent takes part any more."""
        acting = self._live
        given = {agent: action[self._names[agent]] for agent in self._present()}
        observations, rewards, terminations, truncations, infos = _dicts(
            "step", self.env.step(given)
        )
        self._made += 1
        is_last = self._made == self._settings.max_episode_steps
        over = {agent for ends in (terminations, truncations) for agent in ends if ends[agent]}
        live = set(self._present()) - over
        self._results[REWARD] = rewarded = [0.0] * len(self._agents)
        self._results[CUT_OFF] = cut_off = [0.0] * len(self._agents)
        for place, agent in enumerate(self._agents):
            if agent not in acting:
                continue
            gained = reward_of(_entry(rewards, "reward", agent))
            if not abs(gained) < LARGEST_REWARD:
                raise MisfitError(f"gave {agent} a reward of {gained:g}")
            terminated = bool(_entry(terminations, "termination", agent))
            truncated = bool(_entry(truncations, "truncation", agent))
            if not (terminated or truncated or agent in live):
                raise MisfitError(
                    f"took {agent} out of env.agents with neither termination nor truncation"
                )
            self._cut_off[place] = (truncated and not terminated) or (is_last and agent in live)
            rewarded[place], cut_off[place] = gained, float(self._cut_off[place])
            self._results[RETURN][place] += gained
            self._steps[place] += 1
        self._live = set() if is_last else live
        self._show(observations, infos, acting)
        if not self._live:
            self._judge_all()
        first = self._infos.get(self._agents[0], {})
        return self._observation(), rewarded[0], not self._live, False, first

    def action_masks(self) -> list[Any]:
        """The masks of all agents, one after the other."""
        return list(self._masks)

    def render(self) -> Any:
        """As the parallel environment."""
        return self.env.render()

    def close(self) -> None:
        """Close the parallel environment."""
        self.env.close()

    def _present(self) -> list[Any]:
        """The agents that the environment says take part."""
        present = list(self.env.agents)
        for agent in present:
            if agent not in self._names:
                raise MisfitError(f"has the agent {agent}, which possible_agents does not name")
        return present

    def _show(self, observations: Mapping[Any, Any], infos: Any, acted: Set[Any]) -> None:
        """Keep what is known to the agents that take part, or did in the episode's last step."""
        watching = self._live or acted
        for place, agent in enumerate(self._agents):
            name = self._names[agent]
            if agent in acted or agent in self._live:
                info = infos.get(agent)
                if info is not None and not isinstance(info, Mapping):
                    raise MisfitError(f"gave {agent} an info that is not a dict")
                self._infos[agent] = info or {}
            if agent not in self._live:
                self._masks[place] = True
            if agent not in watching or (agent not in self._live and agent not in observations):
                self._shown[name] = self._nothing  # some show no more to those that have just ended
                continue
            seen = _entry(observations, "observation", agent)
            self._shown[name] = seen[SEEN] if self._is_bare else seen
            if agent in self._live and self._is_masked:
                with _said_of(agent):
                    self._keep_masks(place, seen, self._infos[agent])

    def _keep_masks(self, place: int, seen: Any, info: Mapping[str, Any]) -> None:
        """Keep the masks of an agent; an info that has none changes nothing."""
        rule = self._settings.agent_masks
        if rule is None:
            given = seen[MASK]
        elif (given := info_entry(info, rule.info)) is None and self._steps[place] == 0:
            raise MisfitError(f"gave no {rule.info!r} in its info, which env.masks.info names")
        if given is not None:
            self._masks[place] = flat_masks(given, self.seat_spec)

    def _judge_all(self) -> None:
        """Say of each agent that took part whether it has won, by its own last step."""
        if self._judge is None:
            return
        for place, agent in enumerate(self._agents):
            steps = self._steps[place]
            with _said_of(agent):
                self._results[WON][place] = steps > 0 and self._judge.is_won(
                    self._infos[agent],
                    truncated=self._cut_off[place],
                    total=self._results[RETURN][place],
                    length=steps,
                )

    def _observation(self) -> dict[str, Any]:
        return {**self._shown, RESULTS: [*chain.from_iterable(self._results)]}


def _parallel_env(settings: JointSettings) -> Any:
    """What `settings.id` makes. Raises ConfigurationError, in a line, for all else."""
    if find_spec("pettingzoo") is None:
        what = "world pettingzoo needs PettingZoo: pip install 'aimbot-lab[pettingzoo]'"
        raise ConfigurationError(f"env.world: {what}")
    from pettingzoo.utils.env import AECEnv

    module, _, name = settings.id.partition(":")
    make = getattr(imported(module, "env.id: "), name or PARALLEL, None)
    if not callable(make):
        what = f"{module} has no {name or PARALLEL}: give module:function, which makes one"
        raise ConfigurationError(f"env.id: {what}")
    with blamed(f"env.id: {settings.id} can't be made:", ConfigurationError):
        env = make(**settings.kwargs)
    with closed_on_failure(getattr(env, "close", lambda: None)):
        if isinstance(env, AECEnv):
            raise ConfigurationError(
                f"env.id: {settings.id} makes an environment of turns (AECEnv): take its module's "
                "parallel_env, or a function of your own that returns "
                "pettingzoo.utils.aec_to_parallel(env)"
            )
        with blamed(f"env.id: {settings.id} can't be used:", ConfigurationError):
            missing = [name for name in NEEDED if not hasattr(env, name)]
        if missing:
            raise ConfigurationError(
                f"env.id: {settings.id} makes a {type(env).__name__} that has no {missing[0]}; a "
                f"ParallelEnv of PettingZoo has {', '.join(NEEDED)} before the first reset"
            )
    return env


def _agents_of(env: Any) -> list[Any]:
    """All agents that may take part, in order."""
    agents = list(env.possible_agents)
    names = {*map(str, agents), RESULTS}
    if not agents or len(names) <= len(agents):
        shown = ", ".join(map(str, agents)) or "none"
        raise ConfigurationError(
            f"env.id: its possible_agents must name at least one, each once, none {RESULTS} (there "
            f"are {shown})"
        )
    return agents


def _space_of_all(env: Any, noun: str, agents: Sequence[Any]) -> Any:
    """The space that all agents have. Raises ConfigurationError where they have several."""
    found = [getattr(env, f"{noun}_space")(agent) for agent in agents]
    for agent, space in zip(agents, found, strict=True):
        if not isinstance(space, spaces.Space):
            what = f"{type(space).__module__}.{type(space).__name__}"
            raise ConfigurationError(
                f"env.id: the {noun} space of {agent} is a {what}; it must be one of "
                "gymnasium.spaces"
            )
        if space != found[0]:
            first, other = (shortened(one_line(str(one)), 60) for one in (found[0], space))
            raise ConfigurationError(
                f"env.id: {agents[0]} and {agent} have different {noun} spaces ({first} and "
                f"{other}), and one policy plays all agents: make them equal, as supersuit's "
                f"{PADDING[noun]} does"
            )
    return found[0]


def _without_masks(space: spaces.Dict) -> spaces.Space[Any]:
    """`space` without its masks; what is left is an entry alone where that is all."""
    rest = [(key, one) for key, one in space.spaces.items() if key != MASK]
    return rest[0][1] if [key for key, _ in rest] == [SEEN] else spaces.Dict(rest)


def _owner(env: Any, name: str) -> Any:
    """`env` or the outermost environment that it wraps which has `name` itself; None: none has."""
    while env is not None and name not in vars(env) and not hasattr(type(env), name):
        env = vars(env).get("env")
    return env


def _dicts(call: str, given: Any) -> Sequence[Mapping[Any, Any]]:
    """What `call` gave, if that is as PettingZoo has it."""
    names = GIVEN[call]
    fits = isinstance(given, tuple) and len(given) == len(names)
    if not fits or not all(isinstance(one, Mapping) for one in given):
        raise MisfitError(f"must return ({', '.join(names)}), each a dict by agent")
    found: Sequence[Mapping[Any, Any]] = given
    return found


def _entry(given: Mapping[Any, Any], noun: str, agent: Any) -> Any:
    if agent not in given:
        raise MisfitError(f"gave no {noun} of {agent}, which takes part")
    return given[agent]


@contextmanager
def _said_of(agent: Any) -> Iterator[None]:
    """Have what does not fit name the agent."""
    try:
        yield
    except MisfitError as error:
        raise MisfitError(f"{error} (agent {agent})") from error


@new_environment.register
def _(settings: JointSettings) -> Env:
    """A parallel environment, all agents of which act together."""
    return JointEnv(settings)
