"""What a world measures of its episodes beside wins: numbers from the columns that it counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.intervals import mean_interval

Float64Array = npt.NDArray[np.float64]
Columns = Mapping[str, Float64Array]  # [E] each


@dataclass(frozen=True)
class Measure:
    """A number of a set of episodes that tables, JSON and tracking show; a mean where not said."""

    name: str  # in JSON
    column: str  # of the episodes
    head: str = ""  # of its column in a table; empty: it stands in none
    over: str = ""  # column that divides it; a share of 0 is 1
    only: str = ""  # column; of those episodes alone in which that is not 0
    beside: str = ""  # column whose mean a table shows with it: 3.2 of 5.0
    median: bool = False
    interval: bool = False  # whether the mean has a 95 % interval, and differences are shown
    decimals: int = 1  # in a table
    training: str = ""  # metric of the training's own episodes; empty: not tracked
    evaluation: str = ""  # metric of those played while it trains

    def values(self, columns: Columns) -> Float64Array:
        """Its value in each episode that it is of."""
        found = columns[self.column]
        if self.over:
            whole = columns[self.over]
            found = np.divide(found, whole, out=np.ones_like(whole), where=whole != 0)
        return found[columns[self.only] != 0] if self.only else found


def measured_by_name(
    measures: Sequence[Measure], parts: Sequence[Columns]
) -> dict[str, float | None]:
    """Each of `measures` over all `parts` by its name; intervals as NAME_lower and NAME_upper."""
    if not measures:
        return {}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found: dict[str, float | None] = {}
    for measure in measures:
        values = measure.values(columns)
        value = lower = upper = None
        if len(values) and measure.median:
            value = float(np.median(values))
        elif len(values) and measure.interval:
            value, lower, upper = mean_interval(values.tolist())
        elif len(values):
            value = float(values.mean())
        found[measure.name] = value
        if measure.interval:
            found |= {f"{measure.name}_lower": lower, f"{measure.name}_upper": upper}
    return found


def shown(measure: Measure, numbers: Mapping[str, float | None]) -> str:
    """A table's text of `measure` from what `measured_by_name` gave."""
    value, places = numbers.get(measure.name), measure.decimals
    if value is None:
        return "-"
    text = f"{value:.{places}f}"
    lower, upper = (numbers.get(f"{measure.name}_{end}") for end in ("lower", "upper"))
    if lower is not None and upper is not None:
        text += f" [{lower:.{places}f}, {upper:.{places}f}]"
    other = numbers.get(measure.beside) if measure.beside else None
    return text if other is None else f"{text} of {other:.{places}f}"
