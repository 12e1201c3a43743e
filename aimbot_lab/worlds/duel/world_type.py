"""The duel, as others know it, with its scenes, and how recorded matches begin and play."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from aimbot_lab.foundation.display import (
    Colour,
    Control,
    FilmPainter,
    Gauge,
    Indicator,
    MakeWorld,
    ReplayRow,
    RowArrays,
    Scene,
    SceneRenderer,
    SceneView,
    WorldReplays,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import BatchWorld, Float32Array, StepBuffers, WorldSpec
from aimbot_lab.foundation.world_type import Bounds, KeptFiles, MakePlayer, Opponents
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.display import WalkerScenes, action_words, arrow_keys
from aimbot_lab.worlds.arena.spec import FIRED, clock
from aimbot_lab.worlds.duel.core.state import (
    AWAY,
    IN_SEATS,
    KINDS,
    LEARNED,
    LEVELS,
    OF_SEATS,
    SCRIPTS,
    SELF,
    SHARED,
    TARGET,
    DuelState,
)
from aimbot_lab.worlds.duel.layouts import (
    FORM,
    kept_layouts,
    lacking_fault,
    layout_count,
    layouts_of,
    listed_layouts,
)
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.settings import (
    DECLARED,
    DuelSettings,
    SelfPlayDuelSettings,
    one_match,
    parameter_bounds,
    parameter_fault,
)
from aimbot_lab.worlds.duel.spec import (
    ENDINGS,
    HURT,
    duel_spec,
    events,
    goal,
    seat_names,
    targets_of,
)
from aimbot_lab.worlds.parameters import KernelType, setting_text

if TYPE_CHECKING:
    from PIL.Image import Image

    from aimbot_lab.worlds.duel.duel import Duel

OF_ALL = ("sampler_key", "clock")  # arrays that no match has one of its own in


HASHED = ("health", "terms", "shot")
HASHED_OF_SEATS = ("position", "yaw", "gun_ticks")


class MatchReplayRow:
    """The match that goes on from `start`. Raises MisuseError where that is of no such world."""

    def __init__(self, settings: DuelSettings, start: RowArrays, make: MakeWorld) -> None:
        self.world: BatchWorld = make(settings)
        self.world.restore(start)
        self.world.keep_endings = True
        self._duel: Duel = cast(Any, self.world).duel

    def beginning(self) -> Scene:
        """The match before the first decision."""
        return _scene(self._duel.state)

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The match after `actions` [agents, 4], and what ended."""
        batch = self.world.step(actions, buffers)
        state = (self._duel.ended_state if batch else None) or self._duel.state
        return _scene(state), batch


def _scene(state: DuelState) -> Scene:
    seats = state.seats
    return Scene(
        terms=state.terms[0].copy(),
        seconds=clock(seats)[0],
        time_limit=float(seats.parameters[0, arena_core.AT.time_limit]),
        state=state,
        goal=goal(state),
        events=events(state),
        trajectory=(
            *(getattr(state, name) for name in HASHED),
            *(getattr(seats, name) for name in HASHED_OF_SEATS),
        ),
    )


