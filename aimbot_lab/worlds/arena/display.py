"""What is shown of the arena: its scenes, and how recorded episodes begin and play."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import atan2
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.display import (
    ENEMY,
    NOTHING,
    WALL,
    ArrowKeys,
    Body,
    Colour,
    Control,
    Gauge,
    Indicator,
    MakeWorld,
    Mouse,
    ReplayRow,
    RowArrays,
    Scene,
    SceneEditor,
    SceneRenderer,
    SceneView,
    WorldReplays,
    WorldScenes,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.world import Float32Array, Scenario, StepBuffers, WorldSpec
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import AT, BLOCK_SIZE, ArenaState
from aimbot_lab.worlds.arena.scenes.placing import RowRecord
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import FIRED, HIT, NAMES, clock

if TYPE_CHECKING:
    from aimbot_lab.worlds.arena.arena import Arena

DIGITS = 6  # of metres and radians that a page is sent
RAY_DIGITS = 4
ATTACK_COLUMN = 2  # of an action


def row_view(
    state: ArenaState, row: int, *, rays: int, record: RowRecord | None = None
) -> SceneView:
    """What stands in `row` and what its `rays` meet; with `record` every block that stands."""
    numbers = state.parameters[row]
    (x, z), (base_x, base_z, diameter) = state.position[row].tolist(), state.fire_base[row].tolist()
    _, left = clock(state, row)
    return SceneView(
        size=float(numbers[AT.floor_size]),
        x=_short(x),
        z=_short(z),
        yaw=_short(float(state.yaw[row])),
        radius=float(numbers[AT.agent_radius]),
        view_angle=float(numbers[AT.rays_view_angle]),
        ready=bool(state.gun_ticks[row] <= 0),
        boxes=tuple(map(_box, state.obstacles[row, : int(state.obstacle_count[row])].tolist())),
        plots=_plots(state, row, record),
        circle=(_short(base_x), _short(base_z), diameter / 2) if diameter else None,
        bodies=_bodies(state, row),
        rays=_rays(state, row, rays),
        ray_range=float(numbers[AT.rays_range]),
        heights=(core.EYE_HEIGHT, core.WALL_HEIGHT, core.BODY_HEIGHT),
        target=_target(state, row),
        goal=goal(state, row),
        seconds_left=None if state.target[row] == core.TARGET.stay else round(left, 2),
    )


def _short(number: float) -> float:
    return round(number, DIGITS)


def _box(box: list[float]) -> tuple[float, float, float, float]:
    low_x, low_z, high_x, high_z = map(_short, box)
    return low_x, low_z, high_x, high_z


def _plots(
    state: ArenaState, row: int, record: RowRecord | None
) -> tuple[tuple[float, float, float, float], ...]:
    corners = [(block.x, block.z) for block in record.blocks] if record else []
    if not record and state.preset[row] >= 0:
        corners = [tuple(state.block[row].tolist())]
    return tuple(_box([x, z, x + BLOCK_SIZE, z + BLOCK_SIZE]) for x, z in corners)


def _bodies(state: ArenaState, row: int) -> tuple[Body, ...]:
    radius = float(state.parameters[row, AT.enemy_radius])
    free = state.target[row] == core.TARGET.free
    return tuple(
        Body(
            x=_short(float(state.enemies[row, k, 0])),
            z=_short(float(state.enemies[row, k, 1])),
            radius=radius,
            hits_left=int(state.enemy_hits_left[row, k]),
            counts=bool(free or state.enemy_is_target[row, k]),
        )
        for k in range(int(state.enemy_count[row]))
    )


def _rays(state: ArenaState, row: int, rays: int) -> tuple[tuple[float, float, int], ...]:
    reach = float(state.parameters[row, AT.rays_range])
    met = np.minimum(state.ray_distance[row, :rays].astype(np.float64), reach)
    found = []
    for ray in range(rays):
        angle = atan2(float(state.ray_sin[row, ray]), float(state.ray_cos[row, ray]))
        seen = state.ray_distance[row, ray] <= reach
        kind = (ENEMY if state.ray_hit[row, ray] >= 0 else WALL) if seen else NOTHING
        found.append((round(angle, RAY_DIGITS), round(float(met[ray]), RAY_DIGITS), kind))
    return tuple(found)


def _target(state: ArenaState, row: int) -> str:
    level, name = int(state.difficulty[row]), NAMES[int(state.target[row])].capitalize()
    return f"{name}, difficulty {level}" if level else name


MOUSE = 3  # column of an action
BACK = 2  # and left: index of a branch whose 1 is ahead or right


def arrow_keys(action: Float32Array | None) -> ArrowKeys:
    """Which way the agent walks by `action` [4]."""
    ahead, side = (0, 0) if action is None else (int(action[0]), int(action[1]))
    return ArrowKeys(up=ahead == 1, down=ahead == BACK, left=side == BACK, right=side == 1)


class WalkerScenes(WorldScenes):
    """How a person moves an agent that walks, turns and shoots."""

    def mouse(self, settings: Any) -> Mouse:
        """The mouse turns the agent."""
        return Mouse(MOUSE, settings.mouse_limit, settings.mouse_factor)

    def action(self, *, right: int, ahead: int, attack: bool, mouse: float) -> Float32Array:
        """Vertical, horizontal, attack, mouse."""
        vertical, horizontal = (BACK if way < 0 else way for way in (ahead, right))
        return np.array([vertical, horizontal, attack, mouse], np.float32)


class ArenaScenes(WalkerScenes):
    """Rows of the arena; nothing heavy is loaded before one is looked at."""

    resting = Scenario({"stay": 1.0})

    def editor(self, world: "Arena") -> SceneEditor:
        """The test mode of the arena."""
        from aimbot_lab.worlds.arena.scenes.files import ArenaEditor

        return ArenaEditor(world)

    def view(
        self,
        world: "Arena",
        row: int,
        *,
        ended: bool = False,
        before: SceneView | None = None,
        action: Float32Array | None = None,
    ) -> SceneView:
        """`row` now, or as its last episode ended."""
        last = world.ended_state if ended else None
        state = world.state if last is None else last
        record = world.records.get(row)
        if record is not None and record.episode != state.episode[row]:
            record = None
        shown = row_view(state, row, rays=world.settings.rays.count, record=record)
        if before is None or action is None:
            return shown
        fired = before.ready and bool(action[ATTACK_COLUMN] > 0)
        pairs = zip(before.bodies, shown.bodies, strict=False)
        hits = [k for k, (old, new) in enumerate(pairs) if new.hits_left < old.hits_left]
        return replace(shown, fired=fired, hit=hits[0] if fired and hits else -1)

    def replayed(self, settings: ArenaSettings, state: Any) -> SceneView:
        """The row that a renderer is given; its hit enemy, as it was before the shot."""
        row, hit = state
        return replace(row_view(row, 0, rays=settings.rays.count), hit=hit)


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


class ArenaReplayRow:
    """The arena that goes on from `start`. Raises MisuseError where that is none of an arena."""

    def __init__(self, settings: ArenaSettings, start: RowArrays) -> None:
        from aimbot_lab.worlds.arena.arena import solo_arena

        self.world = solo_arena(settings, start)
        self.world.keep_endings = True

    def beginning(self) -> Scene:
        """The row before the first decision."""
        return _scene(self.world.state, {FIRED: 0, HIT: 0}, hit=-1)

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
    return Scene(
        terms=state.terms[0, : len(core.REWARD_TERMS)].copy(),
        seconds=clock(state)[0],
        time_limit=float(state.parameters[0, AT.time_limit]),
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
    choice_words = core.CHOICE_WORDS

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
        mouse = 0.0 if action is None else float(action[3])
        limit = float(scene.state[0].parameters[0, AT.mouse_limit])
        return (
            arrow_keys(action),
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
