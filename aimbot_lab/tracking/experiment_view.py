"""How MLflow's page shows an experiment of ours: as one of training, with win rates in its list."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from aimbot_lab.foundation import metric_names as names

VIEW = "aimbot-lab"
_COLUMNS = (
    f"metrics.`{names.LEARNING_WIN_RATE}`",
    f"metrics.`{names.EVAL_WIN_RATE}`",
    "tags.`lab.ended`",
    "attributes.`Duration`",
)
EXPERIMENT_TAGS: Mapping[str, str] = MappingProxyType(
    {
        "mlflow.experimentKind": "custom_model_development",
        f"mlflow.sharedViewState.{VIEW}": json.dumps({"selectedColumns": _COLUMNS}),
    }
)
