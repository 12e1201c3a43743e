"""Parts of a deployed network that others leave to the world's adapter or to torch's own LSTM."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch as th
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from torch import nn

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.parts.unit_kinds import target_blocks
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy

State = tuple[th.Tensor, th.Tensor]  # hidden and cell, [N, layers H] each


class AimedMouse(nn.Module):
    """The mouse that turns by an offset from the unit that was chosen, as `TargetCodec` does it."""

    seen: th.Tensor  # [U] columns of an observation
    ahead: th.Tensor  # [U]
    right: th.Tensor  # [U]

    def __init__(self, spec: WorldSpec) -> None:
        super().__init__()
        blocks = target_blocks(spec)
        assert spec.turn_per_unit is not None
        self.slots, self._turn = sum(block.slots for block in blocks), float(spec.turn_per_unit)
        places = [(block.seen or "", *(block.place or ("", ""))) for block in blocks]
        for number, name in enumerate(("seen", "ahead", "right")):
            parts = [b.column_of(p[number]) for b, p in zip(blocks, places, strict=True)]
            self.register_buffer(name, th.as_tensor(np.concatenate(parts)), persistent=False)
        (low,), (high,) = spec.action_bounds
        self._low, self._high = float(low), float(high)

    def forward(self, target: th.Tensor, mouse: th.Tensor, observation: th.Tensor) -> th.Tensor:
        """[N] for choices [N] (0 nobody), the mouse [N] and raw observations [N, D]."""
        slot = (target - 1).clamp_min(0).unsqueeze(1)
        seen, ahead, right = (
            observation[:, columns].gather(1, slot).squeeze(1)
            for columns in (self.seen, self.ahead, self.right)
        )
        chosen = (target > 0) & (seen > 0.5)
        bearing = th.atan2(right, th.where(chosen, ahead, th.ones_like(ahead)))
        used = (bearing / self._turn + mouse).clamp(self._low, self._high)
        return th.where(chosen, used, mouse)


class Cell(NamedTuple):
    """The weights of one layer of long short-term memory, gates i f g o."""

    of_input: th.Tensor  # [4 H, I]
    of_hidden: th.Tensor  # [4 H, H]
    bias: th.Tensor  # [4 H]

    def step(self, given: th.Tensor, hidden: th.Tensor, cell: th.Tensor) -> State:
        """(hidden, cell) [N, H] after `given` [N, I], in products and gates alone."""
        gates = given @ self.of_input.T + hidden @ self.of_hidden.T + self.bias
        i, f, g, o = gates.chunk(4, dim=1)
        after = th.sigmoid(f) * cell + th.sigmoid(i) * th.tanh(g)
        return th.sigmoid(o) * th.tanh(after), after


class DeployedMemory(nn.Module):
    """What an actor remembers, one step at a time: layers on top of each other."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        super().__init__()
        self._count = len(cells)
        self.hidden_size = cells[0].of_hidden.shape[1]
        for name, weight in chain.from_iterable(
            (zip(_names(number), cell, strict=True) for number, cell in enumerate(cells))
        ):
            self.register_buffer(name, weight, persistent=False)

    @property
    def size(self) -> int:
        """Numbers of each of hidden and cell."""
        return self._count * self.hidden_size

    def forward(self, given: th.Tensor, state: State) -> tuple[th.Tensor, State]:
        """(output [N, H], state after) of `given` [N, I]."""
        befores = [th.split(part, self.hidden_size, dim=1) for part in state]
        afters: list[State] = []
        for number, before in enumerate(zip(*befores, strict=True)):
            cell = Cell(*(getattr(self, name) for name in _names(number)))
            afters.append(cell.step(given, *before))
            given = afters[-1][0]
        hidden, kept = zip(*afters, strict=True)
        return given, (th.cat(hidden, dim=1), th.cat(kept, dim=1))


def _names(layer: int) -> tuple[str, str, str]:
    return f"of_input_{layer}", f"of_hidden_{layer}", f"bias_{layer}"


def deployed_memory(policy: Any) -> DeployedMemory | None:
    """The memory of the actor of `policy`; None: it has none."""
    if isinstance(policy, RememberingPolicy) and policy.memory_shape is not None:
        layer = policy.memory.cell
        weights: list[tuple[th.Tensor, ...]] = [
            (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
        ]
    elif isinstance(policy, RecurrentActorCriticPolicy):
        lstm: Any = policy.lstm_actor
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        layers = range(lstm.num_layers)
        weights = [tuple(getattr(lstm, f"{name}_l{k}") for name in names) for k in layers]
    else:
        return None
    detached = ([weight.detach() for weight in each] for each in weights)
    return DeployedMemory([Cell(w_in, w_on, b_in + b_on) for w_in, w_on, b_in, b_on in detached])


def remembered_scores(
    policy: Any, memory: DeployedMemory, seen: th.Tensor, state: State
) -> tuple[th.Tensor, State]:
    """(what the actor's last layer gives, state after) for what the policy is shown [N, D]."""
    features = policy.pi_features_extractor(seen)
    core = features.shape[1] - getattr(policy, "passed", 0)
    output, after = memory(features[:, :core], state)
    latent = policy.mlp_extractor.forward_actor(th.cat([output, features[:, core:]], dim=1))
    return policy.action_net(latent), after
