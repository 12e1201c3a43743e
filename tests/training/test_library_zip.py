"""Files of stable-baselines3: written for it, and read without running what they hold."""

import base64
import io
import json
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO

from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents.agent_files import SavedAgent, load_agent
from aimbot_lab.training.agents.library_zip import export_zip, unpack_zip
from aimbot_lab.training.networks.settings import PictureSettings
from aimbot_lab.training.settings import Linear, NetworkSettings
from aimbot_lab.worlds.registry import type_of
from tests.training.any_spaces import NUMBERS, registered, unlearned

BOX = spaces.Box(-2.0, 0.5, (2,))
EXACT = spaces.Box(-np.inf, np.inf, (3,), np.float64)
PICTURE = spaces.Box(0, 255, (36, 40, 3), np.uint8)
PARTS = spaces.Dict(
    {
        "tile": spaces.Discrete(4),
        "bag": spaces.MultiDiscrete([3, 2]),
        "place": spaces.Box(-1, 1, (2, 2)),
        "doors": spaces.MultiBinary(3),
    }
)
BESIDE = spaces.Dict({"image": PICTURE, "tile": spaces.Discrete(4)})
PLAIN = NetworkSettings(layers=(8,), scaling="none")
Case = tuple[str, spaces.Space[Any], spaces.Space[Any], dict[str, Any]]
CHOICES = spaces.Discrete(3)
TINY = spaces.Box(0, 255, (7, 7, 3), np.uint8)
CASES: list[Case] = [
    ("ppo", EXACT, BOX, {"options": {"use_sde": True}}),
    ("ppo", spaces.Discrete(16), CHOICES, {"learning_rate": Linear(start=1e-3, end=0.0)}),
    ("a2c", PARTS, spaces.MultiDiscrete([3, 2]), {}),
    ("trpo", NUMBERS, spaces.MultiBinary(3), {}),
    ("maskable_ppo", NUMBERS, CHOICES, {}),
    ("recurrent_ppo", NUMBERS, CHOICES, {"options": {"lstm_hidden_size": 8}}),
    ("dqn", BESIDE, CHOICES, {}),
    ("qrdqn", NUMBERS, CHOICES, {"options": {"n_quantiles": 5}}),
    ("sac", BESIDE, BOX, {"options": {"action_noise": 0.1}}),
    *((algo, EXACT, BOX, {}) for algo in ("td3", "ddpg", "tqc", "crossq", "ars")),
    ("recurrent_ppo", PICTURE, BOX, {"options": {"lstm_hidden_size": 8}}),
]


def agent(folder: Path, case: Case, monkeypatch: pytest.MonkeyPatch) -> SavedAgent:
    algo, seen, taken, given = case
    pictures = seen in (PICTURE, BESIDE)
    layers = () if seen == PICTURE else (8,)
    picture = PictureSettings(encoder="nature", size=16) if pictures else None
    network = NetworkSettings(layers=layers, scaling="none", picture=picture)
    if algo == "crossq":
        given = {**given, "options": {"policy_kwargs": {"net_arch": {"pi": (8,), "qf": (16,)}}}}
    return unlearned(folder, algo, taken, monkeypatch, seen=seen, network=network, by=0.5, **given)


def test_the_library_alone_plays_each_class_of_its_own_as_the_agent_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While this package can't be imported; the weights come back to the bit."""
    for place, case in enumerate(CASES):
        saved = agent(tmp_path / f"agent{place}", case, monkeypatch)
        path = tmp_path / f"{place}.zip"
        name = export_zip(saved, path).algorithm
        asked = type_of(saved.env).library_observations(saved.env, saved.agent.spec)
        assert asked is not None
        assert str(asked.space).startswith(("Box(0", "Dict")) or asked.space == case[1]
        shown, ours = asked.drawn(50, 5)
        wanted = saved.agent.act(ours, temperature=LIKELIEST)
        assert not [name for name, text in pickled(path).items() if b"aimbot" in text]
        back = tmp_path / f"back{place}"
        back.mkdir()
        unpack_zip(path, back, env=saved.env, train=saved.train)
        again = load_agent(back)
        before, after = (one.agent.policy.state_dict() for one in (saved, again))
        assert all(th.equal(one, after[name]) for name, one in before.items())
        assert again.about == {"step": 7}
        with monkeypatch.context() as alone:
            for module in [one for one in sys.modules if one.startswith("aimbot_lab")]:
                alone.setitem(sys.modules, module, None)
            kind = getattr(stable_baselines3, name, None) or getattr(sb3_contrib, name)
            model = kind.load(path, device="cpu")
            found, _ = model.predict(shown, deterministic=True)
        assert model.num_timesteps == 7
        assert len(np.unique(found.reshape(50, -1), axis=0)) > 1, case
        # In 5e-5 of the range: other networks of ours round otherwise, on some processors more.
        np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5 * 5.0)


