"""A training as a run's request asks for it, before the run is opened."""

from aimbot_lab.experiment.runs.plan import cost_of
from aimbot_lab.experiment.runs.request import RunRequest
from aimbot_lab.experiment.runs.starting import (
    InitialAgent,
    check_compatible,
    stored_initial_agent,
)
from aimbot_lab.foundation.world import closed_on_failure
from aimbot_lab.training.actors.group import ActorGroup
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.processes.exchange import Exchange
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import evaluated, with_rows


def prepared(
    request: RunRequest,
    observer: Observer,
    exchange: Exchange,
    *,
    actors: ActorGroup | None = None,
) -> Training:
    """The training of this process, with the agent that it begins with; `actors` play for it.

    Raises ConfigurationError for what it can't be begun with.
    """
    config, start = request.curriculum.config, start_of(request)
    if start is not None:
        check_compatible(start, config)
    if config.evaluation is not None:  # whose world is made only while the run trains
        with_rows(evaluated(config.env), config.evaluation.episodes)
    cost = cost_of(config)
    if cost.costly:
        observer.notice(str(cost))
    observer.stage("preparing the simulator (compiled once, then kept)")
    parts = config.seed, config.env, config.lessons, config.train
    plan = TrainingPlan(*parts, config.forgetting, config.evaluation, config.self_play)
    training = Training(plan, exchange=exchange, group=actors)
    with closed_on_failure(training.close):
        for remark in training.remarks:
            observer.notice(remark)
        if start is not None:
            training.start_from(start.saved.agent)
    return training


def start_of(request: RunRequest) -> InitialAgent | None:
    """The agent to begin with; of a run that is resumed, the one that it began with."""
    if request.resume is None:
        return request.start
    ref = request.resume.record.start
    return None if ref is None else stored_initial_agent(request.resume.folder.checkpoints, ref)
