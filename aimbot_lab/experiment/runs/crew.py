"""The processes of one training: each one's part of it, and what they tell each other before.

They meet in rounds, each one exchange. In a round every process says that all went well, or how it
failed, after which no process is waited for; the leader also says what is to be done next. It
hands over what is trained: the others may be on machines that have neither the curriculum nor the
folder of the run.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.experiment.config.document import parse_curriculum
from aimbot_lab.experiment.runs.agents import (
    check_compatible,
    read_initial_agent,
    stored_initial_agent,
)
from aimbot_lab.experiment.runs.run_record import InitialAgent, KeptCheckpoint, RunRequest
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import closed_on_failure
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training.actors.actor import ActorGroup
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.checks import replay_bytes, update_cost
from aimbot_lab.training.processes.exchange import Alone, Exchange, LostError
from aimbot_lab.training.run_hooks import Observer, SilentObserver, TrainingOutcome
from aimbot_lab.training.training import Training
from aimbot_lab.version import full_version
from aimbot_lab.worlds.registry import evaluated, rows_for, with_rows

AT = "the training's curriculum"  # its file, in messages
DIGITS = 12  # of a hash that a person is shown


class OtherFailedError(LabError):
    """Another process of the training failed, with this exit code."""

    def __init__(self, rank: int, text: str, exit_code: int) -> None:
        super().__init__(f"process {rank}: {text}")
        self.exit_code = exit_code


class Order(NamedTuple):
    """What the leader has all processes do next."""

    learn: bool = False  # begin to learn
    state: bytes | None = None  # of the checkpoint to go on from
    parts: Mapping[str, bytes] | None = None  # of the same


READY = Order()


class Crew:
    """The processes of one training; by default this one alone.

    `actors` play for it where the curriculum has `train.actors`; None: processes of this machine.
    """

    def __init__(
        self, exchange: Exchange | None = None, *, actors: ActorGroup | None = None
    ) -> None:
        self.exchange, self.actors = exchange or Alone(), actors
        self.failed = False  # which every process knows

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one process."""
        return self.exchange.place.count > 1

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Tell the others, in the next round, of an error that the block ends with."""
        try:
            yield
        except LostError:
            raise
        except Exception as error:
            if self.is_shared and not self.failed:
                code = getattr(error, "exit_code", 1)
                text = str(error) or type(error).__name__
                self.failed = True
                self._say({"failed": {"text": text, "code": code}})
            raise

    def compare(self, request: RunRequest) -> None:
        """Raise ConfigurationError where another process is about to train something else."""
        self._check_same(self._round({"about": about_request(request)}))

    def give(self, request: RunRequest) -> None:
        """Have the others train what is asked for; for the leader. Raises as `take`."""
        if self.is_shared:
            self._check_same(self._round({"request": as_document(request), "about": _version()}))

    def take(self, data_folder: DataFolder) -> RunRequest:
        """What the leader gives; for the others.

        Raises OtherFailedError, and ConfigurationError where a process has another version.
        """
        heard = self._round({"about": _version()})
        self._check_same(heard)
        return request_from(heard[0]["request"], data_folder)

    def _check_same(self, heard: Sequence[Mapping[str, Any]]) -> None:
        """Raise ConfigurationError where a process is about something else than the leader."""
        for rank, one in enumerate(heard):
            for what, leaders in heard[0]["about"].items():
                if (own := one["about"][what]) != leaders:
                    self.failed = True  # everyone sees it
                    raise ConfigurationError(
                        f"process {rank} has another {what} than process 0: {own}, not "
                        f"{leaders}; all must be given the same"
                    )

    def order(self, order: Order = READY) -> None:
        """Have all processes do that; for the leader. Raises OtherFailedError."""
        if not self.is_shared:
            return
        said: dict[str, Any] = {"learn": order.learn}
        if order.state is not None:
            parts = (order.parts or {}).items()
            said["state"] = np.frombuffer(order.state, np.uint8)
            said["parts"] = {name: np.frombuffer(part, np.uint8) for name, part in parts}
        self._round(said)

    def hear(self) -> Order:
        """What the leader orders; for the others. Raises OtherFailedError."""
        leader = self._round({})[0]
        state, parts = leader.get("state"), leader.get("parts") or {}
        return Order(
            learn=leader["learn"],
            state=None if state is None else state.tobytes(),
            parts={name: part.tobytes() for name, part in parts.items()},
        )

    def resume(self, training: Training, kept: KeptCheckpoint) -> None:
        """Have `training`, in every process, go on from a checkpoint; for the leader."""
        if self.is_shared:
            parts = {name: kept.read_part(name) for name in kept.parts}
            self.order(Order(state=kept.state, parts=parts))
        training.resume(kept.state, kept.read_part)

    def exit_code(self, own: int) -> int:
        """The leader's, once it has ended; `own` where it is gone or still busy.

        Several torchruns wait for each other for minutes where some of all processes end with 0.
        """
        with suppress(LostError):
            return int(self._say({"code": own})[0]["code"])
        return own

    def _round(self, said: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """What all say. Raises OtherFailedError where one has failed."""
        heard = self._say(said)
        for rank, one in enumerate(heard):
            if (failed := one.get("failed")) is not None:
                self.failed = True  # no process waits for another round
                raise OtherFailedError(rank, failed["text"], failed["code"])
        return heard

    def _say(self, said: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return [unpack(one) for one in self.exchange.gather(pack(said))]


def about_request(request: RunRequest) -> dict[str, str]:
    """What must be the same in all processes, by what a person calls it."""
    curriculum = request.curriculum
    start = request.start_ref  # the leader may know alone that a run goes on
    text = hashlib.sha256(curriculum.resolved_text.encode()).hexdigest()
    return {
        **_version(),
        "seed": str(curriculum.config.seed),
        "curriculum": f"SHA-256 {text[:DIGITS]}",
        "agent to begin with": "none" if start is None else start.sha256[:DIGITS],
    }


def _version() -> dict[str, str]:
    return {"version of aimbot-lab": full_version()}


def prepared(
    request: RunRequest,
    observer: Observer,
    exchange: Exchange,
    *,
    actors: ActorGroup | None = None,
) -> Training:
    """The training of this process, with the agent that it begins with; `actors` play for it.

    Raises ConfigurationError for what it can't be begun with.
    """
    config, start = request.curriculum.config, start_of(request)
    if start is not None:
        check_compatible(start, config)
    if config.evaluation is not None:  # whose world is made only while the run trains
        judged = evaluated(config.env)
        with_rows(judged, rows_for(judged, config.evaluation.episodes))
    _require_disk(request)
    cost = update_cost(config.train, config.learned_env)
    if cost.costly:
        observer.notice(str(cost))
    observer.stage("preparing the simulator (compiled once, then kept)")
    plan = config.training_plan
    training = Training(plan, exchange=exchange, group=actors, callbacks=request.callbacks)
    with closed_on_failure(training.close):
        for remark in training.remarks:
            observer.notice(remark)
        if start is not None:
            training.start_from(start.saved.agent)
    return training


def _require_disk(request: RunRequest) -> None:
    """Raise ConfigurationError where a new run's replay buffer has no room in its checkpoints."""
    config, root = request.curriculum.config, request.data_folder.root
    if request.resume is not None or not (size := replay_bytes(config.train, config.learned_env)):
        return
    place = next(one for one in (root, *root.parents) if one.exists())
    if size > (free := shutil.disk_usage(place).free):
        raise ConfigurationError(
            f"train.options.buffer_size: the checkpoints hold a replay buffer of {size / 1e9:,.1f} "
            f"GB, and {root} has room for {free / 1e9:.1f}: make it smaller, or give --data-dir"
        )


