"""An actor, which steps rows of the world in a process of its own, and the group of them."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.episodes import EpisodeBatch, oldest
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.garbage import collect_seldom
from aimbot_lab.foundation.named_code import allow
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    close_world,
    closed_on_failure,
    dropped_episodes,
    logged_errors,
    new_notices,
    save_commands,
)
from aimbot_lab.training.actors.block import (
    COLUMNS,
    ActorPlan,
    Array,
    Block,
    BlockRequest,
    GlobalNumbers,
    Scenarios,
    SettledEpisodes,
    StepEnds,
)
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.models import new_model, new_vec_env
from aimbot_lab.training.callbacks.lesson_callback import packed_episodes
from aimbot_lab.training.checkpoint import (
    SEEN,
    begin_episodes,
    model_state,
    of_rows,
    own_part,
    pack,
    unpack,
)
from aimbot_lab.training.processes.cores import one_thread
from aimbot_lab.training.processes.exchange import Shards
from aimbot_lab.version import code_hash
from aimbot_lab.worlds.registry import code_of, make_world


class Recorder(BaseCallback):
    """Keeps the episodes that end in each step of `env`, and what stands behind its rewards.

    With `settled` episodes are given out by that; without, as they end, with the world's own ranks.
    """

    def __init__(
        self, env: WorldVecEnv, settled: SettledEpisodes | None, *, keeps_ends: bool
    ) -> None:
        super().__init__()
        self._env, self._settled, self._keeps_ends = env, settled, keeps_ends
        self._first: int | None = None
        self._step = 0
        self.running: int | None = None
        """Rank of the oldest episode that ran and counts where the block began."""
        self.ended: list[EpisodeBatch] = []
        self.unread: list[tuple[int, str]] = []
        self._rewards: list[Array] = []
        self._ends: list[Array] = []
        self._cuts: list[tuple[int, int, Array]] = []

    @property
    def unsettled(self) -> int:
        """Episodes that would be lost now."""
        return 0 if self._settled is None else self._settled.unsettled

    def begin(self, order: BlockRequest) -> None:
        """The block that `order` asks for begins."""
        self._first, self._step = order.first, 0
        self.ended, self.unread = [], []
        self._rewards, self._ends, self._cuts = [], [], []
        if self._settled is None:
            world: Any = self._env.world  # a worlds.kernel_world.PartWorld
            order_by_row, scenario_by_row = world.running()
            self.running = oldest(order_by_row, scenario_by_row, order.first)
        else:
            self._settled.begin(order.version, order.first)
            self.running = self._settled.running

    def _on_step(self) -> bool:
        if self._env.episodes:
            self._keep(self._env.episodes)
        if self._keeps_ends:
            self._rewards.append(self.locals["rewards"].copy())  # which values are added to later
            self._ends.append(self.locals["dones"])
            self._keep_cuts(self.locals["dones"], self.locals["infos"])
        self._step += 1
        return True

    def _keep(self, ended: EpisodeBatch) -> None:
        self.unread += [(self._step, why) for why in ended.unread]
        if self._settled is None:
            kept = ended.beside(ended.oldest_running(self._first), self._first)
        else:
            kept = self._settled.add(ended)
        self.ended.append(kept._replace(step=self._step))

    def _keep_cuts(self, dones: Array, infos: list[dict[str, Any]]) -> None:
        for row in np.flatnonzero(dones).tolist():
            if infos[row].get("TimeLimit.truncated"):
                self._cuts.append((self._step, row, infos[row]["terminal_observation"]))

    def ends(self, last_observations: Any) -> Mapping[str, Any] | None:
        """`StepEnds` of the block, which `last_observations` [N] follow; None where not kept."""
        if not self._keeps_ends:
            return None
        return StepEnds(
            rewards=np.stack(self._rewards),
            ends=np.stack(self._ends),
            last_observations=last_observations,
            cut_steps=np.array([step for step, _, _ in self._cuts], np.int64),
            cut_rows=np.array([row for _, row, _ in self._cuts], np.int64),
            cut_observations=_stacked([one for _, _, one in self._cuts], last_observations),
        )._asdict()


def _stacked(rows: Sequence[Any], like: Any) -> Any:
    """What each of `rows` was shown together, as `like` is what several were shown."""
    if isinstance(like, Mapping):
        return {name: _stacked([one[name] for one in rows], part) for name, part in like.items()}
    return np.stack(rows) if rows else np.zeros_like(like[:0])


class Actor:
    """Plays the rows of `plan`; one of its methods is called at a time.

    Placed among the rows of all actors, its world and its random numbers are those that a training
    in one process has for these rows. Else the world is one of its own.
    """

    def __init__(self, plan: ActorPlan) -> None:
        self._plan = plan
        allow(code_of(plan.env))  # a plan comes from the learner, which runs it, too
        made: Any = make_world(plan.env, plan.rows, one_thread=True)
        self._world = made
        with closed_on_failure(self.close):
            self._assemble()

    def _assemble(self) -> None:
        plan = self._plan
        self._numbers: GlobalNumbers | None = None
        if plan.placed:
            self._world.place(plan.first_row, plan.actors * plan.rows)
        else:
            self._numbers = GlobalNumbers(plan.number, plan.actors)
        seed = derive_seed(plan.seed, "world")
        self._env = new_vec_env(self._world, plan.train, seed=seed)
        self._model = self._new_model()
        if not plan.placed:  # the model has seeded the world as that of one process
            self.begin_life(plan.life)
        self._recorder = self._new_recorder()
        self._has_begun = False
        # What the networks are shown depends on running statistics, which the learner's may be
        # ahead of; without a lag they are the same.
        self._in_step = plan.train.actors is not None and not plan.train.actors.lag

    def _new_model(self) -> HybridPPO:
        plan, seed = self._plan, derive_seed(self._plan.seed, "learner")
        shards = Shards(plan.actors, plan.number, 1, plan.rows)
        spec = self._world.spec
        model = new_model(plan.train, self._env, spec=spec, seed=seed, own_shards=shards)
        assert isinstance(model, HybridPPO)
        model.set_logger(Logger(folder=None, output_formats=[]))
        model.ep_info_buffer, model.ep_success_buffer = deque(maxlen=1), deque(maxlen=1)
        return model

    def _new_recorder(self) -> Recorder:
        plan, actors = self._plan, self._plan.train.actors
        settled = None if self._numbers is None else SettledEpisodes(self._numbers, plan.rows)
        corrects = actors is not None and actors.correction != "none"
        recorder = Recorder(self._env, settled, keeps_ends=corrects)
        recorder.init_callback(self._model)
        return recorder

    def close(self) -> None:
        """End its world."""
        close_world(self._world)

    def get_ready(self) -> None:
        """Answer once the actor is made."""

    def begin_life(self, life: int) -> None:
        """Before the first block: have random numbers that no other `life` of any actor has."""
        seed = derive_seed(self._plan.seed, "actor", self._plan.number, life)
        self._env.seed(seed)
        th.manual_seed(derive_seed(seed, "actions"))

    def resume(self, state: bytes) -> int:
        """The number of the scenario in force, where the packed `state` of all rows had come to."""
        env, model = own_part(self._env, unpack(state), self._plan.first_row)
        self._env.resume(env)
        for name in SEEN:
            setattr(self._model, name, model["seen"][name])
        self._has_begun = True
        return int(self._world.scenario_number)

    def state(self, scenarios: Scenarios) -> bytes:
        """What a checkpoint keeps of these rows, packed, once the new `scenarios` are set."""
        self._begin(scenarios)
        return pack(of_rows(self._env, model_state(self._model)))

    def block(self, order: BlockRequest) -> bytes:
        """The `Block` that `order` asks for, packed."""
        model = self._model
        if order.weights is not None:
            model.policy.load_state_dict(unpack(order.weights))
        self._begin(order.scenarios)
        model.num_timesteps = order.step
        self._recorder.begin(order)
        model.collect_rollouts(self._env, self._recorder, model.rollout_buffer, model.n_steps)
        return pack(self._block(order)._asdict())

    def _begin(self, scenarios: Scenarios) -> None:
        """Have what begins from now on drawn from the last of `scenarios`, the first episodes too.

        A world that has not begun begins.
        """
        for number, scenario in scenarios:
            own = self._world.set_scenario(scenario)
            if self._numbers is not None:
                self._numbers.scenarios[own] = number
        if not self._has_begun:
            begin_episodes(self._model, self._env.reset())
            self._has_begun = True

    def _block(self, order: BlockRequest) -> Block:
        model, recorder = self._model, self._recorder
        last: Any = model._last_obs
        return Block(
            actor=self._plan.number,
            version=order.version,
            columns={name: getattr(model.rollout_buffer, name) for name in COLUMNS},
            shown=model.engine.shown() if self._in_step else None,
            ends=recorder.ends(last),
            episodes=packed_episodes(recorder.ended, self._plan.first_row),
            running=recorder.running,
            unsettled=recorder.unsettled,
            notices=tuple(new_notices(self._world)),
            lost_episodes=dropped_episodes(self._world) or 0,
            unread=tuple(recorder.unread),
            logged_errors=logged_errors(self._world) or 0,
            save_commands=save_commands(self._world),
        )


GONE = (EOFError, OSError)
END_SECONDS = 5.0  # that an actor has to end by itself
LOOK_SECONDS = 0.2  # between two looks for processes that ended while others hold their line open
PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import main; main({line})"
"""What an actor's process runs: no script of a user's, which would train once more, but with its
path, on which the modules of environments may lie."""


class Answer(NamedTuple):
    """What came of a question to an actor."""

    actor: int
    value: Any = None
    fault: str | None = None  # why it can't play, in a line
    is_lost: bool = False  # whether it is gone, and the question with it


class ActorGroup(Protocol):
    """Actors by number; each is asked one thing at a time."""

    def start(self, plan: ActorPlan) -> None:
        """Have the actor `plan.number`, in place of a lost one of that number."""

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Have `actor` call its method `what`; one that is gone answers so."""

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What has been answered; waits at most so long for the first."""

    def end(self, actor: int) -> None:
        """End `actor`, whose answer is then that it is lost."""

    def close(self) -> None:
        """End all actors."""


class ActorHost:
    """The actor of `plan`, made where it is first asked; what it can't do, it says in one line."""

    def __init__(self, plan: ActorPlan) -> None:
        self._plan = plan
        self._actor: Actor | None = None

    def answer(self, what: str, given: tuple[Any, ...]) -> Answer:
        """What the actor's method `what` gives."""
        number = self._plan.number
        try:
            if self._actor is None:
                _check_code(self._plan)
                self._actor = Actor(self._plan)
            return Answer(number, getattr(self._actor, what)(*given))
        except LabError as error:
            return Answer(number, fault=str(error))

    def close(self) -> None:
        """End the actor, if there is one; it may raise a LabError of its world's, which is lost."""
        if self._actor is not None:
            with suppress(LabError):
                self._actor.close()
        self._actor = None