class DuelReplays(WorldReplays):
    """Matches of the duel; nothing heavy is loaded before one is recorded or played.

    A match is kept with the actions of both agents, whichever learns: who sat opposite, such as a
    past self, need not be there to play it again.
    """

    result_terms = MappingProxyType({WIN: "win", LOSS: "win"})
    choice_words = arena_core.CHOICE_WORDS

    def colours(self) -> Sequence[Colour]:
        """What pictures and films hold."""
        from aimbot_lab.worlds.duel.draw import COLOURS
        from aimbot_lab.worlds.duel.film import FILM_COLOURS

        return (*COLOURS, *FILM_COLOURS)

    def row_start(self, world: Any, row: int) -> RowArrays | None:
        """The match's values, before the first decision.

        None for the away rows of mirrored matches: the home rows are of the same ones.
        """
        # With a world, which is compiled, there is more to load than this module alone needs.
        from aimbot_lab.worlds.kernel_world import FITS, OF_SCENARIO

        duel: Duel = world.duel
        matches = duel.num_envs
        if row >= matches or duel.state.seats.decisions[row] > 0:
            return None
        start = {}
        for name, array in duel.arrays().items():
            if name == FITS or name.startswith(OF_SCENARIO) or name.rpartition(".")[2] in OF_ALL:
                start[name] = array.copy()
            elif name.startswith(IN_SEATS) or len(array) == 2 * matches:
                start[name] = array[[row, row + matches]]
            else:
                start[name] = array[row : row + 1].copy()
        start[FITS] = getattr(world, "match_fits", start[FITS]).copy()
        if row < getattr(world, "mirrored", 0):
            start["kind"][:] = KINDS.index(SELF)  # as its result says
        return start

    def row_settings(self, settings: DuelSettings) -> DuelSettings:
        """The duel of one match in which both seats are played from outside."""
        return one_match(settings)

    def row_actions(self, world: Any, row: int, actions: Float32Array) -> Float32Array:
        """What both agents of match `row` did in the last step, [2, 4]."""
        if world.spec.agents > 1:
            return super().row_actions(world, row, actions)
        made: Float32Array = world.match_actions(row)
        return made

    def kept_row(self, world: Any) -> int:
        """The first match that is not mirrored, where there is one."""
        mirrored: int = getattr(world, "mirrored", 0)
        return mirrored if mirrored < world.duel.num_envs else 0

    def replay_row(self, settings: DuelSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world of one match. Raises MisuseError where `start` is not of one."""
        return MatchReplayRow(settings, start, make)

    def renderer(self, settings: DuelSettings) -> SceneRenderer:
        """Who draws matches from above."""
        from aimbot_lab.worlds.duel.draw import MatchRenderer

        return MatchRenderer(settings)

    def seat_names(self, about: Mapping[str, Any], target: str) -> tuple[str, ...]:
        """Who plays home and away."""
        return seat_names(about, target)

    def film(self, settings: DuelSettings, about: Mapping[str, Any]) -> FilmPainter:
        """Who paints a match as both agents see it, and from above."""
        from aimbot_lab.worlds.duel.film import MatchFrames

        return MatchFrames(settings, about)

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """The home agent's keys, mouse and gun, and whether it was hit."""
        mouse = 0.0 if action is None else float(action[3])
        return (
            arrow_keys(action),
            Gauge("turns", max(-1.0, min(mouse / spec.continuous_limit, 1.0))),
            Indicator("shoots", bool(scene.events[FIRED])),
            Indicator("is hit", bool(scene.events[HURT])),
        )

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """What the home agent does, and whether it was hit."""
        del spec
        words = action_words(action, scene.events)
        return f"{words}, IS HIT" if scene.events[HURT] else words

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How a match of `seconds` ended for the home agent."""
        return f"{ENDINGS.get(outcome, 'LOST')} after {seconds:.1f} s"


class DuelScenes(WalkerScenes):
    """Matches of the duel, which can't be edited; nothing heavy is loaded before one is shown."""

    def view(
        self,
        world: Any,
        row: int,
        *,
        ended: bool = False,
        before: SceneView | None = None,
        action: Float32Array | None = None,
    ) -> SceneView:
        """The match of `row` now, or as its last one ended."""
        from aimbot_lab.worlds.duel.draw import match_view

        del before, action  # the state knows the shots
        duel = world.duel
        last = duel.ended_state if ended else None
        return match_view(
            duel.state if last is None else last,
            row % duel.num_envs,
            rays=duel.settings.rays.count,
        )

    def replayed(self, settings: DuelSettings, state: Any) -> SceneView:
        """The match that a renderer is given."""
        from aimbot_lab.worlds.duel.draw import match_view

        return match_view(state, 0, rays=settings.rays.count)


def _drawn(paths: Sequence[Path]) -> "Image":
    from aimbot_lab.worlds.duel.draw import draw_layout_sheet

    return draw_layout_sheet(layouts_of(paths))


class DuelType(KernelType):
    """Two agents in one hall."""

    name = "duel"
    settings = DuelSettings
    files = KeptFiles(
        key="layouts",
        form=FORM,
        read=kept_layouts,
        listed=listed_layouts,
        count=layout_count,
        draw=_drawn,
    )
    shape_keys = ("rays", "observation", "observed_parameters", "mouse_limit")
    bounding_keys = ("rays", *DECLARED)
    replays = DuelReplays()
    scenes = DuelScenes()
    self_play_targets = LEARNED

    def spec(self, settings: DuelSettings) -> WorldSpec:
        """The shape of a duel with `settings`."""
        return duel_spec(settings)

    def make(self, settings: DuelSettings) -> BatchWorld:
        """A duel with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.duel.duel import Duel
        from aimbot_lab.worlds.duel.opposed import OpposedWorld

        return Duel(settings) if settings.learner == "both" else OpposedWorld(settings)

    def rows(self, settings: DuelSettings) -> int:
        """Matches, and once more those that are mirrored, whose away seats are rows as well."""
        mirrored = settings.mirrored if isinstance(settings, SelfPlayDuelSettings) else 0
        return settings.num_envs + mirrored

    def single_settings(self, settings: DuelSettings) -> DuelSettings:
        """`settings` with home as the only learner."""
        return replace(settings, learner="home")

    def match_settings(self, settings: DuelSettings) -> DuelSettings:
        """`settings` with both agents played from outside."""
        return replace(settings, learner="both")

    def self_play_settings(self, settings: DuelSettings, share: float) -> SelfPlayDuelSettings:
        """The duel with this `share` of its matches mirrored."""
        own = {one.name: getattr(settings, one.name) for one in fields(DuelSettings)}
        mirrored = round(share * settings.num_envs)
        return SelfPlayDuelSettings(**{**own, "learner": "home"}, mirrored=mirrored)

    def make_opposed(self, settings: SelfPlayDuelSettings, opponents: Opponents) -> BatchWorld:
        """A duel against `opponents`, not yet reset."""
        from aimbot_lab.worlds.duel.opposed import OpposedWorld

        return OpposedWorld(settings, opponents=opponents, mirrored=settings.mirrored)

    def targets(self, settings: DuelSettings | None) -> Mapping[str, int]:
        """The duel itself where both agents learn, else who sits opposite; without settings all."""
        names = (TARGET, *SCRIPTS) if settings is None else targets_of(settings)
        return dict.fromkeys(names, LEVELS)

    def baselines(self, settings: DuelSettings) -> Mapping[str, MakePlayer]:
        """Scripted players, from the weakest to the strongest; each plays all seats."""
        return make_players(settings)

    def parameters(self, settings: DuelSettings | None) -> Mapping[str, Bounds]:
        """Every number that a match depends on."""
        del settings
        return parameter_bounds()

    def parameter_texts(self) -> Mapping[str, str]:
        """What the setting of each parameter's name says about itself."""
        plain = {name: setting_text(DuelSettings, name) for name in (*SHARED, *OF_SEATS)}
        return {
            **plain,
            **{AWAY + name: f"The away agent's: {plain[name]}" for name in OF_SEATS},
        }

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: DuelSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those that `settings` declare."""
        return parameter_fault(name, value, settings)

    def drawing_fault(
        self, settings: DuelSettings, target: str, weights: Sequence[float]
    ) -> str | None:
        """Whether each difficulty has a layout, where no shipped ones are."""
        del target, weights
        return lacking_fault(settings)


DUEL = DuelType()
