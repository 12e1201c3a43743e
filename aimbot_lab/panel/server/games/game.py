"""A row of a world that goes on decision by decision, by an actor or a person."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.scenes.view import SceneView
from aimbot_lab.foundation.world import Float32Array, Scenario, step_buffers
from aimbot_lab.panel.server.games.actors import Actor, scenes_of
from aimbot_lab.panel.server.result_words import ResultLine, readable

if TYPE_CHECKING:
    from aimbot_lab.evaluation.matches import MatchPlayer


@dataclass(frozen=True)
class Keys:
    """What a person holds and has done with the mouse since the game was opened."""

    ahead: int = 0  # -1, 0 or 1
    right: int = 0
    attack: bool = False
    mouse: float = 0.0  # units of the action, summed; to the right


@dataclass(frozen=True)
class Frame:
    """What a page is shown after a decision."""

    number: int  # of decisions since the game was opened
    view: dict[str, Any]  # a SceneView
    mouse: float  # of `Keys.mouse`, what has become a turn or was too much
    actions: dict[str, float]  # by their names


class Game:
    """One row of the actor's world, in which episodes of `scenario` are played.

    In a world of matches the actor is a person at home, and `rival` plays away.
    """

    def __init__(
        self,
        actor: Actor,
        scenario: Scenario,
        *,
        seed: int,
        rival: "MatchPlayer | None" = None,
    ) -> None:
        from aimbot_lab.worlds.registry import make_world

        self.actor, self.scenes = actor, scenes_of(actor.settings)
        self.world: Any = make_world(actor.settings)
        self.world.keep_endings = True
        self.world.set_scenario(scenario)
        self.buffers = step_buffers(self.world)
        self.world.reset(seed, self.buffers.observations)
        self._act = None if actor.make is None else actor.make(self.world, seed)
        self._rival = None if rival is None else rival.sit(seed)
        seats = len(self.buffers.rewards)
        self._masks = np.ones((seats, sum(self.world.spec.branches)), np.bool_)
        self._starts = np.ones(seats, np.bool_)
        self._mouse = self.scenes.mouse(actor.settings)
        self._mouse_taken = 0.0
        self._number = 0
        self._names = self.world.spec.action_names
        self.actions: Float32Array = np.zeros((seats, len(self._names)), np.float32)
        self.keys = Keys()
        self.holds_still = False
        self.view: SceneView = self.scenes.view(self.world, 0)
        self._before = self.view

    @property
    def seconds(self) -> float:
        """Between two decisions."""
        return float(self.world.spec.decision_seconds)

    @property
    def mouse_limits(self) -> tuple[float, float]:
        """Bound of the mouse's column, and rad turned by one unit of it."""
        return self._mouse.limit, self._mouse.radians

    def decide(self) -> EpisodeBatch:
        """What ended with one more decision."""
        self.actions = self._made()
        batch: EpisodeBatch = self.world.step(self.actions, self.buffers)
        ended = bool(batch)
        self.view = self.scenes.view(
            self.world, 0, ended=ended, before=self._before, action=self.actions[0]
        )
        self._before = self.scenes.view(self.world, 0) if ended else self.view
        self._starts[:] = ended
        self._number += 1
        return batch

    def edited(self, *, shown: bool = True) -> None:
        """Let who acts know that the row is another now; and show it, if it is to be."""
        self._starts[:] = True
        self._before = self.scenes.view(self.world, 0)
        if shown:
            self.view = self._before

    def frame(self) -> Frame:
        """What a page is shown now."""
        return Frame(
            number=self._number,
            view=asdict(self.view),
            mouse=self._mouse_taken,
            actions=dict(zip(self._names, self.actions[0].tolist(), strict=True)),
        )

    def _made(self) -> Float32Array:
        """What all do in the next decision, [N, A]."""
        own = self._chosen()[None]
        if self._rival is None:
            return own
        self.world.action_masks(self._masks)
        seen = self.buffers.observations[1:]
        return np.concatenate([own, self._rival.act(seen, self._masks[1:], self._starts[1:])])

    def _chosen(self) -> Float32Array:
        if self.holds_still:
            return self.scenes.action(right=0, ahead=0, attack=False, mouse=0.0)
        if self._act is not None:
            actions: Float32Array = self._act(self.buffers.observations, self._starts)
            first: Float32Array = actions[0].copy()
            return first
        moved, self._mouse_taken = self.keys.mouse - self._mouse_taken, self.keys.mouse
        limit = self._mouse.limit
        return self.scenes.action(
            right=self.keys.right,
            ahead=self.keys.ahead,
            attack=self.keys.attack,
            mouse=max(-limit, min(moved, limit)),
        )


def line_of(batch: EpisodeBatch) -> ResultLine:
    """How the episode in `batch` ended."""
    return readable(result_line(batch, 0))
