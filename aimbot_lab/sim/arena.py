"""The arena: a batch of FPS rows behind the `BatchWorld` protocol."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.results import EpisodeResult, format_result_line
from aimbot_lab.foundation.rng import seed_streams
from aimbot_lab.foundation.world import Float32Array, Scenario, StepBuffers, new_step_buffers
from aimbot_lab.sim.core.step import BRANCHES, begin_rows, first_bad_action, step_rows
from aimbot_lab.sim.presets import Preset, load_presets
from aimbot_lab.sim.settings import ArenaSettings
from aimbot_lab.sim.spec import arena_spec
from aimbot_lab.sim.tables import TARGETS, new_log, new_state, new_tables, with_scenario

ACTION_NAMES = ("vertical move", "horizontal move", "attack", "mouse")
TARGET_NAMES = {code: name for name, code in TARGETS.items()}


class Arena:
    """`settings.num_envs` rows of the arena, stepped together.

    `state` holds the named arrays of `sim.core.state.ArenaState`; reading them is free, a
    write takes effect at the next step. `reset` must come first.
    """

    def __init__(self, settings: ArenaSettings, presets: Sequence[Preset] | None = None) -> None:
        self.settings = settings
        self.spec = arena_spec(settings)
        self.num_envs = settings.num_envs
        self._tables = new_tables(settings, load_presets() if presets is None else presets)
        self.state = new_state(settings, self._tables)
        self._log = new_log(self.num_envs)
        self._scratch = np.zeros((4, self._tables.ray_cos.size), np.float32)
        self._nothing_ended = self._batch(np.zeros(0, np.int64))

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError where it names what the arena does not have.
        """
        self._tables = with_scenario(self._tables, self.settings, scenario)
        return self._tables.scenario_number

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B, D]."""
        fresh = new_state(self.settings, self._tables)
        self.restore(fresh._asdict())
        seed_streams(self.state.streams, np.uint64(seed % 2**64))
        buffers = new_step_buffers(self.num_envs, observations.shape[1])
        buffers.finished[:] = True
        begin_rows(self.state, self._tables, self._scratch, buffers, (0, self.num_envs))
        observations[:] = buffers.observations

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        `actions` [B, 4]: vertical, horizontal, attack, mouse. Raises ActionError, with the
        arena as it was, for an action that does not exist.
        """
        bad = first_bad_action(actions)
        if bad >= 0:
            raise ActionError(_describe(actions, *divmod(bad, actions.shape[1])))
        self.state.clock[0] += 1
        span = (0, self.num_envs)
        world = self.state, self._tables, self._scratch
        if step_rows(*world, actions, buffers, self._log, span) == 0:
            return self._nothing_ended
        begin_rows(*world, buffers, span)
        return self._batch(np.flatnonzero(buffers.finished))

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of every state array by name; the scenario in force is not part of it."""
        return {name: array.copy() for name, array in self.state._asdict().items()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Go on from `snapshot`, bit for bit, under the scenario now in force."""
        for name, array in self.state._asdict().items():
            array[...] = snapshot[name]

    def _batch(self, rows: np.ndarray) -> EpisodeBatch:
        log = self._log
        terms = log.terms[rows]
        lines = tuple(
            format_result_line(
                EpisodeResult(
                    won=bool(log.won[row]),
                    target=TARGET_NAMES[int(log.target[row])],
                    difficulty=int(log.difficulty[row]) or None,
                    seconds=float(log.seconds[row]),
                    episode_return=float(terms[index].sum()),
                )
            )
            for index, row in enumerate(rows)
        )
        return EpisodeBatch(
            lines=lines,
            row=rows,
            order=log.order[rows],
            scenario=log.scenario[rows],
            length=log.length[rows],
            terms=terms,
            running_order=self.state.order,
            running_scenario=self.state.scenario,
        )


def _describe(actions: Float32Array, row: int, column: int) -> str:
    value = float(actions[row, column])
    allowed = (
        f"one of {', '.join(str(k) for k in range(BRANCHES[column]))}"
        if column < len(BRANCHES)
        else "any finite number"
    )
    return f"environment {row}: {ACTION_NAMES[column]} is {value:g}; allowed is {allowed}"
