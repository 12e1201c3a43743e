"""Copies of a parallel environment behind the `BatchWorld` protocol, a seat for each agent."""

import numpy as np

from aimbot_lab.foundation.argument_checks import check_buffers, check_writable, checked_actions
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Observations,
    StepBuffers,
    WorldSpec,
    columns_of,
    new_step_buffers,
)
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from aimbot_lab.worlds.pettingzoo.joint_env import (
    CUT_OFF,
    NUMBERS,
    RETURN,
    REWARD,
    WON,
    JointSettings,
)
from aimbot_lab.worlds.pettingzoo.settings import PettingZooSettings


class PettingZooWorld(GymnasiumWorld):
    """`settings.num_envs` copies of a parallel environment, each agent of which has a seat.

    `spec` says what an agent sees and does. In the copies all agents of a row act together; here
    what they see, do and gain is by seat. All seats of a row finish when no agent takes part.
    """

    def __init__(self, settings: PettingZooSettings, spec: WorldSpec) -> None:
        super().__init__(JointSettings.of(settings))
        joint, agents = self.spec, spec.agents
        self.settings, self.spec = settings, spec
        self._pictures = [block.name for block in joint.pictures]  # agent by agent
        self._rows = new_step_buffers(self.num_envs, joint.observation_dtype)
        self._seats = agents * self.num_envs
        self._seat_kind = spec.observation_dtype
        self._seat_shape = self._seats, *self._seat_kind.shape
        self._running = self._none_ended._replace(
            running_order=np.zeros(self._seats, np.int64),
            running_scenario=np.zeros(self._seats, np.int64),
        )

    def reset(self, seed: int, observations: Observations) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [N]."""
        kind = self._seat_kind.base
        check_writable(observations, "observations", shape=self._seat_shape, dtype=kind)
        super().reset(seed, self._rows.observations)
        self._show(self._rows.observations, observations)
        self._note_running()

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step, an entry for each agent; writes `buffers`.

        Raises ActionError, with the world as it was, for an action that does not exist.
        """
        check_buffers(buffers, self._seat_shape, self._seat_kind.base)
        actions = checked_actions(actions, self._seats, spec=self.spec)
        rows, agents = self._rows, self.spec.agents
        ended = super().step(self._joint_actions(actions), rows)
        self._show(rows.observations, buffers.observations)
        results = self._results(rows.observations)
        if ended:
            results[:, :, ended.row] = self._results(rows.final_observations[ended.row])
            self._show(rows.final_observations, buffers.final_observations, ended.row)
        buffers.rewards[:] = results[REWARD].ravel()
        buffers.finished[:] = np.tile(rows.finished, agents)
        buffers.truncated[:] = buffers.finished & (results[CUT_OFF].ravel() > 0)
        if not ended:
            return self._running
        self._note_running()
        returns = results[RETURN, :, ended.row].T.astype(np.float64)  # [A, E]
        returns[0] = ended.terms[:, 0]  # unrounded
        won = results[WON, :, ended.row].T > 0
        ranks = ended.order * agents + np.arange(agents)[:, None]
        return self._running._replace(
            row=np.tile(ended.row, agents),
            agent=np.repeat(np.arange(agents), len(ended.row)),
            order=ranks.ravel(),
            scenario=np.tile(ended.scenario, agents),
            cell=ended.cell * agents,
            outcome=np.where(won.ravel(), WIN, LOSS).astype(np.int8),
            length=np.tile(ended.length, agents),
            terms=returns.reshape(-1, 1),
            columns=dict.fromkeys(self.spec.episode_columns, returns.ravel()),
        )

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [N, sum of branches]; all are True where an agent idles."""
        joint = np.ones((self.num_envs, masks.size // self.num_envs), np.bool_)
        super().action_masks(joint)
        masks[:] = (
            joint.reshape(self.num_envs, self.spec.agents, -1).swapaxes(0, 1).reshape(masks.shape)
        )

    def resume_episodes(self, observations: Observations) -> BoolArray:
        """Play the episodes again that ran in the snapshot; writes `observations` [N].

        [N] True where another began instead.
        """
        begun = super().resume_episodes(self._rows.observations)
        self._show(self._rows.observations, observations)
        self._note_running()
        return np.tile(begun, self.spec.agents)

    def _joint_actions(self, actions: Float32Array) -> Float32Array:
        """`actions` [N, C] by row: the choices of all agents, then the numbers of all."""
        by_row = actions.reshape(self.spec.agents, self.num_envs, -1).swapaxes(0, 1)
        choices, numbers = np.split(by_row, [len(self.spec.branches)], axis=2)
        parts = [part.reshape(self.num_envs, -1) for part in (choices, numbers)]
        return np.concatenate(parts, axis=1)

    def _show(
        self, joint: Observations, seats: Observations, rows: Int64Array | slice = slice(None)
    ) -> None:
        """Write what the agents of `rows` see, of `joint` [B], to `seats` [N]."""
        agents, width = self.spec.agents, len(self.spec.observation_names)
        seen = columns_of(joint)[rows, : agents * width]
        by_agent = seen.reshape(len(seen), agents, width).swapaxes(0, 1)
        columns_of(seats).reshape(agents, self.num_envs, width)[:, rows] = by_agent
        names = iter(self._pictures)
        for agent in range(agents):
            own = slice(agent * self.num_envs, (agent + 1) * self.num_envs)
            for block in self.spec.pictures:
                seats[block.name][own][rows] = joint[next(names)][rows]

    def _results(self, joint: Observations) -> Float32Array:
        """What agents gained, [NUMBERS, A, rows], of `joint` [rows]."""
        shown = columns_of(joint)[:, -NUMBERS * self.spec.agents :]
        return shown.T.reshape(NUMBERS, self.spec.agents, -1).copy()

    def _note_running(self) -> None:
        """Ranks differ by agent, too."""
        agents = np.arange(self.spec.agents)[:, None]
        self._running.running_order[:] = (self._order * self.spec.agents + agents).ravel()
        self._running.running_scenario[:] = np.tile(self._scenarios, self.spec.agents)
