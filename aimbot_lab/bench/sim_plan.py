"""How much a benchmark measures, and how long."""

from dataclasses import dataclass, field

from aimbot_lab.worlds.registry import default_type, world_types


def other_worlds() -> tuple[str, ...]:
    """The worlds that are measured beside the one that is meant where none is named."""
    usual = default_type().name
    return tuple(name for name, one in world_types().items() if one.benched and name != usual)


@dataclass(frozen=True)
class BenchPlan:
    """What `bench_sim` measures."""

    targets: tuple[str, ...] = field(default_factory=lambda: (*default_type().targets(None),))
    others: tuple[str, ...] = field(default_factory=other_worlds)
    """Worlds of which the hardest target is measured, too."""
    num_envs: tuple[int, ...] = (1, 16, 256, 1024, 4096)
    threads: tuple[int, ...] = (1, 2)
    repeats: int = 25  # of each measurement; the best one counts
    seconds: float = 0.02  # of one repeat: short, so that a busy machine leaves some in peace
    mixed_num_envs: int = 1024  # rows in which the step is taken apart
    mixed_repeats: int = 120  # in which the best counts, of each part and of plain Python
    plain_num_envs: int = 24  # rows of the plain Python version
    plain_seconds: float = 0.004  # that one repeat of it takes
    starts: bool = True  # measure a cold and a cached start


FULL = BenchPlan()
QUICK = BenchPlan(
    num_envs=(1, 16),
    threads=(1,),
    repeats=1,
    seconds=0.01,
    mixed_num_envs=64,
    mixed_repeats=1,
    plain_num_envs=6,
    starts=False,
)
