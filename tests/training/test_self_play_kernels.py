"""When the kernels of past selves are compiled."""

from dataclasses import replace

import pytest
from test_self_play import SELF_PLAY, SHORT, plan

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.fused.actor_stack import StackTask
from aimbot_lab.training.training import Training

ITSELF = Lesson(name="itself", targets={"self": 1.0})


def test_the_kernel_of_past_selves_runs_once_before_training_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[int] = []
    real = StackTask.__call__

    def counted(task: StackTask, thread_id: int) -> None:
        ran.append(len(task.actions))
        real(task, thread_id)

    monkeypatch.setattr(StackTask, "__call__", counted)
    for ratio, expected in ((0.5, [1]), (1.0, [])):
        ran.clear()
        self_play = replace(SELF_PLAY, play_against_latest_model_ratio=ratio)
        train = replace(SHORT, batch_size=64)  # of which either is a multiple
        training = Training(plan(train=train, lessons=(ITSELF,), self_play=self_play))
        assert training.self_play is not None
        training.self_play.begin(training.model.policy.state_dict(), engine="fused")
        assert ran == expected
