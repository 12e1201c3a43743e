"""How a learner plays against itself; names are ML-Agents' where it has one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from aimbot_lab.foundation.settings import STRICT, Float, Ge, Gt, Int, Le, dataclass


def _kind_of_window(value: object) -> str | None:
    if value == "all":
        return "word"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else None


Window = Annotated[
    Annotated[Annotated[Int, Ge(1)], Tag("number")] | Annotated[Literal["all"], Tag("word")],
    Discriminator(
        _kind_of_window,
        custom_error_type="window_type",
        custom_error_message="must be a whole number or 'all'",
    ),
]
Elo = Annotated[Float, Ge(-1e6), Le(1e6)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Newest:
    """The newest snapshots of all, whatever the window."""

    share: Annotated[Float, Gt(0), Le(1)] = 0.5
    """Of all snapshots."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Prioritised:
    """Prioritised fictitious self-play."""

    weighting: Literal["hard", "even"] = "hard"
    """`hard`: mostly those that the learner loses to; `even`: mostly those that are its match."""
    power: Annotated[Float, Ge(0), Le(16)] = 2.0
    """Of the hard weighting."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NearRating:
    """Snapshots by how far their rating is from the learner's."""

    spread: Annotated[Float, Gt(0), Le(1e6)] = 200.0
    """Standard deviation in rating points."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplingByNewest:
    """`{newest: {...}}`."""

    newest: Newest
    """Which of them."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplingByScore:
    """`{pfsp: {...}}`."""

    pfsp: Prioritised
    """How scores weigh."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplingByRating:
    """`{rating: {...}}`."""

    rating: NearRating
    """How near."""


def _kind_of_sampling(value: object) -> str | None:
    if value == "uniform":
        return "uniform"
    for name, kind in SAMPLINGS.items():
        if isinstance(value, kind) or (isinstance(value, Mapping) and set(value) == {name}):
            return name
    return None


SAMPLINGS: Mapping[str, type] = MappingProxyType(
    {"newest": SamplingByNewest, "pfsp": SamplingByScore, "rating": SamplingByRating}
)
Sampling = Annotated[
    Annotated[Literal["uniform"], Tag("uniform")]
    | Annotated[SamplingByNewest, Tag("newest")]
    | Annotated[SamplingByScore, Tag("pfsp")]
    | Annotated[SamplingByRating, Tag("rating")],
    Discriminator(
        _kind_of_sampling,
        custom_error_type="sampling_type",
        custom_error_message="must be uniform, or a mapping with newest, pfsp or rating",
    ),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SelfPlaySettings:
    """Matches against oneself: as one is (mirrored), and as one was (snapshots)."""

    save_steps: Annotated[Int, Ge(1)] = 500_000
    """Environment steps between two snapshots. One is taken where a rollout begins, one of the
    untrained agent, and one where a lesson begins."""
    window: Window = 10
    """How many of the newest snapshots are drawn from, or `all`."""
    play_against_latest_model_ratio: Annotated[Float, Ge(0), Le(1)] = 0.5
    """Share of the matches that are mirrored: both agents are the present one, and both learn. The
    learner has so many rows more than `env.num_envs`."""
    swap_steps: Annotated[Int, Ge(1)] = 100_000
    """Environment steps for which the same snapshots are drawn from."""
    at_once: Annotated[Int, Ge(1), Le(64)] = 8
    """How many snapshots are drawn from in that time, at most."""
    initial_elo: Elo = 1200.0
    """Rating of the first snapshot, from which all others are counted."""
    sampling: Sampling = "uniform"
    """How those are drawn. `uniform`: each snapshot of the window alike. `{newest: {share: 0.5}}`:
    each of the newest share of all snapshots alike. `{pfsp: {weighting: hard, power: 2}}`: by
    (1 - p)^power of the learner's expected score p against each, or by p (1 - p) where the
    weighting is `even`. `{rating: {spread: 200}}`: those whose rating is near the learner's. Each
    candidate keeps at least 2 %."""
