"""Q-learning with a table, for worlds whose states are numbered."""

from math import prod
from typing import Any

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.algorithm import Algorithm, Arguments, Classes, same_names
from aimbot_lab.training.algorithms.replay_buffer_algorithms import flat_adapter
from aimbot_lab.training.settings import TrainSettings


def _q_learning() -> Classes:
    from aimbot_lab.training.tabular.table_policy import TablePolicy
    from aimbot_lab.training.tabular.table_q_learning import TableQLearning

    return Classes(TableQLearning, TablePolicy)


def table_policy(_: Any, spec: WorldSpec) -> Arguments:
    """The states that the table has rows for."""
    return {"states": spec.states}


def table_size(settings: TrainSettings, spec: WorldSpec) -> int:
    """Values of the table: one for each combination of choices in each state."""
    actions = prod(spec.branches) * len(settings.aim_bins) ** spec.continuous
    return 0 if spec.states is None else spec.states.size * actions


Q_LEARNING = Algorithm(
    name="q_learning",
    classes=_q_learning,
    shared=same_names("n_steps", "learning_rate", "gamma"),
    adapter=flat_adapter,
    ranks_actions=True,
    fixed=frozenset({"support_multi_env", "monitor_wrapper", "use_sde", "sde_sample_freq"}),
    more_policy=table_policy,
    table=table_size,
)
