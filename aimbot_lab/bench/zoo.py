"""`bench zoo`: our algorithms beside plain scripts of their libraries, by rl-zoo3's numbers.

Rows stand in zoo.yaml. What was measured is kept, a line a training, so that a bench that was
broken off goes on where it stopped.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from aimbot_lab.bench.turns import Report, Say, Table, kept, mean_ratio, turns
from aimbot_lab.experiment.config.checks import validate
from aimbot_lab.experiment.config.yaml_reader import read_mapping, shown_path
from aimbot_lab.experiment.conversion.rl_zoo import curriculum_of
from aimbot_lab.foundation.episodes import student_interval
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.algorithms.registry import LIBRARY_PPO
from aimbot_lab.training.plain_scripts import EpisodeReturns, learn_entry
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training

FILE = Path(__file__).with_name("zoo.yaml")
SCRIPT, OURS, HYBRID = "script", "ours", "hybrid_ppo"
LAST = 100  # episodes of a training whose mean return counts


class Row(NamedTuple):
    """An environment, an algorithm, and the hyper-parameters of both sides."""

    name: str
    env: str
    algo: str
    steps: int
    entry: Mapping[str, Any]

    @property
    def sides(self) -> tuple[str, ...]:
        """What is compared; hybrid_ppo where its networks can be those of ppo."""
        fits = self.algo == "ppo" and "policy_kwargs" not in self.entry
        return (SCRIPT, OURS, HYBRID) if fits else (SCRIPT, OURS)


def known_rows() -> dict[str, Row]:
    """Those of zoo.yaml, by name."""
    data = read_mapping(FILE.read_text(encoding="utf-8"), FILE.name, form="rows by name").data
    return {name: Row(name, **row) for name, row in data.items()}


def bench_zoo(names: Sequence[str], *, seeds: int, kept_in: Path, say: Say) -> Report:
    """Train each side of the rows `names`, of all without any, from `seeds` seeds by turns.

    What the file `kept_in` holds is not trained again. Raises ConfigurationError for a row that
    is not known, or whose environment is not installed.
    """
    rows = known_rows()
    if unknown := [name for name in names if name not in rows]:
        raise ConfigurationError(
            f"--row {unknown[0]}: there is no such row; there are {', '.join(rows)}"
        )
    found = []
    for row in [rows[name] for name in names or rows]:
        done: dict[str, list[dict[str, Any]]] = {side: [] for side in row.sides}
        for turn, side in turns(row.sides, seeds):
            say(f"{row.name}, seed {turn + 1}: {side}")
            about = {"row": row._asdict(), "side": side, "seed": turn + 1}
            done[side].append(kept(kept_in, about, partial(_measured, row, side, turn + 1)))
        found.append({"row": row.name, "steps": row.steps, "seeds": seeds, **dict(_compared(done))})
    title = f"Mean return of the last {LAST} episodes, and processor's time over the script's"
    return Report({"rows": found}, [Table(title, found)])


def _measured(row: Row, side: str, seed: int) -> dict[str, Any]:
    """Return and seconds of one training."""
    if side == SCRIPT:
        returns, seconds = learn_entry(row.env, row.algo, row.entry, steps=row.steps, seed=seed)
    else:
        returns, seconds = _learned(row, side, seed)
    last = returns[-LAST:]
    about = {"row": row.name, "side": side, "seed": seed, "episodes": len(returns)}
    return {**about, "return": fmean(last) if last else None, "seconds": seconds}


def training_plan(row: Row, side: str, seed: int) -> TrainingPlan:
    """What our `side` trains: the row as `convert` writes it.

    hybrid_ppo has the defaults of the library's PPO where the row says nothing.
    """
    data = curriculum_of(row.env, row.algo, {**row.entry, "n_timesteps": row.steps})
    if side == HYBRID:
        data["train"] = {**LIBRARY_PPO, **data["train"], "algo": HYBRID}
    config, faults = validate(data, may_run=always)
    if config is None:
        raise ConfigurationError(
            *(f"{row.name}: {shown_path(fault.path)}: {fault.what}" for fault in faults)
        )
    config = config.resolved(own_layers="layers" in data["train"].get("network", {}))
    return TrainingPlan(seed, config.env, config.lessons, config.train)


def _learned(row: Row, side: str, seed: int) -> tuple[list[float], float]:
    """As `learn_entry`, by a curriculum of ours."""
    returns = EpisodeReturns()
    with closing(Training(training_plan(row, side, seed), callbacks=[returns])) as training:
        begun = time.process_time()
        training.learn(MemoryTracker(), SilentObserver(), lambda: False)
    return returns.returns, time.process_time() - begun


def _compared(done: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, Any]]:
    """Of each side the mean return over seeds, and its time over the script's."""
    for side, runs in done.items():
        ended = [one["return"] for one in runs if one["return"] is not None]
        yield side, student_interval(ended)._asdict() if len(ended) > 1 else (ended or [None])[0]
    for side, runs in done.items():
        if side != SCRIPT:
            pairs = zip(runs, done[SCRIPT], strict=True)
            ratios = [ours["seconds"] / script["seconds"] for ours, script in pairs]
            yield f"time_of_{side}", mean_ratio(ratios) if len(ratios) > 1 else ratios[0]