def pickled(path: Path) -> dict[str, bytes]:
    data = json.loads(zipfile.ZipFile(path).read("data"))
    parts = {k: one.get(":serialized:", "") for k, one in data.items() if isinstance(one, dict)}
    return {name: base64.b64decode(text) for name, text in parts.items()}


@pytest.mark.parametrize("case", [*CASES[5:10], CASES[1]], ids=lambda case: case[0])
def test_an_agent_whose_net_arch_is_smaller_than_its_layers_or_has_none_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    algo, seen, taken, given = case
    picture = PictureSettings(encoder="nature", size=16) if seen in (PICTURE, BESIDE) else None
    network = NetworkSettings(layers=() if seen == PICTURE else (4096,), picture=picture)
    arch = {} if algo == "ppo" else (4,)
    options = {**given.get("options", {}), "policy_kwargs": {"net_arch": arch}}
    given = {**given, "network": network, "options": options}
    weights = unlearned(tmp_path, algo, taken, monkeypatch, seen=seen, **given).agent.policy
    assert max(one.numel() for one in weights.state_dict().values()) < 40_000
    if algo == "ppo":
        assert not [name for name in weights.state_dict() if "mlp_extractor" in name]


@pytest.mark.parametrize(
    ("algo", "seen", "taken", "network", "what"),
    [
        ("hybrid_ppo", NUMBERS, BOX, {}, "hybrid_ppo has no class in [^\n]*export it as .onnx"),
        ("ppo", NUMBERS, BOX, {"scaling": "running"}, "scales what it sees [^\n]*train with none"),
        ("ppo", NUMBERS, spaces.Discrete(3, start=2), {}, "begin at 2, the library's at 0"),
        ("ppo", NUMBERS, spaces.Tuple([CHOICES, BOX]), {}, "has no such actions"),
        ("ars", PARTS, BOX, {}, "no observation of several entries: train with env.wrappers"),
        (
            "ppo",
            TINY,
            BOX,
            {"picture": PictureSettings(encoder="small")},
            r"no encoder of pictures like small: train with env.observation: \{flatten: \[obs\]\}",
        ),
    ],
    ids=str,
)
def test_an_agent_that_the_library_has_no_class_for_is_refused_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    algo: str,
    seen: spaces.Space[Any],
    taken: spaces.Space[Any],
    network: dict[str, Any],
    what: str,
) -> None:
    settings = NetworkSettings(**{"layers": (8,), "scaling": "none", **network})
    saved = unlearned(tmp_path / "a", algo, taken, monkeypatch, seen=seen, network=settings)
    with pytest.raises(ConfigurationError, match=f"^[^\n]*{what}[^\n]*$"):
        export_zip(saved, tmp_path / "a.zip")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_an_agent_of_another_version_of_its_environment_is_refused_by_what_both_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = unlearned(tmp_path / "agent", "ppo", CHOICES, monkeypatch, network=PLAIN)
    newer = gymnasium.spec(registered(monkeypatch, spaces.Box(-1, 1, (4,)), CHOICES))
    monkeypatch.setitem(gymnasium.registry, saved.env.id, newer)  # type: ignore[attr-defined]
    monkeypatch.setattr(type_of(saved.env), "_specs", {})  # as a process that comes later asks
    what = r"^env.id: \S+ shows obs \(4,\) here; the agent learned from obs \(3,\)$"
    with pytest.raises(ConfigurationError, match=what):
        export_zip(saved, tmp_path / "agent.zip")
    assert not (tmp_path / "agent.zip").exists()


def test_a_small_picture_that_is_flattened_as_the_line_says_fits_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"network": PLAIN, "seen": TINY, "flatten": ("obs",)}
    saved = unlearned(tmp_path / "a", "ppo", CHOICES, monkeypatch, **given)
    assert export_zip(saved, tmp_path / "a.zip").algorithm == "PPO"


