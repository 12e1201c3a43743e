"""An exported agent plays as the agent does, and one that would not is not written."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate

from aimbot_lab.evaluation.temperature import COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.training.agents import onnx_export
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy, drawn, normal_quantile
from aimbot_lab.training.agents.onnx_export import (
    Given,
    PlainPolicy,
    compare_onnx,
    export_onnx,
    sample,
)
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.hybrid_policy import FORBIDDEN
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.observations import ObservationReader
from aimbot_lab.worlds.gymnasium.settings import ObservationParts
from tests.training.any_spaces import EPISODE, NUMBERS, kept, shake, unlearned
from tests.training.tiny_training import learn, plan

Agents = Callable[[str], SavedAgent]
PAGE = Path(__file__).parents[2] / "aimbot_lab" / "evaluation" / "README.md"
RUNNING = NetworkSettings(layers=(16,), scaling="running")
MASKED = {"aim": "hybrid", "masks": True, "objective": "per_branch"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{algo: (algo, {}) for algo in ("trpo", "a2c", "maskable_ppo", "dqn", "qrdqn")},
    "scaled ppo": ("ppo", {"network": RUNNING}),
    "masked": ("hybrid_ppo", {**MASKED, "network": RUNNING, "engine": "torch"}),
    "fused": ("hybrid_ppo", {"aim": "hybrid", "engine": "fused"}),
    "scaled fused": ("hybrid_ppo", {"network": RUNNING, "engine": "fused"}),
}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    """An agent of a kind, shaken far enough for a mouse that is cut at its limit.

    Then it learns a little: what it learned is in the file too, whatever engine it was.
    """

    @cache
    def of_kind(kind: str) -> SavedAgent:
        algo, train = KINDS[kind]
        training = Training(plan(algo, total_steps=512, **train))
        shake(training.model.policy, 1.0)
        learn(training)
        return kept(training.model.policy, tmp_path_factory.mktemp("agent"), training.plan)

    return of_kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_deployed_network_chooses_as_the_agent(agent: Agents, kind: str) -> None:
    saved = agent(kind)
    given = sample(saved.agent.spec, 10_000)
    deployed = DeployedPolicy(saved, LIKELIEST)
    actions = played(deployed, given)
    wanted, _ = saved.agent.choose(
        given.observation, branch_masks=given.action_masks, temperature=LIKELIEST
    )
    assert (actions[:, :-1] == wanted[:, :-1]).all(axis=1).mean() > 0.999
    np.testing.assert_allclose(actions[:, -1], wanted[:, -1], atol=1e-3)
    assert len(np.unique(actions, axis=0)) > 5
    if deployed.ends is not None:
        assert 0.01 < np.isin(actions[:, -1], deployed.ends).mean() < 0.99


def played(deployed: DeployedPolicy, given: Given) -> Any:
    """The actions [N, 4] of `deployed` in torch."""
    policy = PlainPolicy(deployed)
    with th.no_grad():
        outputs = policy(*map(th.from_numpy, policy.inputs_of(given, {}).values()))
    return policy.actions_of([one.numpy() for one in outputs])


def test_onnxruntime_plays_as_torch_and_a_file_that_plays_otherwise_is_not_written(
    agent: Agents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an agent with running statistics, masks and a number, all of which are drawn."""
    pytest.importorskip("onnxruntime")
    saved, path, temperature = agent("masked"), tmp_path / "agent.onnx", SAMPLED
    check = export_onnx(saved, path, temperature=temperature, observations=3_000)
    assert (check.observations, check.other_choices) == (3_000, 0)
    assert check.largest <= max(1e-5, check.rounding)
    few = sample(saved.agent.spec, 33, seed=5)
    others = compare_onnx(saved, path, few, temperature=temperature)
    assert (others.observations, others.other_choices) == (33, 0)
    told, inputs = metadata(path)
    assert json.loads(told["observation_names"]) == list(saved.agent.spec.observation_names)
    assert (float(told["temperature"]), told["player"]) == (temperature, temperature.label)
    assert "noise" in told
    assert "noise" in inputs
    file = path.read_bytes()
    assert str(Path.cwd()).encode() not in file
    path.unlink()
    monkeypatch.setattr(onnx_export, "_write", lambda *given: given[-1].write_bytes(file))
    with th.no_grad():
        for weight in saved.agent.policy.parameters():
            weight.neg_()
    with pytest.raises(LabError, match="plays differently from the agent"):
        export_onnx(saved, path, temperature=temperature, observations=100)
    assert not [*tmp_path.iterdir()]


