"""The same calls of ML-Agents' interface, by its own package or by ours, told as plain data.

Run as a program by the Python of the real packages: `llapi_calls.py KIND PLAYER PORT`, KIND calls,
long or sensors.
"""

import importlib
import json
import sys
import uuid
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np

STRING_LOG = uuid.UUID("621f0a70-4f87-11ea-a6bf-784f4387d1f7")
NAME = "AimbotLab?team=0"


def interface(root, base):
    """Classes of the package `root`, whose basic ones are in the module `base`."""
    modules = [base, f"{root}.exception", f"{root}.side_channel"]
    names = "engine_configuration environment_parameters float_properties raw_bytes"
    modules += [f"{root}.side_channel.{name}_channel" for name in names.split()]
    modules += [f"{root}.side_channel.stats_side_channel"]
    found = {}
    for module in modules:
        found.update(vars(importlib.import_module(module)))
    return SimpleNamespace(**found)


def channels(api):
    """Side channels by short names."""

    class Lines(api.SideChannel):
        def __init__(self):
            super().__init__(STRING_LOG)
            self.lines = []

        def on_message_received(self, msg):
            self.lines.append(msg.read_string())

    return SimpleNamespace(
        parameters=api.EnvironmentParametersChannel(),
        engine=api.EngineConfigurationChannel(),
        stats=api.StatsSideChannel(),
        lines=Lines(),
    )


def shown(value):
    """`value` as plain data, arrays with their shapes and types."""
    if isinstance(value, np.ndarray):
        return {"shape": value.shape, "dtype": str(value.dtype), "values": value.tolist()}
    if isinstance(value, np.generic):
        return [type(value).__name__, value.item()]
    if isinstance(value, (list, tuple)):
        return [shown(one) for one in value]
    if isinstance(value, dict):
        return {str(key): shown(one) for key, one in value.items()}
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def attempt(call):
    """What `call` gives, or the kinds of what it raises."""
    try:
        return {"gives": shown(call())}
    except Exception as error:  # noqa: BLE001 its kind is compared
        return {"raises": [kind.__name__ for kind in type(error).__mro__]}


def steps_shown(env):
    """Decision and terminal steps; groups are a list there and an array here."""
    decisions, terminals = env.get_steps(NAME)
    both = []
    for steps in (decisions, terminals):
        both.append([len(steps), steps.obs, steps.reward, steps.agent_id, steps.group_reward])
        both.append([np.asarray(steps.group_id).tolist(), list(steps), steps.agent_id_to_index])
    return [*both, decisions.action_mask, terminals.interrupted]


def spec_shown(env):
    """The behavior, in full."""
    spec = env.behavior_specs[NAME]
    sensors = [
        [s.shape, [int(one) for one in s.dimension_property], s.observation_type.name, s.name]
        for s in spec.observation_specs
    ]
    actions = spec.action_spec
    return [
        sensors,
        *(str(actions), actions.continuous_size, actions.discrete_size, actions.discrete_branches),
        *(actions.is_continuous(), actions.is_discrete()),
    ]


def acted(env, steps):
    """Play evenly drawn actions."""
    spec = env.behavior_specs[NAME].action_spec
    seen = []
    for _ in range(steps):
        env.set_actions(NAME, spec.random_action(len(env.get_steps(NAME)[0])))
        env.step()
        seen.append(steps_shown(env))
    return seen


