"""One training whose processes Ray places: started, watched, and begun again after a loss.

The loop is ours and not Ray Train's, which begins anew after any error, counts losses over the
whole run, aborts at Ctrl-C, and runs the training in a thread, where no signal arrives.
"""

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aimbot_lab.cluster.connection import ADDRESS, HeadLostError, connected
from aimbot_lab.cluster.growth import Growth
from aimbot_lab.cluster.head import Head
from aimbot_lab.cluster.life import Life, Told
from aimbot_lab.cluster.places import Places, StoppedAtOnceError, machines_asked_for
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.processes.judgement import STOPPED, Ended, Restarts
from aimbot_lab.training.processes.stop_signals import StopSignals

LOOPBACK = "127.0.0.1"


class Asked(NamedTuple):
    """What all processes run."""

    words: Sequence[str]  # of aimbot-lab
    environment: Mapping[str, str]
    leader_environment: Mapping[str, str]  # also
    span: tuple[int, int]  # at least and at most so many processes


def launch_on_ray(asked: Asked, told: Told) -> int:
    """The exit code of `aimbot-lab` with words, in processes that Ray places.

    As `training.processes.launch.launch`: after a loss all begin again, an error of the training
    ends all with its code, and a signal is passed on once. After a loss there may be fewer
    processes, and more where there is room for them.
    Raises ConfigurationError where there is no Ray or a machine can't take part, and HeadLostError,
    after which only this process's end is left: Ray would not let go of it for a minute.
    """
    if (address := os.environ.get(ADDRESS, "")).startswith("ray://"):
        raise ConfigurationError(
            f"--on ray: {ADDRESS}={address}: begin a training on a machine of the cluster, with "
            "HOST:PORT or auto"
        )
    with StopSignals() as signals, connected(asked.span[1]) as ray:
        signals.listen()  # Ray takes SIGTERM
        try:
            with machines_asked_for(asked.span):
                return _Launch(ray, asked, told, signals).run()
        except StoppedAtOnceError:
            return STOPPED


class _Launch:
    """The processes, in all their lives."""

    def __init__(self, ray: Any, asked: Asked, told: Told, signals: StopSignals) -> None:
        self._asked, self._told, self._signals = asked, told, signals
        self._restarts = Restarts(told.progress)
        self._places = Places(
            ray, asked.span, os.getcwd(), check_stop=self._check_stop, report=told.report
        )
        self._ray, self._run_id, self._lives = ray, uuid.uuid4().hex, 0
        self._head = Head(ray.get_runtime_context().gcs_address)

    def run(self) -> int:
        """The exit code."""
        lost: set[int] = set()
        try:
            while True:
                life = self._begun(lost)
                verdict = life.watched()
                lost = life.places_lost
                if verdict.error:
                    self._told.report(verdict.error)
                code = verdict.code
                if verdict.loss is not None and not self._goes_on_after(verdict.loss):
                    code = 1
                if code is not None:
                    self._places.drop()
                    return code
                life.kill()
                if verdict.loss is None:
                    self._told.report("there is room for more processes: all begin again")
                    self._places.drop()
        except HeadLostError:
            raise  # which Ray would wait for
        except BaseException:
            self._places.drop()
            raise

    def _goes_on_after(self, loss: Ended) -> bool:
        again, line = self._restarts.after(loss)
        self._told.report(line)
        return again

    def _check_stop(self) -> None:
        self._head.check()
        if self._signals.number is not None:
            raise StoppedAtOnceError

    def _begun(self, lost: set[int]) -> "Life":
        """The processes, started anew; `lost` are the places that are gone."""
        self._check_stop()
        number, (least, most) = len(self._places.all), self._asked.span
        self._places.fill(lost)
        self._lives += 1
        places = self._places.all
        if least < most and len(places) != number:
            self._told.report(f"processes: {len(places)} ({least} to {most})")
        is_one_machine = len({place.machine.address for place in places}) == 1
        address = LOOPBACK if is_one_machine else places[0].machine.address
        common = {
            **self._asked.environment,
            "WORLD_SIZE": str(len(places)),
            "MASTER_ADDR": address,
            "MASTER_PORT": str(self._ray.get(places[0].actor.free_port.remote())),
            "TORCHELASTIC_RUN_ID": self._run_id,  # a port that was taken meanwhile is a loss
            "TORCHELASTIC_RESTART_COUNT": str(self._lives),
        }
        for rank, place in enumerate(places):
            own = {**(self._asked.leader_environment if rank == 0 else {}), "RANK": str(rank)}
            place.actor.start.remote(
                self._asked.words,
                {**common, **own},
                address=LOOPBACK if is_one_machine else place.machine.address,
            )
        missing = self._asked.span[1] - len(places)
        growth = Growth(self._places.room, missing, self._told.progress)
        return Life(
            self._ray,
            places,
            self._told,
            signals=self._signals,
            growth=growth,
            head=self._head,
        )
