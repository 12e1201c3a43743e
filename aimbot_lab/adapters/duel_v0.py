"""The duel as an environment of PettingZoo: both agents at once, or one after the other.

from aimbot_lab.adapters import duel_v0

env = duel_v0.parallel_env(difficulty=2, time_limit=10.0)
observations, infos = env.reset(seed=1)
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding

from aimbot_lab.adapters.gymnasium_env import checked_render_mode
from aimbot_lab.adapters.spaces import BRANCHES, MOUSE, ActionKind, action_codec, observation_space
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Picture, Scenario, seats_of, step_buffers
from aimbot_lab.worlds.registry import WORLDS, make_world

try:
    from pettingzoo.utils import wrappers
    from pettingzoo.utils.conversions import parallel_to_aec
    from pettingzoo.utils.env import AECEnv, ParallelEnv
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "aimbot_lab.adapters.duel_v0 needs PettingZoo: pip install 'aimbot-lab[pettingzoo]'"
    ) from error

AGENTS = ("home", "away")
LEVELS = 5
MAX_SEEDS = 2**63
Agent = str
PerAgent = dict[Agent, Any]


def parallel_env(
    *,
    difficulty: int | None = None,
    opponent: str | None = None,
    action: ActionKind = "bins",
    aim_bins: Sequence[float] | None = None,
    masks: bool = False,
    render_mode: Literal["rgb_array"] | None = None,
    **settings: Any,
) -> "DuelEnv":
    """The duel of two agents that act at once; `settings` are those of `env` in a curriculum.

    With an `opponent`, such as `still` or `greedy`, that script plays away, and home is the only
    agent. Layouts are of one `difficulty` (1 to 5), or of all. An action is of bins or hybrid, as
    in the Gymnasium environments. Masks are in every info, in the form in which the action space
    samples by them, and with `masks` also in the observation, which is then a `Dict`.
    Raises ConfigurationError for what the duel does not have.
    """
    if difficulty is not None and difficulty not in range(1, LEVELS + 1):
        raise ConfigurationError(f"difficulty must be one of 1 to {LEVELS} (got {difficulty!r})")
    return DuelEnv(
        _made(settings, opponent),
        difficulty,
        opponent=opponent,
        action=action,
        aim_bins=aim_bins,
        masks=masks,
        render_mode=render_mode,
    )


def env(**settings: Any) -> "AECEnv[Any, Any, Any]":
    """The same environment with one agent after the other, by PettingZoo's own conversion."""
    return wrappers.OrderEnforcingWrapper(parallel_to_aec(parallel_env(**settings)))


def _made(settings: Mapping[str, Any], opponent: str | None) -> Any:
    fixed = {"world", "num_envs", "threads", "learner"} & settings.keys()
    if fixed:
        raise ConfigurationError(f"{min(fixed)}: is fixed here; leave it out")
    learner = "both" if opponent is None else "home"
    try:
        world = make_world(WORLDS["duel"].settings(num_envs=1, learner=learner, **settings))
    except (TypeError, ValueError) as error:
        what = " ".join(str(error).split())
        raise ConfigurationError(f"duel_v0: {what}") from error
    if opponent is not None and opponent not in world.spec.targets:
        known = ", ".join(world.spec.targets)
        raise ConfigurationError(f"opponent must be one of {known} (got {opponent!r})")
    return world


