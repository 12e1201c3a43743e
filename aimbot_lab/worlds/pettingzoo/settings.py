"""Which parallel environment of PettingZoo is meant, and how many copies of it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from aimbot_lab.foundation.settings import STRICT, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.worlds.gymnasium.settings import MaskRule, ObservationParts, WinRule


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PettingZooSettings:
    """Copies of a parallel PettingZoo environment; one policy plays all its agents."""

    world: Literal["pettingzoo"] = "pettingzoo"
    """The world."""
    id: Annotated[str, MinLen(1)]
    """`module:function` that makes the environment, such as mpe2.simple_spread_v3:parallel_env; the
    module may lie in the working directory. A module alone means its parallel_env."""
    win: WinRule | None = None
    """When an agent has won, by its own rewards, steps, infos and end; the first agent's win is the
    episode's. By default none wins, and returns are shown."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the environment is made with."""
    max_episode_steps: Annotated[Int, Ge(1), Le(2**31)] | None = None
    """Steps after which an episode is truncated; by default as the environment says."""
    masks: MaskRule | None = None
    """Where an agent's info has its action masks; by default the observation's entry action_mask,
    if there is one."""
    observation: ObservationParts = ObservationParts()
    """Which entries of an agent's observation are shown, and how."""
    num_envs: Annotated[Int, Ge(1), Le(4096)] = 16
    """Copies, one row each; left out, one with the algorithms of stable-baselines3 and
    sb3-contrib."""
    num_eval_envs: Annotated[Int, Ge(1), Le(4096)] | None = None
    """Copies in which agents are judged and recorded, which need not be as many as the episodes; by
    default one for each episode, which is fastest. 1 suits a simulator that is large or may run but
    once."""
    processes: Annotated[Int, Ge(1), Le(256)] = 1
    """Processes that step the copies; 1: the training's own. The bits are the same."""
    timeout_wait: Annotated[Float, Gt(0), Le(1e6)] = 300.0
    """Seconds that a process may take for a step or to begin an episode."""
    via: Literal["attributes", "options"] = "attributes"
    """How a lesson's parameters reach the environment before an episode: as attributes of it or of
    a wrapper, or as options of its reset."""