class Marks:
    """Pickled, it makes a file where it is read."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def zipped(**entries: bytes | str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name.replace("_pth", ".pth"), data)
    return made.getvalue()


def bombed(weights: bytes) -> bytes:
    """The same whose tensors would take much more memory, compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(weights)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            data = bytes(2**22) if "/data/" in info.filename else old.read(info)
            new.writestr(info.filename, data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def tensors(held: Any) -> bytes:
    th.save(held, made := io.BytesIO())
    return made.getvalue()


UNREAD = "can't be read as a file of stable-baselines3's save"


def attacks(text: str, weights: bytes, mark: Path) -> dict[str, tuple[bytes, str]]:
    """Files by what is wrong with them, and what is said of each."""

    def weighing(held: Any) -> bytes:
        return zipped(data=text, policy_pth=held if isinstance(held, bytes) else tensors(held))

    spread = dict.fromkeys(th.load(io.BytesIO(weights)), th.zeros(1).expand(2**40))
    many = {f"../../{number}": b"" for number in range(5000)}
    return {
        "no zip": (b"agent", UNREAD),
        "code in the weights": (weighing({"a": Marks(mark)}), UNREAD),
        "an old pickle": (weighing(pickle.dumps(Marks(mark))), UNREAD),
        "no tensors": (weighing([1, "a"]), UNREAD),
        "deep data": (zipped(data="[" * 10**5, policy_pth=weights), UNREAD),
        "long data": (zipped(data=b" " * (2**24 + 1), policy_pth=weights), "is larger than"),
        "compressed weights": (weighing(bombed(weights)), "policy.pth is not as torch writes it"),
        "many entries": (zipped(data=text, policy_pth=weights, **many), "more than 100 entries"),
        "shares of one number": (
            weighing(spread),
            "weight mlp_extractor.policy_net.0.weight has shape",
        ),
    }


def test_a_file_of_a_stranger_runs_nothing_and_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = agent(tmp_path / "agent", ("ppo", NUMBERS, CHOICES, {}), monkeypatch)
    path, mark = tmp_path / "agent.zip", tmp_path / "mark"
    export_zip(saved, path)
    with zipfile.ZipFile(path) as archive:
        data, weights = json.loads(archive.read("data")), archive.read("policy.pth")
    mine = base64.b64encode(pickle.dumps(Marks(mark))).decode()
    for one in data.values():  # each of them runs code where it is unpickled
        if isinstance(one, dict) and ":serialized:" in one:
            one[":serialized:"] = mine
    text = json.dumps(data)

    def unpacked(content: bytes) -> None:
        path.write_bytes(content)
        unpack_zip(path, tmp_path / "back", env=saved.env, train=saved.train)

    unpacked(zipped(data=text, policy_pth=weights))  # of which the weights are good
    for name, (damaged, what) in attacks(text, weights, mark).items():
        with pytest.raises(ConfigurationError) as error:
            unpacked(damaged)
        told = str(error.value)
        assert what in told, name
        assert len(told.splitlines()) == 1, name
        assert str(path) in told
    assert not mark.exists()
    assert not (tmp_path.parent / "0").exists()


def test_a_script_s_file_is_taken_up_and_another_algorithm_s_or_network_s_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = registered(monkeypatch, PARTS, CHOICES)
    model = PPO("MultiInputPolicy", name, n_steps=16, batch_size=16).learn(16)
    model.save(path := tmp_path / "script.zip")
    saved = agent(tmp_path / "agent", ("ppo", PARTS, CHOICES, {}), monkeypatch)

    def unpacked(**train: Any) -> SavedAgent:
        mine = agent(tmp_path / "mine", (train.pop("algo", "ppo"), PARTS, CHOICES, {}), monkeypatch)
        settings = type(mine.train)(**{**vars(mine.train), **train})
        unpack_zip(path, tmp_path, env=mine.env, train=settings)
        return load_agent(tmp_path)

    def plain(*layers: int) -> dict[str, Any]:
        return {"network": NetworkSettings(layers=layers, scaling="none")}

    taken = unpacked(**plain(64, 64))
    asked = type_of(saved.env).library_observations(saved.env, saved.agent.spec)
    assert asked is not None
    shown, ours = asked.drawn(50, 3)
    theirs, _ = model.predict(shown, deterministic=True)
    np.testing.assert_array_equal(taken.agent.act(ours, temperature=LIKELIEST), theirs)
    assert taken.about == {"step": 16}
    for given, told in (
        ({"algo": "a2c"}, r"an agent of ppo, [^\n]* by a2c: use train.algo: ppo"),
        (
            plain(64),
            r"weight mlp_extractor.policy_net.2.bias belongs to no part[^\n]*train.network.layers",
        ),
        (plain(32, 32), r"weight mlp_extractor[^\n]* has shape \(64, \d+\), not \(32, \d+\)"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            unpacked(**given)
