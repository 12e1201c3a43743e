"""The exchange that suits a process's place."""

from aimbot_lab.training.processes.exchange import Alone, Exchange
from aimbot_lab.training.processes.place import Place

PATIENCE_SECONDS = 120.0


def connect(place: Place, *, patience_s: float = PATIENCE_SECONDS) -> Exchange:
    """The exchange of the process at `place`, once all others are there.

    `patience_s` is how long a silent process is waited for, now and later. Raises
    ConfigurationError where the environment names no meeting point, LostError where not all come.
    """
    if place.count == 1:
        return Alone()
    from aimbot_lab.training.processes.gloo import Gloo

    return Gloo(place, patience_s=patience_s)