class DuelEnv(ParallelEnv[Agent, Any, Any]):  # type: ignore[misc]
    """One match of the duel after the other; all agents leave it together."""

    metadata: dict[str, Any] = {  # noqa: RUF012 declared so by pettingzoo, which reads it here
        "name": "duel_v0",
        "render_modes": ["rgb_array"],
        "render_fps": 10,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        world: Any,
        difficulty: int | None,
        *,
        opponent: str | None,
        action: ActionKind,
        aim_bins: Sequence[float] | None,
        masks: bool,
        render_mode: str | None,
    ) -> None:
        self.world, self._shows_masks = world, masks
        self.render_mode = checked_render_mode(render_mode, self.metadata)
        self.possible_agents = list(AGENTS[: seats_of(world)])
        self.agents: list[Agent] = []
        self._codec = action_codec(world.spec, action, aim_bins)
        self._hybrid = action == "hybrid"
        does: Any = self._codec.space
        self._bins = [] if self._hybrid else does.nvec[len(world.spec.branches) :].tolist()
        self._bounds = np.cumsum(world.spec.branches)
        self._buffers = step_buffers(world)
        self._actions = np.zeros((seats_of(world), len(world.spec.branches) + 1), np.float32)
        self._masks = np.zeros((seats_of(world), self._bounds[-1]), np.bool_)
        self._spaces = {agent: self._spaces_of_one() for agent in self.possible_agents}
        self._random, _ = seeding.np_random()
        levels = tuple(float(difficulty in (None, level)) for level in range(1, LEVELS + 1))
        target = opponent or next(iter(world.spec.targets))
        world.set_scenario(Scenario({target: 1.0}, {target: levels}))
        world.keep_endings = render_mode is not None

    def _spaces_of_one(self) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
        """Fresh spaces of what an agent sees and does: each draws from a generator of its own."""
        seen: spaces.Space[Any] = observation_space(self.world.spec)
        if self._shows_masks:
            sizes = (*self.world.spec.branches, *self._bins)
            masks = spaces.Tuple([spaces.MultiBinary(int(size)) for size in sizes])
            seen = spaces.Dict({"observation": seen, "action_mask": masks})
        does = self._codec.space
        if isinstance(does, spaces.Dict):
            return seen, spaces.Dict({name: _copied(one) for name, one in does.items()})
        return seen, _copied(does)

    def observation_space(self, agent: Agent) -> spaces.Space[Any]:
        """What `agent` sees, the same object each time."""
        return self._spaces[agent][0]

    def action_space(self, agent: Agent) -> spaces.Space[Any]:
        """What `agent` may do, the same object each time."""
        return self._spaces[agent][1]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[PerAgent, PerAgent]:
        """(observations, infos) of a match that `seed` alone decides, or one drawn.

        `options` mean nothing here.
        """
        del options
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        self.world.reset(int(self._random.integers(MAX_SEEDS)), self._buffers.observations)
        self.agents = list(self.possible_agents)
        infos = self._infos()
        return self._seen(self._buffers.observations, infos), infos

    def step(
        self, actions: Mapping[Agent, Any]
    ) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """(observations, rewards, terminations, truncations, infos) by agent; {} after the match.

        Raises ActionError for an action that does not exist, which leaves the match as it was.
        """
        if not self.agents:
            return {}, {}, {}, {}, {}
        agents = self.possible_agents
        for seat, agent in enumerate(agents):
            if agent not in actions:
                raise ConfigurationError(f"step: there is no action of agent {agent}")
            self._codec.to_world(actions[agent], self._actions[seat : seat + 1])
        episodes = self.world.step(self._actions, self._buffers)
        buffers, over = self._buffers, bool(episodes)
        infos = self._infos(episodes if over else None)
        shown = buffers.final_observations if over else buffers.observations
        self.agents = [] if over else self.agents
        return (
            self._seen(shown, infos),
            {agent: float(buffers.rewards[seat]) for seat, agent in enumerate(agents)},
            dict.fromkeys(agents, over),
            dict.fromkeys(agents, False),
            infos,
        )

    def _infos(self, episodes: EpisodeBatch | None = None) -> PerAgent:
        """The masks of the present state, and how the match ended, if it did."""
        self.world.action_masks(self._masks)
        infos = {}
        for seat, agent in enumerate(self.possible_agents):
            # When a match is over nothing is chosen any more, and nothing masked.
            row = np.ones_like(self._masks[seat]) if episodes else self._masks[seat]
            infos[agent] = {"action_mask": self._mask(row)}
            if episodes:
                infos[agent]["outcome"] = int(episodes.outcome[seat])
                infos[agent]["is_success"] = bool(episodes.won[seat])
                infos[agent]["terms"] = dict(
                    zip(self.world.spec.reward_terms, episodes.terms[seat].tolist(), strict=True)
                )
        return infos

    def _mask(self, row: np.ndarray) -> Any:
        """The branches' masks in the form in which the action space samples by them."""
        parts = tuple(part.astype(np.int8) for part in np.split(row, self._bounds[:-1]))
        if self._hybrid:
            return {BRANCHES: parts, MOUSE: None}
        return (*parts, *(np.ones(count, np.int8) for count in self._bins))

    def _seen(self, observations: np.ndarray, infos: PerAgent) -> PerAgent:
        agents = self.possible_agents
        found: PerAgent = {agent: observations[at].copy() for at, agent in enumerate(agents)}
        if not self._shows_masks:
            return found
        masks = {
            agent: info["action_mask"][BRANCHES] if self._hybrid else info["action_mask"]
            for agent, info in infos.items()
        }
        return {
            agent: {"observation": found[agent], "action_mask": masks[agent]} for agent in agents
        }

    def render(self) -> Picture | None:
        """The match from above in home's frame; when it is over, how it ended."""
        if self.render_mode is None:
            return None
        picture: Picture = self.world.draw(0, ending=not self.agents)
        return picture

    def close(self) -> None:
        """Nothing to close: the world lives in this process."""


def _copied(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The same space with a generator of its own."""
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec)
    assert isinstance(space, spaces.Box)
    return spaces.Box(space.low, space.high, dtype=np.float32)
