"""Actions for many observations, shared by threads."""

import numpy as np

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.threads.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.branches import choose_actions
from aimbot_lab.training.fused.core.features import Sight, see
from aimbot_lab.training.fused.core.net import forward
from aimbot_lab.training.fused.core.parts import (
    Chances,
    Desk,
    Drawn,
    Floats,
    Networks,
    Room,
    Shown,
    Turn,
)

AT_STEP, SEES = range(2)  # numbers of a turn: whose rows, and whether these are to be written

ZERO = np.float32(0.0)


@inlined
def show(shown: Shown, sight: Sight, masks: int, step: int, first: int, last: int) -> None:
    """Write what the networks see of the rows `first` to `last`, with `masks` columns behind."""
    size = sight.columns.size
    for row in range(first, last):
        out = shown.rows[step, row]
        see(shown.observations[row], shown.own[row], sight, out)
        for k in range(masks):
            out[size + 5 + k] = shown.observations[row, size + k]


@called
def draw(networks: Networks, room: Room, features: Floats, chances: Chances, drawn: Drawn) -> None:
    """Write to `drawn` actions for `features` [N, F + M or more]; `room` is for N samples.

    Two threads may write the same row at the same time: what is read back must not be written.
    """
    samples = room.samples
    size = samples.inputs.shape[1]
    for n in range(features.shape[0]):
        for column in range(size):
            samples.inputs[n, column] = features[n, column]
        for column in range(samples.masks.shape[0]):
            samples.masks[column, n] = features[n, size + column]
    forward(networks, room)
    choose_actions(room.head, chances, samples.actions, networks.starts, networks.net.log_std)
    branches, ratios = samples.actions.shape[0], drawn.log_probs.shape[1]
    for n in range(features.shape[0]):
        drawn.values[n, 0] = room.head.values[n, 0]
        whole = ZERO
        for k in range(branches):
            drawn.actions[n, k] = samples.actions[k, n]
            whole += room.head.log_probs[k, n]
        for k in range(ratios):
            drawn.log_probs[n, k] = whole if ratios == 1 else room.head.log_probs[k, n]


@kernel
def act(
    networks: Networks,
    sight: Sight,
    shown: Shown,
    chances: Chances,
    drawn: Drawn,
    turn: Turn,
    desk: Desk,
) -> None:
    """Draw an action for every row of a turn's step, as one of its threads.

    The rows go piece by piece to the thread that takes them; a piece has as many as the desk's
    room, and the last one ends with the last row, though others may have had its first ones. A
    worker goes on as long as there is work in time.
    """
    worker, count, rows = desk.number - 1, desk.room.ones.size, shown.rows.shape[1]
    while worker < 0 or begins(turn.words, worker, desk.looks):
        step = turn.numbers[AT_STEP]
        piece = add(turn.taken, 0, 1)
        while piece * count < rows:
            last = min((piece + 1) * count, rows)
            first = last - count
            if turn.numbers[SEES]:
                show(shown, sight, desk.room.samples.masks.shape[0], step, first, last)
            features = shown.rows[step, first:last]
            own = Chances(chances.uniform[first:last], chances.normal[first:last])
            into = Drawn(
                drawn.actions[first:last], drawn.values[first:last], drawn.log_probs[first:last]
            )
            draw(networks, desk.room, features, own, into)
            piece = add(turn.taken, 0, 1)
        if worker < 0:
            wait_for_workers(turn.words, desk.looks)
            return
        finish(turn.words, worker)