def test_choices_that_last_bits_decide_keep_no_file_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an agent that takes away what it has added, so that its scores are exact to 1 % only."""
    pytest.importorskip("onnxruntime")
    taken, seen = spaces.MultiBinary(2), spaces.Box(-1, 1, (3,))
    saved = unlearned(tmp_path / "agent", "ppo", taken, monkeypatch, seen=seen)
    policy: Any = saved.agent.policy
    layer, last = policy.mlp_extractor.policy_net[0], policy.action_net
    with th.no_grad():
        layer.weight[1], layer.bias[1] = layer.weight[0] * (1 + 1e-6), layer.bias[0]
        last.weight.zero_()
        last.bias.zero_()
        last.weight[:, 0], last.weight[:, 1] = 1e5, -1e5
    path = tmp_path / "agent.onnx"
    check = export_onnx(saved, path, temperature=LIKELIEST, observations=2_000)
    assert 0 < check.other_choices <= check.moved_choices < 2_000
    assert path.is_file()


@pytest.mark.parametrize(
    "kind", [name for name, (algo, _) in KINDS.items() if not ALGORITHMS[algo].ranks_actions]
)
def test_with_even_noise_the_deployed_network_acts_as_often_as_the_agent_does(
    agent: Agents, kind: str
) -> None:
    saved, rows, temperature = agent(kind), 20_000, Temperature(0.4)
    one = sample(saved.agent.spec, 1)
    given = sample(saved.agent.spec, rows)._replace(
        observation=one.observation.repeat(rows, axis=0),
        action_masks=one.action_masks.repeat(rows, axis=0),
    )
    th.manual_seed(1)
    asked, _ = saved.agent.choose(
        given.observation, branch_masks=given.action_masks, temperature=temperature
    )
    actions = played(DeployedPolicy(saved, temperature), given)
    for column in range(4):
        values = np.sort(np.concatenate([actions[:, column], asked[:, column]]))
        shares = [np.searchsorted(np.sort(of[:, column]), values) for of in (actions, asked)]
        # Kolmogorov and Smirnov: by chance it is exceeded once in 10,000 columns.
        assert np.abs(shares[0] - shares[1]).max() / rows < 2.22 * np.sqrt(2 / rows)


def test_a_choice_of_probability_0_is_never_drawn() -> None:
    logits = th.tensor([[FORBIDDEN, 0.0, FORBIDDEN, 1.0, FORBIDDEN]])
    uniform = th.tensor([0.0, 0.1, 0.26, 0.28, 0.5, 1.0 - 2**-24, 1.0])
    assert drawn(logits.expand(7, 5), uniform).tolist() == [1, 1, 1, 3, 3, 3, 3]


def test_normal_quantiles_are_those_of_a_normal_distribution() -> None:
    uniform = th.linspace(1e-6, 1 - 1e-6, 100_001)
    wanted = th.special.ndtri(uniform.double())
    np.testing.assert_allclose(normal_quantile(uniform), wanted, rtol=1e-5, atol=1e-6)
    assert th.isfinite(normal_quantile(th.tensor([0.0, 1.0]))).all()


def test_an_agent_that_ranks_actions_is_not_exported_at_another_temperature(
    agent: Agents, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="an agent of dqn ranks actions"):
        export_onnx(agent("dqn"), tmp_path / "agent.onnx", temperature=COOLER)
    assert not [*tmp_path.iterdir()]


def test_no_algorithm_is_left_out() -> None:
    elsewhere = {"recurrent_ppo", "q_learning"}  # test_onnx_memory; a table is refused
    listed = {algo for algo, _ in KINDS.values()} | {algo for _, algo, _ in TAKEN}
    assert listed | elsewhere == set(ALGORITHMS)


def metadata(path: Path) -> tuple[dict[str, str], list[str]]:
    """What a file says of itself, and the names of what goes in."""
    import onnx

    model = onnx.load(path)
    inputs = [entry.name for entry in model.graph.input]
    return {entry.key: entry.value for entry in model.metadata_props}, inputs


WIDE = spaces.Box(np.array([-1e-3, 0.0]), np.array([1e-3, 5000.0]), dtype=np.float64)
TAKEN: list[tuple[spaces.Space[Any], str, dict[str, Any]]] = [
    (WIDE, "hybrid_ppo", {"aim": "hybrid"}),
    (WIDE, "ppo", {}),
    (spaces.Box(-0.5, 2.0, (2, 1), np.float32), "trpo", {}),
    (WIDE, "dqn", {"aim_bins": (-1.0, 0.0, 1.0)}),
    *((WIDE, algo, {}) for algo in ("sac", "td3", "ddpg", "tqc", "crossq", "ars")),
    (spaces.Box(-3, 200, (1, 2), np.int16), "sac", {}),
    (spaces.Discrete(3), "ars", {}),
    (spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, -1], [1, 0]]), "hybrid_ppo", {}),
]


@pytest.mark.parametrize(("space", "algo", "given"), TAKEN, ids=str)
def test_agents_and_their_networks_act_in_the_units_of_the_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    space: spaces.Space[Any],
    algo: str,
    given: dict[str, Any],
) -> None:
    saved = unlearned(tmp_path, algo, space, monkeypatch, **given)
    deployed = DeployedPolicy(saved, LIKELIEST)
    seen = sample(saved.agent.spec, 2000, columns=deployed.columns)
    actions = saved.agent.act(seen.observation, temperature=LIKELIEST)
    assert all(space.contains(one) for one in actions)
    assert len(np.unique(actions.reshape(2000, -1), axis=0)) > 1
    told = json.loads((tmp_path / "agent.json").read_text("utf-8"))["spec"]
    taken = told["environment_actions"]
    assert (tuple(taken["shape"]), taken["dtype"]) == (space.shape, str(space.dtype))
    lasts = np.array(taken["starts"]) + np.array(told["branches"]) - 1
    bounds = zip([*taken["starts"], *taken["low"]], [*lasts, *taken["high"]], strict=True)
    columns = zip(bounds, actions.reshape(2000, -1).T, played(deployed, seen).T, strict=True)
    for (low, high), mine, its in columns:
        assert low <= its.min() <= its.max() <= high
        assert (np.abs(its - mine) <= 1e-4 * (high - low)).mean() > 0.99


def test_a_file_of_drawn_numbers_plays_in_the_units_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = tmp_path / "agent.onnx"
    saved = unlearned(tmp_path / "agent", "sac", WIDE, monkeypatch)
    check = export_onnx(saved, path, temperature=COOLER, observations=300)
    assert (check.other_choices, check.largest <= 2e-6) == (0, True)
    given = sample(saved.agent.spec, 300, columns=2)
    inputs = {"observation": given.observation, "noise": given.noise}
    (actions,) = onnxruntime.InferenceSession(path).run(["action"], inputs)
    assert all(WIDE.contains(one) for one in actions.astype(np.float64))
    assert actions[:, 1].max() > 1000.0
    columns = json.loads(metadata(path)[0]["actions"])["columns"]
    assert [(one["low"], one["high"]) for one in columns] == [(-1e-3, 1e-3), (0.0, 5000.0)]


PARTS = spaces.Dict(
    {
        "bag": spaces.Tuple([spaces.MultiDiscrete([3, 2]), spaces.Box(-1, 1, (2, 2))]),
        "image": spaces.Box(0, 255, (3, 20, 24), np.uint8),
        "view": spaces.Box(0, 255, (20, 20), np.uint8),  # as torch calls a step of the network
        "": spaces.Discrete(4, start=-1),
    }
)
HYBRID = spaces.Dict(
    {
        "aim": spaces.Box(np.array([-1, 0]), np.array([1, 50]), dtype=np.float64),
        "gun": spaces.Tuple([spaces.Discrete(3, start=2), spaces.Box(-9, 9, (1, 2), np.int16)]),
        "keys": spaces.MultiBinary(2),
    }
)
SHOWN = [
    *(PARTS, spaces.Discrete(5, start=-2), spaces.MultiDiscrete([[3, 4], [2, 2]])),
    *(spaces.Box(0, 255, (3, 20, 24), np.uint8), spaces.Box(-1, 1, (2, 3)), spaces.MultiBinary(4)),
    *(spaces.Box(-1, 1, ()), spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,))])),
]


@pytest.mark.parametrize("seen", SHOWN, ids=str)
def test_an_agent_acts_on_a_batch_of_what_its_environment_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: spaces.Space[Any]
) -> None:
    agent = unlearned(tmp_path, "ppo", NUMBERS, monkeypatch, seen=seen).agent
    batched = batch_space(seen, 9)
    batched.seed(1)
    shown, reader = batched.sample(), ObservationReader(seen, ObservationParts())
    raw = [reader.read(one, agent.spec.observation_dtype) for one in iterate(batched, shown)]
    wanted = agent.act(np.stack(raw), temperature=LIKELIEST)
    assert len(np.unique(wanted, axis=0)) > 1
    np.testing.assert_array_equal(agent.act(shown, temperature=LIKELIEST), wanted)
    for wrong in (np.zeros((2, 99), np.float32), np.float32(1), {}):
        with pytest.raises(ConfigurationError, match=r"^observations: .*\w"):
            agent.act(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("algo", "seen", "taken", "given"),
    [
        ("dqn", spaces.Discrete(5), spaces.Discrete(4, start=-1), {}),
        ("hybrid_ppo", PARTS, HYBRID, {"aim": "hybrid"}),
    ],
    ids=["choices", "parts"],
)
def test_the_lines_of_the_page_play_the_file_of_any_environment_as_the_agent_plays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    algo: str,
    seen: spaces.Space[Any],
    taken: spaces.Space[Any],
    given: dict[str, Any],
) -> None:
    pytest.importorskip("onnxruntime")
    saved = unlearned(tmp_path / "agent", algo, taken, monkeypatch, seen=seen, **given)
    path = tmp_path / "agent.onnx"
    check = export_onnx(saved, path, temperature=LIKELIEST, observations=1000)
    assert (check.observations, check.other_choices) == (1000, 0)
    told, inputs = metadata(path)
    assert (float(told["temperature"]), told["player"]) == (LIKELIEST, LIKELIEST.label)
    assert "noise" not in {*told, *inputs}
    text = PAGE.read_text(encoding="utf-8").split("## Export")[1]
    short, lines = re.findall(r"```python\n(import gymnasium\n.*?)```", text, re.DOTALL)
    assert "aimbot_lab" not in short + lines
    assert len(short.replace("\n\n", "\n").splitlines()) == 10
    assert len(lines.partition("\n\n")[2].splitlines()) < 16
    codes = [short, lines]
    if seen is PARTS:
        columns = json.loads(told["actions"])["columns"]
        bounds = [(one["low"], one["high"]) for one in columns if "low" in one]
        assert bounds[:2] == [(-1, 1), (0, 50)]
        lines = lines.replace(WHOLE, "entries(observation)").replace(RUN, "joined(agent, given)")
        codes = [lines.replace("action, _, *memory", "action, memory")]
    monkeypatch.chdir(tmp_path)
    for code in codes:
        own = code.replace("CartPole-v1", saved.env.id)  # type: ignore[attr-defined]
        exec(own, played := {"entries": entries, "joined": joined})
        check_played(saved, played["env"].unwrapped, seen, taken)


def check_played(
    saved: SavedAgent, env: Any, seen: spaces.Space[Any], taken: spaces.Space[Any]
) -> None:
    """That `env` was given what the agent does in its episode."""
    spec, reader = saved.agent.spec, ObservationReader(seen, ObservationParts())
    assert len(env.given) == EPISODE
    for shown, given_action in zip(env.shown, env.given, strict=False):
        observation = np.stack([reader.read(shown, spec.observation_dtype)])
        chosen, _ = saved.agent.choose(observation, temperature=LIKELIEST)
        assert spec.environment_actions is not None
        (wanted,) = spec.environment_actions.of(chosen)
        assert_close(taken, given_action, wanted)


WHOLE = 'observation if isinstance(observation, dict) else {"observation": observation}'
RUN = "agent.run(None, given)"


def entries(observation: Any) -> dict[str, Any]:
    """Of PARTS, under the names that the page gives entries within entries."""
    bag = {f"bag_{place}": one for place, one in enumerate(observation["bag"])}
    return {**observation, **bag, "'": observation[""]}


def joined(agent: Any, given: dict[str, Any]) -> tuple[list[Any], tuple[()]]:
    """An action of HYBRID, of the outputs that the page names."""
    names = [one.name for one in agent.get_outputs()]
    found = {name: output[0] for name, output in zip(names, agent.run(None, given), strict=True)}
    gun = found["action_gun_0"], found["action_gun_1"]
    return [{"aim": found["action_aim"], "gun": gun, "keys": found["action_keys"]}], ()


def assert_close(space: spaces.Space[Any], one: Any, other: Any) -> None:
    """Equal choices, and numbers within 5e-5 of their range.

    The export's own check asks for 1e-5 or for what single precision rounds; here pictures of an
    episode are seen that it did not, on any processor.
    """
    match space:
        case spaces.Dict() | spaces.Tuple():
            keys = range(len(space)) if isinstance(space, spaces.Tuple) else space
            for key in keys:
                assert_close(space[key], one[key], other[key])
        case spaces.Box():
            assert (np.abs(one - other) <= 5e-5 * (space.high - space.low)).all()
        case _:
            np.testing.assert_array_equal(one, other)
