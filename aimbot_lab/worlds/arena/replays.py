"""The arena's part in recorded episodes: how they begin and play, and what they say."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.display import (
    ArrowKeys,
    Colour,
    Control,
    Gauge,
    Indicator,
    MakeWorld,
    ReplayRow,
    RowArrays,
    Scene,
    SceneRenderer,
    WorldReplays,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.world import Float32Array, StepBuffers, WorldSpec
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import AT, ArenaState
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import FIRED, HIT

if TYPE_CHECKING:
    from aimbot_lab.worlds.arena.arena import Arena

MOVES = ("", "forward", "back")
SIDES = ("", "right", "left")


def goal(state: ArenaState, row: int = 0) -> str:
    """What is to be done in `row` of `state`, and how much of it is left."""
    up = state.enemy_hits_left[row, : state.enemy_count[row]] > 0
    if state.target[row] == core.TARGET.goto:
        x, z, _ = state.fire_base[row] - np.array([*state.position[row], 0.0])
        return f"reach the circle: {np.hypot(x, z):.0f} m away"
    if state.target[row] == core.TARGET.attack:
        left = up & state.enemy_is_target[row, : len(up)]
        return f"shoot those in the circle: {int(left.sum())} left"
    return f"shoot them all: {int(up.sum())} left" if state.target[row] == core.TARGET.free else ""


def action_words(action: Float32Array | None, events: Mapping[str, int]) -> str:
    """What the agent does by `action` [4]; it only shoots where the gun was ready."""
    if action is None:
        return "begins"
    words = [MOVES[int(action[0])], SIDES[int(action[1])]]
    mouse = float(action[3])
    words.append(f"turns {abs(mouse):.1f} {'right' if mouse > 0 else 'left'}" if mouse else "")
    words.append("SHOOTS" if events[FIRED] else "")
    return ", ".join(word for word in words if word) or "waits"


HASHED = ("position", "yaw", "enemy_hits_left", "gun_ticks")
HASHED_TERMS = 11  # that the first replays had: later ones would change the hashes of these
NOTHING: Mapping[str, int] = {FIRED: 0, HIT: 0}


class ArenaReplayRow:
    """The arena that goes on from `start`. Raises MisuseError where that is none of an arena."""

    def __init__(self, settings: ArenaSettings, start: RowArrays) -> None:
        from aimbot_lab.worlds.arena.arena import solo_arena

        self.world = solo_arena(settings, start)
        self.world.keep_endings = True

    def beginning(self) -> Scene:
        """The row before the first decision."""
        return _scene(self.world.state, NOTHING, hit=-1)

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The row after `actions` [1, 4], and what ended."""
        from aimbot_lab.worlds.arena.arena import held_rows

        state = self.world.state
        ready = state.gun_ticks[0] <= 0 and not (self.world.tables.recalls and held_rows(state)[0])
        hits_left = state.enemy_hits_left[0].copy()
        batch = self.world.step(actions, buffers)
        after = self.world.ended_state or state
        struck = hits_left > after.enemy_hits_left[0]
        hit = int(struck.argmax()) if struck.any() else -1
        events = {FIRED: int(ready and actions[0, 2] > 0), HIT: int(hit >= 0)}
        return _scene(after, events, hit=hit), batch


def _scene(state: ArenaState, events: Mapping[str, int], *, hit: int) -> Scene:
    numbers = state.parameters[0]
    period = numbers[core.AT.decision_period] * numbers[core.AT.fixed_timestep]
    return Scene(
        terms=state.terms[0, : len(core.REWARD_TERMS)].copy(),
        seconds=float(state.decisions[0] * period),
        time_limit=float(numbers[core.AT.time_limit]),
        state=(state, hit),
        goal=goal(state),
        events=events,
        trajectory=(
            *(getattr(state, name) for name in HASHED),
            state.terms[:, :HASHED_TERMS],
        ),
    )


class ArenaReplays(WorldReplays):
    """Episodes of the arena; nothing heavy is loaded before one is recorded or played."""

    result_terms = MappingProxyType({WIN: "win", LOSS: "lose"})

    def colours(self) -> Sequence[Colour]:
        """What pictures from above hold."""
        from aimbot_lab.worlds.arena.draw import COLOURS

        return COLOURS

    def row_start(self, world: "Arena", row: int) -> RowArrays | None:
        """The row's arrays, where it has made no decision yet."""
        from aimbot_lab.worlds.arena.arena import row_of

        return row_of(world.state, row) if world.state.decisions[row] == 0 else None

    def row_settings(self, settings: ArenaSettings) -> ArenaSettings:
        """`settings` of an arena of one row; target blocks come with the row."""
        from aimbot_lab.worlds.arena.arena import solo_settings

        return solo_settings(settings)

    def start_types(self, settings: ArenaSettings, make: MakeWorld) -> Mapping[str, np.dtype[Any]]:
        """The types of the state's arrays."""
        from aimbot_lab.worlds.arena.allocate import new_state, new_tables
        from aimbot_lab.worlds.arena.arena import OF_ALL_ROWS

        del make
        named = new_state(settings, new_tables(settings, ()), 0)._asdict().items()
        return {name: array.dtype for name, array in named if name not in OF_ALL_ROWS}

    def replay_row(self, settings: ArenaSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """An arena of one row. Raises MisuseError where `start` is not of one."""
        del make
        return ArenaReplayRow(settings, start)

    def renderer(self, settings: ArenaSettings) -> SceneRenderer:
        """Who draws the arena from above."""
        from aimbot_lab.worlds.arena.draw import ArenaRenderer

        return ArenaRenderer(settings)

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """The keys, the mouse and the gun."""
        del spec
        up, side = (0, 0) if action is None else (int(action[0]), int(action[1]))
        mouse = 0.0 if action is None else float(action[3])
        limit = float(scene.state[0].parameters[0, AT.mouse_limit])
        return (
            ArrowKeys(up=up == 1, down=up == 2, left=side == 2, right=side == 1),
            Gauge("turns", mouse / limit),
            Indicator("shoots", bool(scene.events[FIRED])),
        )

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """What the agent does; it only shoots where the gun was ready."""
        del spec
        return action_words(action, scene.events)

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of `seconds` ended; it is lost by the time limit alone."""
        return f"WON after {seconds:.1f} s" if outcome == WIN else "LOST: time is up"
