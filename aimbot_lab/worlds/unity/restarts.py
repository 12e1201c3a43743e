"""How often a process may be started again, as in ML-Agents."""

import time
from collections.abc import Callable

from aimbot_lab.worlds.unity.settings import UnitySettings


class RestartLimit:
    """Counts the restarts of one process."""

    def __init__(
        self, settings: UnitySettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._times: list[float] = []

    def refusal(self) -> str | None:
        """Why the process must not be started again; None, counting it, where it may."""
        settings, now = self._settings, self._clock()
        most, period = settings.max_lifetime_restarts, settings.restarts_rate_limit_period_s
        if 0 <= most <= len(self._times):
            return f"it was restarted {most} times, as env.max_lifetime_restarts allows"
        recent = sum(now - moment < period for moment in self._times)
        if 0 <= settings.restarts_rate_limit_n <= recent:
            return (
                f"it was restarted {recent} times within {period:g} s, as "
                "env.restarts_rate_limit_n allows"
            )
        self._times.append(now)
        return None