def table(env, api, told):
    """Calls by name, in the order in which they are made."""
    one = api.ActionTuple(np.zeros((1, 1)), np.ones((1, 3)))
    few = api.ActionTuple(np.zeros((1, 1)), np.ones((3, 3)))
    message = api.OutgoingMessage()
    return {
        "no behaviors yet": lambda: list(env.behavior_specs),
        "steps before a reset": lambda: env.get_steps(NAME),
        "actions before a reset": lambda: env.set_actions(NAME, one),
        "a parameter": lambda: told.parameters.set_float_parameter("time_limit", 2.0),
        "engine": lambda: told.engine.set_configuration_parameters(time_scale=20.0),
        "width alone": lambda: told.engine.set_configuration_parameters(width=3),
        "reset": env.reset,
        "behaviors": lambda: list(env.behavior_specs),
        "spec": lambda: spec_shown(env),
        "unknown spec": lambda: env.behavior_specs["Nobody"],
        "first steps": lambda: steps_shown(env),
        "a step of one agent": lambda: env.get_steps(NAME)[0][2]._replace(group_id=0),
        "a step of nobody": lambda: env.get_steps(NAME)[0][99],
        "no terminal step": lambda: env.get_steps(NAME)[1][0],
        "unknown behavior": lambda: env.set_actions("Nobody", one),
        "too few agents": lambda: env.set_actions(NAME, one),
        "two sizes": lambda: env.set_actions(NAME, few),
        "two agents for one": lambda: env.set_action_for_agent(NAME, 0, few),
        "an agent that is not": lambda: env.set_action_for_agent(NAME, 99, one),
        "for one agent": lambda: env.set_action_for_agent(NAME, 3, one),
        "a step with it": env.step,
        "after it": lambda: steps_shown(env),
        "a step without actions": env.step,
        "after that": lambda: steps_shown(env),
        "random actions": lambda: [
            np.random.seed(4),
            env.behavior_specs[NAME].action_spec.random_action(3).continuous,
            env.behavior_specs[NAME].action_spec.random_action(3).discrete,
        ],
        "empty actions": lambda: [
            env.behavior_specs[NAME].action_spec.empty_action(2).continuous,
            env.behavior_specs[NAME].action_spec.empty_action(2).discrete,
        ],
        "empty steps": lambda: [
            api.DecisionSteps.empty(env.behavior_specs[NAME]).obs,
            api.TerminalSteps.empty(env.behavior_specs[NAME]).interrupted,
        ],
        "play": lambda: acted(env, 45),
        "stats": lambda: [
            [value, method.name] for value, method in told.stats.get_and_reset_stats()["Result/Win"]
        ],
        "lines": lambda: told.lines.lines,
        "a sampler": lambda: told.parameters.set_uniform_sampler_parameters(
            "time_limit", 1.0, 2.0, 7
        ),
        "play on": lambda: acted(env, 25),
        "written": lambda: [
            message.write_string("ab"),
            message.write_float32_list([1.0, 2.0]),
            message.write_bool(True),
            bytes(message.buffer),
        ],
        "read": lambda: [
            (read := api.IncomingMessage(bytes(message.buffer))).read_string(),
            read.read_float32_list(),
            read.read_bool(),
            read.read_int32(4),
        ],
        "read too much": lambda: api.IncomingMessage(b"\x01").read_int32(),
        "not ASCII": lambda: api.OutgoingMessage().write_string("ö"),
        "steps of one spec": lambda: api.ActionSpec.create_hybrid(1, (2, 3)).discrete_size,
        "close": env.close,
        "step when closed": env.step,
        "close when closed": env.close,
    }


def told_by(env, api, told):
    """What each call of the table gives or raises."""
    return {name: attempt(call) for name, call in table(env, api, told).items()}


def real_environment(player, port, arguments):
    """`UnityEnvironment` of the real package with the player, the package and the channels."""
    from mlagents_envs.environment import UnityEnvironment

    api = interface("mlagents_envs", "mlagents_envs.base_env")
    told = channels(api)
    env = UnityEnvironment(
        file_name=player,
        base_port=port,
        seed=5,
        no_graphics=True,
        side_channels=list(vars(told).values()),
        additional_args=arguments,
    )
    return env, api, told


def sensors_seen(env, api, steps=5):
    """The sensors, and what the first agents see while all turn and walk ahead."""
    env.reset()
    seen = []
    for _ in range(steps):
        decisions = env.get_steps(NAME)[0]
        seen.append([obs[:4] for obs in decisions.obs])
        agents = len(decisions)
        ahead = np.tile(np.array([[1, 0, 0]], np.int32), (agents, 1))
        env.set_actions(NAME, api.ActionTuple(np.full((agents, 1), 0.3, np.float32), ahead))
        env.step()
    return shown([spec_shown(env)[0], seen])


def played_long(env, told):
    """1,000 steps, and how the player ended."""
    process = env._process
    env.reset()
    spec = env.behavior_specs[NAME].action_spec
    ended = interrupted = forbidden = 0
    for _ in range(1000):
        decisions, terminals = env.get_steps(NAME)
        ended, interrupted = ended + len(terminals), interrupted + sum(terminals.interrupted)
        forbidden += sum(int(mask.sum()) for mask in decisions.action_mask)
        assert len(decisions) == 64
        env.set_actions(NAME, spec.random_action(64))
        env.step()
    ended += len(env.get_steps(NAME)[1])
    env.close()
    stats = told.stats.get_and_reset_stats()
    return {
        "version": version("mlagents_envs"),
        "ended": ended,
        "interrupted": int(interrupted),
        "forbidden": forbidden,
        "wins": len(stats["Result/Win"]),
        "lines": told.lines.lines,
        "exit": process.wait(60),
    }


if __name__ == "__main__":
    kind, player, port, *arguments = sys.argv[1:]
    env, api, told = real_environment(player, int(port), arguments)
    kinds = {
        "calls": lambda: told_by(env, api, told),
        "long": lambda: played_long(env, told),
        "sensors": lambda: [sensors_seen(env, api), env.close()][0],
    }
    found = kinds[kind]()
    sys.stdout.write("\n" + json.dumps(found))
