"""How a learner plays against itself; names are ML-Agents' where it has one."""

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from aimbot_lab.foundation.settings import STRICT, Float, Ge, Int, Le, dataclass


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
    sampling: Literal["uniform"] = "uniform"
    """How those are drawn: `uniform`, each snapshot of the window alike."""
