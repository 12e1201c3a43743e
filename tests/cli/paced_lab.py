"""`aimbot-lab` whose trainings rest after each rollout: what looks at them has the cores."""

import time

from aimbot_lab.entry import main
from aimbot_lab.training.callbacks.lesson_callback import LessonCallback

REST_S = 1.5
begin_rollout = LessonCallback._on_rollout_start


def _rested(callback: LessonCallback) -> None:
    time.sleep(REST_S)
    begin_rollout(callback)


LessonCallback._on_rollout_start = _rested  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
