"""Self-play of an agent with every part of a network and every switch."""

from dataclasses import replace

import numpy as np
import pytest
from test_self_play import ROLLOUT, SECOND, TRAIN, Kept, Numbers, learned, plan, weights

from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings
from aimbot_lab.training.settings import SamplesSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import WORLDS


def everything() -> TrainingPlan:
    network = NetworkSettings(
        layers=(8,),
        scaling="running",
        scalars=(8,),
        units=UnitsSettings(layers=(8,)),
        memory=MemorySettings(size=6, sequence_length=8),
    )
    train = replace(
        TRAIN,
        total_steps=4 * ROLLOUT,
        aim="hybrid",
        objective="per_branch",
        dual_clip=3.0,
        target="attention",
        samples=SamplesSettings(keep=2),
        network=network,
    )
    env = WORLDS["duel"].settings(
        num_envs=8, learner="home", time_limit=1.0, observation={"units": True}
    )
    return plan(train=train, env=env, lessons=(SECOND,))


def test_it_meets_what_it_was_and_goes_on_after_a_break_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    kept, sink = Kept(), Numbers()
    whole = learned(Training(everything()), sink, checkpoints=kept)
    assert whole.self_play is not None
    met = {row[1] for row in whole.self_play.past_selves.games.rows()}
    assert any(name.startswith("snapshot-") for name in met)
    resumed = Training(everything())
    resumed.resume(kept.checkpoints[-1].state, kept.parts.__getitem__)
    learned(resumed, Numbers())
    before = weights(Training(everything()))
    for name, array in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], array, err_msg=name)
        assert np.isfinite(array).all()
    assert any((before[name] != array).any() for name, array in weights(whole).items())
