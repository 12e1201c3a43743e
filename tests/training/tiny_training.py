"""A training small enough for a test, by any algorithm, and what takes its results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.run_hooks import (
    UNLINKED,
    Checkpoint,
    RunLinks,
    SilentObserver,
    TrainingOutcome,
)
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings

ROWS = 16
OPTIONS = {
    "recurrent_ppo": {"lstm_hidden_size": 8},
    "qrdqn": {"n_quantiles": 5, "exploration_fraction": 0.5},
    "trpo": {"cg_max_steps": 3},
    "maskable_ppo": {"clip_range_vf": 0.5},
}


class Sink:
    """Keeps metrics, and as a record the files that grow."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.files: dict[str, str] = {}

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        self.logged.append((step, metrics))

    def grow(self, name: str, text: str, *, place: int) -> bool:
        self.files[name] = self.files.get(name, "")[:place] + text
        return True

    def sync(self) -> None:
        pass


class Keeper:
    """Keeps every checkpoint, and each part once, as a folder does."""

    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.parts: dict[str, bytes] = {}
        self.links = RunLinks(checkpoints=self)

    def keep(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)
        for name in checkpoint.parts.keys() - self.parts.keys():
            self.parts[name] = checkpoint.parts[name]()

    def resumed(self, training: Training, checkpoint: Checkpoint) -> Training:
        """`training`, which goes on from `checkpoint`."""
        training.resume(checkpoint.state, self.parts.__getitem__)
        return training


class Asked:
    """Requests that are there when they are asked for the `call`th time, and their answers."""

    def __init__(self, *documents: Any, call: int = 1) -> None:
        self.waiting = {str(number): one for number, one in enumerate(documents)}
        self.answers: dict[str, Mapping[str, Any]] = {}
        self.kept: list[tuple[int, Any]] = []
        self.call, self.calls = call, 0

    def requests(self) -> Sequence[tuple[str, Any]]:
        self.calls += 1
        return list(self.waiting.items()) if self.calls >= self.call else []

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        del self.waiting[key]
        self.answers[key] = document

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        self.kept.append((step, document))

    def changes(self) -> Sequence[tuple[int, Any]]:
        return self.kept


class Listener(SilentObserver):
    """Keeps the notices."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def learn(
    training: Training,
    sink: Any = None,
    *,
    observer: SilentObserver | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    links: RunLinks = UNLINKED,
) -> TrainingOutcome:
    """What `training` comes to, whose metrics go to `sink`."""
    sink = Sink() if sink is None else sink
    return training.learn(sink, observer or SilentObserver(), should_stop, links=links)


def plan(algo: str, **train: object) -> TrainingPlan:
    settings = {
        **{"algo": algo, "total_steps": 3072, "n_steps": 32, "batch_size": 128, "n_epochs": 1},
        **{"network": NetworkSettings(layers=(16,)), "torch_threads": 1},
        **{"options": OPTIONS.get(algo, {}), **train},
    }
    lesson = Lesson(name="one", targets={"goto": 1.0})
    env = ArenaSettings(num_envs=ROWS, goto_win_radius=12.0, time_limit=3.0)
    train = ALGORITHMS[algo].settings(**settings)
    return TrainingPlan(seed=1, env=env, lessons=(lesson,), train=train)
