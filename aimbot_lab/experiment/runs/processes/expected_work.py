"""What a training's rollout consists of, worked out before anything is made, for the forecast."""

from aimbot_lab.training.algorithms.rollout_algorithms import shard_count
from aimbot_lab.training.networks.parts.network_summary import network_summary
from aimbot_lab.training.processes.forecast import Work
from aimbot_lab.training.processes.sharing import Shareable
from aimbot_lab.worlds.registry import seats_in, spec_of, type_of


def work_of(plan: Shareable) -> Work:
    """What a rollout and its update consist of."""
    train, rows = plan.train, seats_in(plan.env)
    parts = network_summary(train, spec_of(plan.env))
    samples = rows * train.n_steps * train.samples.keep
    return Work(
        rows=rows,
        shards=shard_count(train, type_of(plan.env).rows(plan.env)),
        steps=train.n_steps,
        epochs=train.n_epochs,
        minibatches=-(-samples // train.batch_size),
        weights=sum(part.weights for part in parts),
    )
