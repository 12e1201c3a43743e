"""Learning without autograd: the losses and steps of the torch engine, within rounding."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.foundation.kernels.jit import Packed, PackedCall
from aimbot_lab.foundation.kernels.threads import ThreadPool
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.training.algorithms.ppo_update import (
    ClipRanges,
    Loop,
    Losses,
    Tally,
    ranges_of,
    record,
)
from aimbot_lab.training.fused.actor import FusedActor
from aimbot_lab.training.fused.core.arrays import (
    CLIPPED,
    DIVERGENCE,
    DUAL_CLIPPED,
    ENTROPY,
    POLICY,
    SUMS,
    VALUE,
    Batch,
    Doubles,
    Floats,
    LaneSums,
    LearnThread,
    Loss,
    Networks,
    PieceQueue,
    Whole,
)
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, learn_packed
from aimbot_lab.training.fused.layout import (
    MAX_THREADS,
    NetworkShape,
    net_size,
    new_learn_threads,
    new_queue,
)
from aimbot_lab.training.fused.policy import fused_weights, shown_to
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.processes.cores import one_torch_thread
from aimbot_lab.training.processes.exchange import (
    Shards,
    of_all_shards,
    permutations,
    sum_of_leaves,
)

PIECE = 256  # samples, in whole chunks: their way through the networks fits a core's cache
UNITS_PIECE = 64  # of a network that encodes units, each of which takes as much of the cache
REMEMBERED_PIECE = 128  # of one that has a memory, too, whose steps need rows
MAX_LANES = 16  # of all shards of a training, where these are fewer


class Deal(NamedTuple):
    """What each shard's part of a minibatch is cut into."""

    piece: int  # samples, or chunks, of a full piece
    pieces: int  # full ones of a shard
    lanes: int  # of a shard, which share its full pieces
    rest: int  # samples, or chunks, of a shard that fill no piece

    def full(self, asked: Whole) -> Whole:
        """What fills pieces of `asked` [S, M], piece by piece in the order of the lanes' turns."""
        whole = asked[:, : self.pieces * self.piece]
        turns = whole.reshape(len(asked), self.pieces // self.lanes, self.lanes * self.piece)
        return turns.swapaxes(0, 1).ravel()

    def left(self, asked: Whole) -> Whole:
        """What does not, shard by shard."""
        return asked[:, self.pieces * self.piece :].ravel()


def deal(size: int, *, piece: int, shards: int) -> Deal:
    """How `size` samples of each of a training's `shards` are cut into pieces of `piece`.

    It follows from all shards, not from those that are computed here.
    """
    pieces, rest = divmod(size, piece)
    lanes = gcd(pieces, _largest_power(MAX_LANES // shards)) if pieces else 1
    return Deal(piece, pieces, lanes, rest)


def _largest_power(limit: int) -> int:
    """The largest power of two up to `limit`; 1 at least."""
    return 1 << max(limit.bit_length() - 1, 0)


def _of_shards(full: LaneSums | None, rest: LaneSums | None, shards: int) -> tuple[Floats, Doubles]:
    """(gradients [S, P], sums of the losses [S, 6]) of `shards` from the lanes that they have."""
    # Of a policy that diverges its weights will tell, after the update.
    with np.errstate(over="ignore", invalid="ignore"):
        if full is None:
            assert rest is not None
            return rest.gradients, rest.sums
        gradients, sums = _together(full.gradients, shards), _together(full.sums, shards)
        if rest is None:
            return gradients, sums
        return gradients + rest.gradients, sums + rest.sums


def _together(lanes: npt.NDArray[Any], shards: int) -> npt.NDArray[Any]:
    """The sums [S, ...] over the lanes of each shard, which lie beside each other."""
    several = len(lanes) // shards
    return lanes.reshape(shards, several, -1).sum(axis=1) if several > 1 else lanes


class Sequences(NamedTuple):
    """A rollout of T steps of B rows."""

    rows: Floats  # [T B, W] its samples, step by step
    starts: Floats  # [T, B] 1 where an episode begins
    states: Floats  # [T / L, B, S, H] where each chunk begins


class LearnTask(NamedTuple):
    """Sums the gradients of a minibatch's pieces, all of as many chunks."""

    rollout: Sequences  # whose chunks they are
    batch: Batch
    lanes: LaneSums
    queue: PieceQueue
    threads: tuple[LearnThread, ...]
    calls: tuple[PackedCall, ...]  # `learn_packed` as each thread calls it

    @property
    def piece(self) -> int:
        """Chunks of a piece."""
        return len(self.threads[0].workspace.carried)

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next minibatch."""
        self.calls[thread_id]()

    def fits(self, sequences: Sequences, piece: int, lanes: int) -> bool:
        """Whether it was made for `sequences`, pieces of size `piece`, and `lanes` lanes."""
        return self.rollout is sequences and self.piece == piece and len(self.lanes.sums) == lanes

    def begin_minibatch(self, chunks: Whole, loss: Loss) -> None:
        """Set the next work to `chunks`, full pieces in the order of the lanes."""
        self.batch.chunks[: len(chunks)] = chunks
        self.batch.loss[:] = loss
        numbers = self.queue.numbers
        numbers[USED_LANES], numbers[PIECES] = len(self.lanes.sums), len(chunks) // self.piece
        self.queue.taken[0] = 0


class FusedGradient:
    """Derivatives of PPO's loss by all weights, shard by shard.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor on the shards that are computed elsewhere; so the result does not either.
    """

    def __init__(self, shape: NetworkShape, networks: Networks) -> None:
        self._shape, self._networks = shape, networks
        of_units = REMEMBERED_PIECE if shape.memories else UNITS_PIECE
        self._samples = of_units if shape.kinds else PIECE
        self._kernel = Packed(learn_packed)
        self._workers = ThreadPool(1)
        self._full: LearnTask | None = None
        self._rest: LearnTask | None = None
        self._sequences: Sequences | None = None

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._full, self._rest = workers, None, None

    def sequences_of(self, rows: Floats, starts: Floats, states: list[th.Tensor]) -> Sequences:
        """A rollout's `rows` [T B, W], `starts` [T, B] and kept `states`, each [B, S, units].

        Without a memory there are no states.
        """
        made, units = self._sequences, self._shape.size
        if made is None or made.rows is not rows or made.starts.shape != starts.shape:
            places = max(1, len(starts) // self._shape.length)
            size = places, starts.shape[1], self._shape.states, self._shape.lanes
            made = Sequences(rows, np.zeros(starts.shape, np.float32), np.zeros(size, np.float32))
            self._sequences = made
        made.starts[...] = starts
        for place, state in enumerate(states):
            made.states[place, :, :, :units] = state.numpy()
        return made

    def of(
        self, sequences: Sequences, asked: Whole, loss: Loss, *, shards: int
    ) -> tuple[Floats, Doubles]:
        """(gradients [S, weights], sums of the losses [S, 6]) over all samples of chunks `asked`.

        `asked` [S, M] are those of the shards here, of `shards` in the whole training. What is
        returned is overwritten by the next call.
        """
        piece, here = max(1, self._samples // self._shape.length), len(asked)
        cut, full, rest = deal(asked.shape[1], piece=piece, shards=shards), None, None
        if cut.pieces:
            task = self._full = self._fitting(self._full, sequences, piece, cut.lanes * here)
            full = self._done(task, cut.full(asked), loss)
        if cut.rest:
            task = self._rest = self._fitting(self._rest, sequences, cut.rest, here)
            rest = self._done(task, cut.left(asked), loss)
        return _of_shards(full, rest, here)

    def _done(self, task: LearnTask, chunks: Whole, loss: Loss) -> LaneSums:
        task.begin_minibatch(chunks, loss)
        self._workers.run(task)
        return task.lanes

    def _fitting(
        self, task: LearnTask | None, sequences: Sequences, piece: int, lanes: int
    ) -> LearnTask:
        """`task` where it fits, or a new one."""
        if task is not None and task.fits(sequences, piece, lanes):
            return task
        sync_flags, (rows, starts, states) = self._workers.sync_flags, sequences
        length, most = len(starts) // len(states), states.shape[0] * states.shape[1] + piece
        batch = Batch(
            rows,
            starts.reshape(-1),
            states,
            chunks=np.zeros(most, np.int64),
            loss=np.zeros(len(Loss._fields), np.float32),
            length=length,
            warm_up=self._shape.warm_up,
        )
        size = lanes, net_size(self._shape)
        own = LaneSums(np.zeros(size, np.float32), np.zeros((lanes, SUMS)))
        queue = new_queue(sync_flags)
        threads = new_learn_threads(self._shape, piece, sync_flags, length=length)
        shared = self._networks, batch, own, queue
        calls = tuple(self._kernel.call_with(*shared, thread) for thread in threads)
        return LearnTask(sequences, batch, own, queue, threads, calls)


class Minibatch(NamedTuple):
    """As many pieces of each shard."""

    asked: Whole  # [S, M] what the gradient is asked for
    samples: int  # of all shards of the training
    advantages: Doubles  # [2] the sum of theirs, and of the squares


class FusedEngine:
    """Acts and learns for one policy; what is learned stays in the policy and its optimiser.

    Works with as many threads as torch is set to. These are its own, and torch has one meanwhile;
    the result is the same for any number. Building one compiles the kernels.
    Raises UnsuitedError for a policy that it does not know.
    """

    name = "fused"
    by_shards = True

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self._policy = policy
        self.workers = ThreadPool(1)
        self.before_step: Callable[[], None] | None = None  # called before each gradient step
        self.shape, self._weights = fused_weights(policy)
        self._gradient = FusedGradient(self.shape, self._weights.networks)
        assert isinstance(policy, HybridPolicy)
        self.actor = FusedActor(policy, self.shape, self._weights)
        self._compile()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is an engine of the copied policy: views into arrays would not stay views."""
        return type(self), (self._policy,)

    def _compile(self) -> None:
        """Have the kernels compiled, or read from the cache, before a training begins."""
        self.actor.begin(1, 1)
        self.actor.compile()
        first, loss = np.zeros((1, 1), np.int64), Loss(*np.ones(8, np.float32))
        states = th.zeros(1, self.shape.states, self.shape.size)
        sample, starts = self.actor.rollout.rows[0], np.zeros((1, 1), np.float32)
        rollout = self._gradient.sequences_of(sample, starts, [states] * (self.shape.memories > 0))
        gradients, _ = self._gradient.of(rollout, first, loss, shards=1)
        self._weights.descend(gradients[0], self._policy.optimizer, max_norm=1.0)

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Work with torch's number of threads, while torch has one in each."""
        with one_torch_thread() as threads:
            if self.workers.count != min(threads, MAX_THREADS):
                workers = ThreadPool(min(threads, MAX_THREADS))
                self.actor.join(workers)
                self._gradient.join(workers)
                self.workers = workers  # last, or an interrupt would leave the others without
            yield

    def collect(self, model: PPO, loop: Loop, *, steps: int) -> bool:
        """Fill the buffer by stable-baselines3's loop, whose policy acts by the kernels."""
        policy = model.policy
        assert isinstance(policy, HybridPolicy)
        own: Any = model  # a HybridPPO
        seed = derive_seed(own.stream_seed, "actions", model.num_timesteps)
        self.actor.begin(steps, model.n_envs, seed=seed, first_row=own.shards.first_row)
        policy.act = self.actor.act
        policy.values = self.actor.values
        policy.valued_rows = model.n_envs if model.n_envs > 1 else 0
        try:
            with self.threads():
                return loop()
        finally:
            policy.act = policy.values = None

    def shown(self) -> Floats:
        """Inputs and masks [T, N, F + M] of the last rollout, a view."""
        return self.actor.rollout.shown

    def show(self, shown: Floats) -> None:
        """Learn next from a rollout whose inputs and masks these are."""
        self.actor.rollout.begin(*shown.shape[:2])
        self.actor.rollout.show_all(shown)

    def update(self, model: PPO, *, dual_clip: float | None) -> None:
        """Improve the policy by the rollout of `model` and record what PPO records.

        Raises ValueError where the weights contain NaN or infinity, as torch would.
        """
        optimizer = self._policy.optimizer
        model._update_learning_rate(optimizer)
        ranges, tally = ranges_of(model, dual_clip), Tally()
        self._weights.load()
        self._weights.load_optimizer(optimizer)
        with self.threads():
            rows = self._rows(model.rollout_buffer)
            epochs, explained_variance = self._drawn(model)
            for minibatches in epochs:
                whole = self._epoch(model, rows, minibatches, ranges=ranges, tally=tally)
                model._n_updates += 1
                if not whole:
                    break
        self._weights.store(optimizer)
        self.actor.rollout.steps = 0  # used up
        record(model, ranges, tally, fit=explained_variance)
        if not np.isfinite(self._weights.weights).all():
            raise ValueError("the policy's weights are no longer finite")

    def _rows(self, buffer: RolloutBuffer) -> Sequences:
        """The samples in `buffer`, in the order in which they were collected."""
        rollout = self.actor.rollout
        if rollout.steps != buffer.buffer_size:  # they were collected in another way
            rollout.begin(buffer.buffer_size, buffer.n_envs)
            seen = th.as_tensor(buffer.observations).flatten(end_dim=1)
            features = shown_to(self._policy, seen)
            rollout.show_all(features.reshape(*buffer.values.shape, -1))
        policy: Any = self._policy
        kept: list[th.Tensor] = policy.rollout.kept if self.shape.memories else []
        return self._gradient.sequences_of(rollout.complete(buffer), buffer.episode_starts, kept)

    def _drawn(self, model: Any) -> tuple[list[list[Minibatch]], float]:
        """The minibatches of each pass over the rollout, and what the values explain of it."""
        shards: Shards = model.shards
        seed, exchange, buffer = model.stream_seed, model.exchange, model.rollout_buffer
        pieces, update = self._pieces(buffer, shards), model.num_timesteps
        size, count = pieces.shape[1], model.batch_size // self.shape.length // shards.total
        cuts = []
        for epoch in range(model.n_epochs):
            order = permutations(shards, size, seed=seed, update=update, epoch=epoch)
            taken = np.take_along_axis(pieces, order, axis=1)
            cuts.append(np.split(taken, range(count, size, count), axis=1))
        advantages = buffer.advantages.reshape(-1)
        own = [
            sums_and_squares(advantages[self._samples_of(cut, buffer)])
            for epoch in cuts
            for cut in epoch
        ]
        numbers = np.concatenate([*own, _sums_of_returns(buffer, shards)], axis=1)
        whole = sum_of_leaves(of_all_shards(numbers, exchange))
        moments = iter(whole[:-4].reshape(-1, 2))
        samples = shards.total * shards.rows * buffer.buffer_size
        each = samples // size  # of one piece of every shard
        epochs = [
            [Minibatch(cut, cut.shape[1] * each, next(moments)) for cut in one] for one in cuts
        ]
        return epochs, _explained_variance(whole[-4:], samples)

    def _pieces(self, buffer: RolloutBuffer, shards: Shards) -> Whole:
        """What the minibatches are made of [S, N], shard by shard: each chunk's first sample."""
        # Row by row, as stable-baselines3 counts samples; these numbers are step by step.
        every = np.arange(buffer.buffer_size * buffer.n_envs).reshape(buffer.buffer_size, -1)
        return every[:: self.shape.length].T.reshape(shards.here, -1)

    def _samples_of(self, pieces: Whole, buffer: RolloutBuffer) -> Whole:
        """Numbers [S, N] of the samples of `pieces` [S, M], step by step."""
        steps = np.arange(self.shape.length) * buffer.n_envs
        samples: Whole = (pieces[..., None] + steps).reshape(len(pieces), -1)
        return samples

    def _epoch(
        self,
        model: PPO,
        rows: Sequences,
        minibatches: Sequence[Minibatch],
        *,
        ranges: ClipRanges,
        tally: Tally,
    ) -> bool:
        """Take the gradient steps of one pass; False where the divergence stopped it."""
        tally.last_kl.clear()
        own: Any = model  # a HybridPPO
        shards: int = own.shards.total
        for one in minibatches:
            loss = _loss(model, one, ranges)
            gradients, sums = self._gradient.of(rows, one.asked, loss, shards=shards)
            found = own.exchange.sum_up(gradients, sums, shards=shards)
            means = found.terms / one.samples
            batch = self._measured(model, means, bounds=ranges.dual_clip is not None)
            tally.add(batch)
            if model.target_kl is not None and batch.kl > 1.5 * model.target_kl:
                return False
            if self.before_step is not None:
                self.before_step()
            self._weights.descend(
                found.gradient, self._policy.optimizer, max_norm=model.max_grad_norm
            )
        return True

    def _measured(self, model: PPO, means: Doubles, *, bounds: bool) -> Losses:
        policy, value, entropy = (float(means[k]) for k in (POLICY, VALUE, ENTROPY))
        ratios = self.shape.heads.ratios
        return Losses(
            total=policy + model.ent_coef * entropy + model.vf_coef * value,
            policy=policy,
            value=value,
            entropy=entropy,
            clip_fraction=float(means[CLIPPED]) / ratios,
            kl=float(means[DIVERGENCE]),
            dual_clip_fraction=float(means[DUAL_CLIPPED]) / ratios if bounds else None,
        )


def _loss(model: PPO, minibatch: Minibatch, ranges: ClipRanges) -> Loss:
    """The loss of `minibatch`."""
    mean, deviation, count, moments = 0.0, 1.0, minibatch.samples, minibatch.advantages
    if model.normalize_advantage and count > 1:
        mean = moments[0] / count
        deviation = np.sqrt(max(moments[1] - moments[0] * mean, 0.0) / (count - 1)) + 1e-8
    numbers = (
        1.0 / count,
        mean,
        deviation,
        ranges.clip,
        ranges.dual_clip or 0.0,
        ranges.clip_value or 0.0,
        model.ent_coef,
        model.vf_coef,
    )
    return Loss(*map(np.float32, numbers))


def sums_and_squares(numbers: Floats) -> Doubles:
    """Sums, and sums of squares, [S, 2] of `numbers` [S, N]."""
    exact = numbers.astype(np.float64)
    return np.stack([exact.sum(axis=1), np.square(exact).sum(axis=1)], axis=1)


def _sums_of_returns(buffer: RolloutBuffer, shards: Shards) -> Doubles:
    """Sums [S, 4] of the returns, of their squares, and of what the values leave of them."""
    size = buffer.buffer_size, shards.here, shards.rows
    returns, values = (
        one.reshape(size).swapaxes(0, 1).reshape(shards.here, -1)
        for one in (buffer.returns, buffer.values)
    )
    return np.concatenate([sums_and_squares(returns), sums_and_squares(returns - values)], axis=1)


def _explained_variance(sums: Doubles, samples: int) -> float:
    """1 - Var[returns - values] / Var[returns] from `sums` [4]; NaN where all are equal."""
    whole, left = (sums[k + 1] - sums[k] * sums[k] / samples for k in (0, 2))
    return float(1.0 - left / whole) if whole > 0.0 else float("nan")