def start_of(request: RunRequest) -> InitialAgent | None:
    """The agent to begin with; of a run that is resumed, the one that it began with."""
    if request.resume is None:
        return request.start
    ref = request.resume.record.start
    return None if ref is None else stored_initial_agent(request.resume.folder.checkpoints, ref)


class _Unkept:
    """Metrics of a process that does not track them: the leader has the same."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""


def follow_run(
    request: RunRequest, crew: Crew, *, should_stop: Callable[[], bool]
) -> TrainingOutcome:
    """How the training ended, as the leader has it too.

    Raises OtherFailedError where another process failed before it could begin, LostError where
    one is gone.
    """
    observer = SilentObserver()
    with crew.telling():
        training = prepared(request, observer, crew.exchange)
        with closed_on_failure(training.close):
            while not (order := crew.hear()).learn:
                if order.state is not None:
                    training.resume(order.state, (order.parts or {}).__getitem__)
    with closed_on_failure(training.close):
        ended = training.learn(_Unkept(), observer, should_stop)
    training.close()
    return ended


def as_document(request: RunRequest) -> dict[str, Any]:
    """The curriculum of `request`, and the agent that it begins with, as plain values."""
    curriculum, given = request.curriculum, None
    if (start := start_of(request)) is not None:
        files = {name: np.frombuffer(data, np.uint8) for name, data in start.files.items()}
        given = {"source": start.ref.source, "files": files}
    return {
        "curriculum": curriculum.resolved_text,
        "files": dict(curriculum.files),
        "start": given,
    }


def request_from(document: Mapping[str, Any], data_folder: DataFolder) -> RunRequest:
    """What was handed over, in which no run is resumed: the leader does that."""
    find, given = document["files"].__getitem__, document["start"]
    curriculum = parse_curriculum(document["curriculum"], AT, find=find)
    if given is None:
        return RunRequest(curriculum, data_folder)
    with tempfile.TemporaryDirectory("-start") as folder:
        for name, data in given["files"].items():
            (Path(folder) / name).write_bytes(data.tobytes())
        start = read_initial_agent(Path(folder), source=given["source"])
    return RunRequest(curriculum, data_folder, start=start)