def _check_code(plan: ActorPlan) -> None:
    """Raise ConfigurationError where the learner has other code than is here."""
    if plan.code != code_hash():
        raise ConfigurationError(
            f"machine {socket.gethostname()} has other code of aimbot-lab ({code_hash()}) than the "
            f"learner ({plan.code}): all need the same"
        )


class _Process(NamedTuple):
    process: "subprocess.Popen[bytes]"
    connection: Connection


class LocalActors:
    """A process for each actor; they end with this one."""

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}
        self._unheard: list[int] = []  # lost where they were to be asked something

    @property
    def pids(self) -> dict[int, int]:
        """The processes' ids, by the actors' numbers."""
        return {number: one.process.pid for number, one in self._processes.items()}

    def start(self, plan: ActorPlan) -> None:
        """Begin a process that makes the actor.

        Raises ConfigurationError in the worker of a sweep, which must have no processes of its own.
        """
        if multiprocessing.current_process().daemon:
            raise ConfigurationError("train.actors: can't be used by the trials of a sweep")
        ours, theirs = multiprocessing.Pipe()
        program = PROGRAM.format(path=sys.path, module=__name__, line=theirs.fileno())
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._processes[plan.number] = _Process(process, ours)
        try:
            ours.send(plan)
        except GONE:
            self._unheard.append(plan.number)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Send the question."""
        try:
            self._processes[actor].connection.send((what, given))
        except GONE:
            self._unheard.append(actor)

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What the processes sent; one whose end of the line is closed is lost."""
        found = [self._lost(number) for number in dict.fromkeys(self._unheard)]
        self._unheard = []
        until = monotonic() + seconds
        while not found:
            left = max(until - monotonic(), 0.0)
            every = dict(self._processes)
            ready = wait([one.connection for one in every.values()], min(left, LOOK_SECONDS))
            for number, one in every.items():
                if one.connection in ready:
                    found.append(self._heard(number))
                elif one.process.poll() is not None:  # one of its own may hold the line open
                    found.append(self._lost(number))
            if left == 0.0:
                break
        return found

    def _heard(self, actor: int) -> Answer:
        try:
            answer: Answer = self._processes[actor].connection.recv()
        except GONE:
            return self._lost(actor)
        return answer

    def _lost(self, actor: int) -> Answer:
        if actor in self._processes:
            _end([self._processes.pop(actor)])
        return Answer(actor, is_lost=True)

    def end(self, actor: int) -> None:
        """Kill its process, which may be one that takes no other signal."""
        self._processes[actor].process.kill()

    def close(self) -> None:
        """End the processes."""
        _end([*self._processes.values()])
        self._processes = {}


def _end(processes: Sequence[_Process]) -> None:
    """Have all end, each with its environments, and kill those that do not."""
    for one in processes:
        one.connection.close()
        one.process.terminate()
    until = monotonic() + END_SECONDS
    for one in processes:
        with suppress(subprocess.TimeoutExpired):
            one.process.wait(max(until - monotonic(), 0.0))
        one.process.kill()
        one.process.wait()


def main(line: int) -> None:
    """Be the actor of the plan that comes over `line`, a descriptor, until that is closed."""
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the learner ends its actors
    signal.signal(signal.SIGTERM, _leave)
    os.set_inheritable(line, False)
    connection = Connection(line)
    one_thread()
    host: ActorHost | None = None
    try:
        with suppress(*GONE):
            host = ActorHost(connection.recv())
            while True:
                connection.send(host.answer(*connection.recv()))
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it leaves
        if host is not None:
            host.close()


def _leave(number: int, _frame: object) -> None:
    """Leave whatever goes on, once; an environment takes no KeyboardInterrupt for its own."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
