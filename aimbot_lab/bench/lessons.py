"""`bench lessons`: a curriculum, and its last lesson alone for as many steps, from the same seeds.

What was measured is kept, a line a training, so that a bench that was broken off goes on where it
stopped.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from aimbot_lab.bench.ablation import spread
from aimbot_lab.bench.train import plan_of
from aimbot_lab.bench.turns import Report, Say, Table, kept, seconds_of
from aimbot_lab.evaluation.temperature import COOLER, LIKELIEST, SAMPLED
from aimbot_lab.experiment.analysis.evaluation import last_lesson, play_task, player_at
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.episodes import student_interval
from aimbot_lab.foundation.named_code import always
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import spec_of

LESSONS, ALONE = "lessons", "last lesson alone"
JUDGED = 987_654  # the seed of the episodes in which agents are judged
EPISODES = 200  # of each cell in them
WAYS = (LIKELIEST, COOLER, SAMPLED)  # how agents play; the last one is what the win rate is of


def bench_lessons(
    files: Sequence[str], overrides: Sequence[str], *, seeds: int, kept_in: Path, say: Say
) -> Report:
    """Train each of `files`, with `overrides`, both ways from the seeds 1 to `seeds`.

    What the file `kept_in` holds is not trained again.
    """
    done, by_way = [], defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for file, seed in product(files, range(1, seeds + 1)):
        loaded = load_curriculum(file, (*overrides, f"seed={seed}"), may_run=always)
        whole = loaded.config
        steps: int | None = None
        for way in (LESSONS, ALONE) if len(whole.lessons) > 1 else (LESSONS,):
            config = whole if way == LESSONS else replace(whole, lessons=whole.lessons[-1:])
            about = {"curriculum": whole.name, "way": way, "seed": seed}
            say(", ".join(map(str, about.values())))
            learn = partial(_learned, config, steps)
            key = {**about, "most": steps, "curriculum": loaded.resolved_text}
            found = kept(kept_in, key, learn)
            done.append({**about, **found})
            by_way[whole.name, way].append(done[-1])
            steps = found["steps"]
    rows = [_of_seeds(runs) for runs in by_way.values()]
    title = (
        f"Steps to the proof of the last lesson (million) and seconds of the processor, median "
        f"[lowest, highest] over seeds 1 to {seeds}; win rate over its cells in {EPISODES} new "
        "episodes of each [95 %], and in the worst cell of all seeds by how the agent plays"
    )
    document = {"episodes": EPISODES, "rows": rows, "trainings": done}
    return Report(document, [Table(title, rows, ("win_rate", "worst_cell"))])


def _learned(config: CurriculumFile, most: int | None) -> dict[str, Any]:
    """A training until its proof, or until as many steps as `most`; then its agent is judged."""
    plan = plan_of(config)
    with closing(Training(plan)) as training:

        def is_over() -> bool:
            return most is not None and training.model.num_timesteps > most  # taken back

        learn = partial(training.learn, MemoryTracker(), SilentObserver(), is_over)
        seconds = seconds_of(learn, time.process_time)
        agent = Agent(training.model.policy, spec_of(plan.env), plan.train)
        task = last_lesson(config, episodes=EPISODES, seed=JUDGED)
        worst = dict[str, float]()
        for way in WAYS if agent.samples else (LIKELIEST,):
            player = player_at(agent, way)
            played = play_task(task, player, on_cell=lambda _: None)
            worst[way.label] = min(float(cell.won.mean()) for cell in played)
        wins = sum(int(cell.won.sum()) for cell in played)
        return {
            "steps": training.model.num_timesteps,
            "reached": training.progress.goal_reached,
            "seconds": seconds,
            "wins": wins / sum(len(cell.won) for cell in played),
            "worst": worst,
        }


def _of_seeds(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What trainings of one curriculum and way come to."""
    steps = spread([one["steps"] / 1e6 if one["reached"] else None for one in runs])
    wins = [one["wins"] for one in runs]
    return {
        "curriculum": runs[0]["curriculum"],
        "way": runs[0]["way"],
        "reached": f"{sum(one['reached'] for one in runs)} of {len(runs)}",
        "steps": steps,
        "seconds": spread([one["seconds"] for one in runs]),
        "win_rate": _mean(wins) if len(wins) > 1 else wins[0],
        "worst_cell": {way.label: _worst(runs, way.label) for way in reversed(WAYS)},
    }


def _worst(runs: Sequence[Mapping[str, Any]], way: str) -> float | None:
    """The lowest win rate of agents that play so; None where they only rank actions."""
    return min((one["worst"][way] for one in runs if way in one["worst"]), default=None)


def _mean(wins: Sequence[float]) -> dict[str, float | None]:
    """With Student's interval, within the bounds of a rate, of which it knows nothing."""
    found = student_interval(wins)._asdict()
    return {key: None if one is None else min(max(one, 0.0), 1.0) for key, one in found.items()}
