"""Games played by a person or by a list of commands: one row, recorded as it is played."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.terminal_play import GameRequest, GameView, TerminalPlay
from aimbot_lab.foundation.world import step_buffers
from aimbot_lab.replay.episode import About, RecordedEpisode, Replay, RowRecorder, as_replay
from aimbot_lab.worlds.registry import make_world, world_types


def playable_world(name: str | None = None) -> TerminalPlay:
    """How the world `name` is played in a terminal, or the first that can be.

    Raises ConfigurationError where there is none.
    """
    worlds = world_types()
    found = {key: one.terminal for key, one in worlds.items() if one.terminal is not None}
    if name is None and found:
        return next(iter(found.values()))
    if name is None or name not in found:
        known = ", ".join(found) or "none"
        raise ConfigurationError(f"--world: {name} can't be played in a terminal (valid: {known})")
    return found[name]


class PlaySession:
    """One game after another of what `request` asks for, each recorded.

    `lifted` says whether the fog was ever lifted in the game. Raises ConfigurationError where the
    world has no such game.
    """

    def __init__(self, play: TerminalPlay, request: GameRequest, *, seed: int, fog: bool) -> None:
        game = play.game(request)
        self.play, self.seed = play, seed
        self.world: Any = make_world(game.settings)
        self.world.keep_endings = True
        self.world.set_scenario(game.scenario)
        self._fog_at_first = fog
        self._buffers = step_buffers(self.world)
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Begin the game of `seed`, always the same; what runs is broken off."""
        self.seed = seed
        self.world.reset(seed, self._buffers.observations)
        self._recorder = RowRecorder(self.world, 0)
        self._episode: RecordedEpisode | None = None
        self.fog, self.lifted = self._fog_at_first, not self._fog_at_first

    def lift_fog(self) -> None:
        """Show what was never seen, from now to the end of the game, or hide it again."""
        self.fog, self.lifted = not self.fog, True

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self._episode is not None

    def act(self, command: str) -> None:
        """Do what the word says in a game that goes on."""
        actions = np.array([self.play.commands[command]], np.float32)
        batch = self.world.step(actions, self._buffers)
        self._episode = self._recorder.add(actions, batch)

    def view(self) -> GameView:
        """What is seen now."""
        return self.play.view(self.world, fog=self.fog, ended=self.over)

    def window(self) -> Sequence[str]:
        """What the row sees at this moment, in signs."""
        return self.play.window(self.world, ended=self.over)

    def frame(self) -> Mapping[str, Any]:
        """Raw data as plain values."""
        return self.play.frame(self.world, ended=self.over)

    def result_lines(self) -> list[str]:
        """How the game ended: the result line, then its numbers, and whether the fog was lifted."""
        if self._episode is None:
            return []
        numbers = self.play.result(self.world)
        words = ", ".join(f"{name} {value:.6g}" for name, value in numbers.items())
        fog = "; the fog was lifted" if self.lifted else ""
        return [self._episode.line, f"{words}{fog}"]

    def replay(self) -> Replay:
        """The game as a replay. Raises LabError where it did not end."""
        if self._episode is None:
            raise LabError("no replay is saved: the game did not end")
        about: About = {
            "player": "a person",
            "seed": self.seed,
            "fog": "lifted" if self.lifted else "on",
        }
        return as_replay(self._episode, about)
