"""`bench peer`: two trainings of a Gymnasium environment to the same proof, by turns.

A curriculum by hybrid_ppo, and plain stable-baselines3.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from statistics import median
from typing import Any

from aimbot_lab.bench.turns import Report, Say, Table, turns
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.plain_ppo import PlainOutcome, learn_plain_ppo
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training

OURS, THEIRS = "curriculum", "stable-baselines3"


def bench_peer(plan: TrainingPlan, *, seeds: int, say: Say) -> Report:
    """Both trainings for each of so many seeds; the curriculum's is compiled before the first."""
    learners = {OURS: _ours, THEIRS: learn_plain_ppo}
    _ours(replace(plan, train=replace(plan.train, total_steps=1)))
    done = []
    for turn, learner in turns(learners, seeds, alternate=False):
        seed = plan.seed + turn
        found = learners[learner](replace(plan, seed=seed))
        say(f"seed {seed}, {learner}: {found.seconds:.1f} s")
        about = {"learner": learner, "seed": seed, "steps": found.steps}
        done.append({**about, "seconds": found.seconds, "passed": found.passed})
    times = ratio(done)
    line = "no seed with which both passed" if times is None else f"{times:.1f} (median over seeds)"
    text = f"seconds of {THEIRS} over those of the curriculum: {line}"
    title = "Until the proof of the last lesson, or until the steps were spent"
    return Report({"trainings": done, "ratio": times}, [Table(title, done), text])


def _ours(plan: TrainingPlan) -> PlainOutcome:
    training = Training(plan)
    with closing(training):
        ended = training.learn(MemoryTracker(), SilentObserver(), lambda: False)
    return PlainOutcome(ended.steps, ended.seconds, training.progress.finished)


def ratio(done: Sequence[Mapping[str, Any]]) -> float | None:
    """Median over seeds of plain stable-baselines3's seconds over the curriculum's.

    Of the seeds with which both passed; None: there is none.
    """
    passed = {(one["learner"], one["seed"]): one["seconds"] for one in done if one["passed"]}
    pairs = [
        theirs / passed[OURS, seed]
        for (learner, seed), theirs in passed.items()
        if learner == THEIRS and (OURS, seed) in passed
    ]
    return median(pairs) if pairs else None
