"""The duel as a world of one agent, who plays home against scripted players."""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.argument_checks import BOOL, FLOAT32, MisuseError, check_writable
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.step_checks import check_buffers
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Picture,
    Scenario,
    StepBuffers,
    step_buffers,
)
from aimbot_lab.worlds.duel.action_checks import checked_actions
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, AGENTS
from aimbot_lab.worlds.duel.core.step import MASKS
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.opposed.opponents import ScriptedOpponents
from aimbot_lab.worlds.duel.scenario import OPPONENTS
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.spec import duel_spec

OF_OPPONENTS, SEEN = "opponents.", "opponents.seen"  # names in a snapshot


class OpposedWorld:
    """`settings.num_envs` matches whose away seats are played by the scripts that are targets.

    Which script sits in a match is drawn where the match begins, by the weights of the targets.
    """

    def __init__(self, settings: DuelSettings) -> None:
        self.settings, self.spec = settings, duel_spec(settings)
        self.num_envs = settings.num_envs
        self.duel = Duel(settings, kinds=OPPONENTS)
        self._opponents = ScriptedOpponents(self.spec, settings)
        self._buffers = step_buffers(self.duel)
        self._seen = np.zeros_like(self._buffers.observations[self.num_envs :])  # by the away ones
        self._actions = np.zeros((AGENTS * self.num_envs, ACTION_COLUMNS), np.float32)
        self._masks = np.zeros((AGENTS * self.num_envs, MASKS), np.bool_)
        self._shape = self.num_envs, self._seen.shape[1]

    @property
    def keep_endings(self) -> bool:
        """Whether steps keep how each row's last episode ended."""
        return self.duel.keep_endings

    @keep_endings.setter
    def keep_endings(self, keep: bool) -> None:
        self.duel.keep_endings = keep

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return self.duel.scenario_number

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every match from now on is drawn from.

        Raises ConfigurationError where it names what the duel does not have.
        """
        return self.duel.set_scenario(scenario)

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first matches in all rows from `seed`; writes `observations` [B, D]."""
        check_writable(observations, "observations", shape=self._shape, dtype=FLOAT32)
        if self.scenario_number == 0:
            raise MisuseError("the world has nothing to draw matches from: set_scenario first")
        self.duel.reset(seed, self._buffers.observations)
        self._opponents.reset(derive_seed(int(seed), "opponents"))
        observations[:] = self._buffers.observations[: self.num_envs]
        self._seen[:] = self._buffers.observations[self.num_envs :]

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes of home that ended in this step; writes `buffers`.

        `actions` [B, 4]. Raises ActionError, with the world as it was, for one that does not exist.
        """
        self.duel.check_started()
        check_buffers(buffers, self._shape)
        home, state = self.num_envs, self.duel.state
        self._actions[:home] = checked_actions(actions, home, agents=1)
        self._actions[home:] = self._opponents.act(
            self._seen, state.kind, episode=state.episode, step=state.seats.decisions[home:]
        )
        batch = self.duel.step(self._actions, self._buffers)
        for name, array in buffers._asdict().items():
            if name != "final_observations":
                array[:] = getattr(self._buffers, name)[:home]
        self._seen[:] = self._buffers.observations[home:]
        ended = np.flatnonzero(buffers.finished)
        buffers.final_observations[ended] = self._buffers.final_observations[ended]
        return self._of_home(batch)

    def _of_home(self, batch: EpisodeBatch) -> EpisodeBatch:
        """The home agents' part of `batch`, which come first in it."""
        count, home = len(batch.row) // AGENTS, self.num_envs
        return batch._replace(
            row=batch.row[:count],
            agent=batch.agent[:count],
            order=batch.order[:count],
            scenario=batch.scenario[:count],
            cell=batch.cell[:count],
            outcome=batch.outcome[:count],
            length=batch.length[:count],
            terms=batch.terms[:count],
            running_order=batch.running_order[:home],
            running_scenario=batch.running_scenario[:home],
            columns={name: column[:count] for name, column in batch.columns.items()},
        )

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, 8] of the home agents, as the duel has them."""
        check_writable(masks, "masks", shape=(self.num_envs, MASKS), dtype=BOOL)
        self.duel.action_masks(self._masks)
        masks[:] = self._masks[: self.num_envs]

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Match `row` from above, [480, 480, 3], or how it last ended."""
        return self.duel.draw(row, ending=ending)

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, by name."""
        return {name: array.copy() for name, array in self.arrays().items()}

    def arrays(self) -> Mapping[str, np.ndarray]:
        """What a snapshot copies, by name; to be read and not written."""
        own = {OF_OPPONENTS + name: array for name, array in self._opponents.arrays().items()}
        return {**self.duel.arrays(), **own, SEEN: self._seen}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a world with the same settings, bit for bit."""
        own = {name for name in self.arrays() if name.startswith(OF_OPPONENTS)}
        missing = sorted(own - snapshot.keys())
        if missing:
            raise MisuseError(f"snapshot: {missing[0]} is missing")
        seen = snapshot[SEEN]
        if seen.shape != self._seen.shape or seen.dtype != self._seen.dtype:
            raise MisuseError(f"snapshot: {SEEN} is {seen.dtype} {seen.shape}")
        mine = {name: snapshot[OF_OPPONENTS + name] for name in self._opponents.arrays()}
        self.duel.check_restorable({k: v for k, v in snapshot.items() if k not in own})
        self._opponents.restore(mine)
        self.duel.restore({k: v for k, v in snapshot.items() if k not in own})
        self._seen[:] = seen
