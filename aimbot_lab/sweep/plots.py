"""Optuna's pictures of a sweep."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
import optuna
from optuna.trial import TrialState
from optuna.visualization import matplotlib as pictures

MIN_TRIALS = 2
PICTURES: Mapping[str, Callable[[optuna.Study], Any]] = MappingProxyType(
    {
        "history": pictures.plot_optimization_history,
        "importances": pictures.plot_param_importances,
        "slices": pictures.plot_slice,
        "parallel_coordinates": pictures.plot_parallel_coordinate,
    }
)


def draw_plots(study: optuna.Study, folder: Path) -> Iterator[Path]:
    """PNG files in `folder`, of those pictures that the study's trials allow."""
    matplotlib.use("Agg")
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    if len({trial.value for trial in complete}) < MIN_TRIALS:
        return
    for name, draw in PICTURES.items():
        path = folder / f"{name}.png"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these pictures are experimental in Optuna
            _save(draw(study), path)
        yield path


def _save(drawn: Any, path: Path) -> None:
    from matplotlib import pyplot

    axes = drawn.flat[0] if hasattr(drawn, "flat") else drawn
    axes.figure.set_size_inches(10, 6)
    axes.figure.savefig(path, dpi=100, bbox_inches="tight")
    pyplot.close(axes.figure)
