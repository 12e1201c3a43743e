"""A package's world that misbehaves in the way that `env.how` names, from step `after` on."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.settings import STRICT, Ge, Int, dataclass
from aimbot_lab.foundation.world import BatchWorld, StepBuffers, WorldSpec
from aimbot_lab.foundation.world_type import MakePlayer
from tests.worlds.race import Race, race_spec
from tests.worlds.stranger import WalkType


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnrulySettings:
    world: Literal["unruly"] = "unruly"
    num_envs: Annotated[Int, Ge(1)] = 4
    how: str = ""
    after: Int = 3

    def __post_init__(self) -> None:
        if self.how == "settings raise":
            raise KeyError("not today")


class UnrulyType(WalkType):
    name, settings = "unruly", UnrulySettings

    def spec(self, settings: UnrulySettings) -> WorldSpec:
        return race_spec(1)

    def make(self, settings: UnrulySettings) -> BatchWorld:
        rows = settings.num_envs + (settings.how == "rows")
        return Unruly(rows, settings.how, settings.after)

    def targets(self, settings: UnrulySettings | None) -> Any:
        how = settings.how if settings else ""
        if how == "targets raise":
            raise RuntimeError("not today\nnor tomorrow")
        others = {"targets none": None, "targets of no number": {"right": "0"}}
        return {**others, "other targets": {"left": 0}}.get(how, {"right": 0})

    def baselines(self, settings: UnrulySettings) -> Mapping[str, MakePlayer]:
        if settings.how == "baselines raise":
            raise ZeroDivisionError
        if settings.how == "player raises":
            return {"mine": lambda world, seed: [][seed]}
        return {} if settings.how != "baselines none" else None  # type: ignore[return-value]

    def parameters(self, settings: UnrulySettings | None) -> Any:
        return ["wind"] if settings and settings.how == "parameters" else None

    def parameter_fault(self, name: str, value: Any, settings: Any) -> str | None:
        if settings and settings.how == "parameter_fault raises":
            raise IndexError(name)
        return None

    def reward_bound(self, settings: UnrulySettings) -> float:
        return float("nan") if settings.how == "reward_bound" else 1.0


class Unruly(Race):
    def __init__(self, rows: int, how: str, after: int) -> None:
        super().__init__(rows)
        self.how, self.after = how, after

    def reset(self, seed: int, observations: np.ndarray) -> None:
        if self.how == "reset raises":
            raise OSError("no such level")
        super().reset(seed, observations)
        if self.how == "reset gives nan":
            observations[0, 1] = np.nan

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> EpisodeBatch:
        batch = super().step(actions, buffers)
        self.after -= 1
        if self.after > 0:
            return batch
        match self.how:
            case "step raises":
                return {}["nothing"]
            case "interrupt":
                raise KeyboardInterrupt
            case "nan":
                buffers.observations[1, 0] = np.nan
            case "last nan":
                buffers.final_observations[buffers.finished, 0] = -np.inf
            case "reward":
                buffers.rewards[2] = np.inf
            case "nothing":
                return None  # type: ignore[return-value]
            case "running":
                return batch._replace(running_order=batch.running_order[1:])
            case "unsaid":
                buffers.finished[:] = True
            case _ if batch:
                return self.wrong(batch)
        return batch

    def wrong(self, batch: EpisodeBatch) -> EpisodeBatch:
        count = len(batch.cell)
        changed: dict[str, dict[str, Any]] = {
            "column": {"columns": {}},
            "column's shape": {"columns": {"farthest": np.zeros((count, 2))}},
            "terms": {"terms": batch.terms[:, :0]},
            "length": {"length": batch.length.astype(np.float64)},
            "outcome": {"outcome": batch.outcome + np.int8(5)},
            "cell": {"cell": (("left", 0),) * count},
            "row": {"row": [0] * count},
        }
        return batch._replace(**changed.get(self.how, {}))


UNRULY = UnrulyType()
