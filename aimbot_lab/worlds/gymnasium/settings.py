"""Which Gymnasium environment is meant, how many copies of it, and what counts as winning it."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from aimbot_lab.foundation.settings import STRICT, Float, Ge, Gt, Int, Le, dataclass

TARGET = "task"
"""The one target: Gymnasium's environments have no others."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WinRule:
    """What counts as a won episode: exactly one of these."""

    return_above: Annotated[Float, Ge(-1e12), Le(1e12)] | None = None
    """The sum of its rewards is this or more."""
    length_above: Annotated[Int, Ge(1), Le(2**31)] | None = None
    """It lasted this many steps or more."""
    info: Annotated[str, MinLen(1)] | None = None
    """The last step's info has a true value under this key, such as is_success; dots lead into
    dicts: episode.success."""
    terminated: Literal["win", "loss"] | None = None
    """How it ended: `win` if termination by the environment's rules is a win and truncation is not;
    `loss` the other way round."""

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        if len(given) != 1:
            names = ", ".join(one.name for one in fields(self))
            raise ValueError(f"must have exactly one of {names} (got {', '.join(given) or 'none'})")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MaskRule:
    """Where to find the masks of an environment without a method action_masks."""

    info: Annotated[str, MinLen(1)]
    """Key of the masks in the info of reset and of steps, such as action_mask; dots lead into
    dicts. A step whose info has none leaves them unchanged."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ObservationParts:
    """How entries of an observation are shown. Entries are named by their keys, inner ones by their
    path, such as eyes_left; an observation that is not a Dict or Tuple is called obs."""

    drop: tuple[str, ...] = ()
    """Entries that are left out, such as MiniGrid's mission."""
    flatten: tuple[str, ...] = ()
    """Pictures to treat as plain numbers."""
    pictures: Mapping[str, Literal["hwc", "chw", "hw"]] = field(default_factory=dict)
    """Entries that are pictures, with the order of height, width and channels: for those that are
    not uint8 from 0 to 255 (their range is divided into 256 shades), and those whose channels are
    not in the smallest of three axes."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WrapperSettings:
    """A wrapper of each environment."""

    wrapper: Annotated[str, MinLen(1)]
    """A name of gymnasium.wrappers, such as RescaleAction, or `module:Class` of your own."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its constructor, after the environment."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GymnasiumSettings:
    """Copies of a Gymnasium environment."""

    world: Literal["gymnasium"] = "gymnasium"
    """The world."""
    id: Annotated[str, MinLen(1)]
    """The environment's id, such as CartPole-v1."""
    win: WinRule | None = None
    """What counts as a won episode; left out, none is won, and returns alone are shown."""
    module: Annotated[str, MinLen(1)] | None = None
    """A module to import first, which registers the environment; it may lie in the working
    directory."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the environment is made with."""
    max_episode_steps: Annotated[Int, Ge(1), Le(2**31)] | None = None
    """Steps after which an episode is cut off; left out, as the environment is registered."""
    masks: MaskRule | None = None
    """Where its action masks are; left out, its method action_masks or a wrapper's, if there is
    one."""
    observation: ObservationParts = ObservationParts()
    """What of its observation is seen, and as what."""
    wrappers: tuple[Annotated[str, MinLen(1)] | WrapperSettings, ...] = ()
    """Wrappers from the inside out: names, or a name as `wrapper` with its `kwargs`."""
    atari: bool = False
    """An Atari game as stable-baselines3's AtariWrapper shows it, four frames at once: a life's end
    is an end for the learner alone, an episode is a game, and returns are of unclipped rewards."""
    frame_stack: Annotated[Int, Ge(1), Le(64)] | None = None
    """How many observations are shown at once, the oldest first; by default one, for Atari four."""
    remake: bool = False
    """Whether each episode begins in a newly made environment, for one that carries something from
    one episode to the next. Making it takes time in every episode."""
    num_envs: Annotated[Int, Ge(1), Le(4096)] = 16
    """Copies, one row each; by default one with the algorithms of stable-baselines3 and
    sb3-contrib, as in their scripts."""
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
