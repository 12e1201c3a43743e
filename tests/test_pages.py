"""The pages: README.md is short, links lead somewhere, and what a page names exists."""

import importlib
import re
from pathlib import Path

from test_layers import LAYERS

ROOT = Path(__file__).parent.parent
FOLDERS = ("aimbot_lab", "curricula", "sweeps")
PAGES = [
    ROOT / "README.md",
    *sorted(page for name in FOLDERS for page in (ROOT / name).rglob("*.md")),
]
GYMNASIUM_ID = re.compile(r"-v\d+$")


def prose(page: Path) -> str:
    """The text of `page` without its fenced blocks."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of `page`, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", prose(page))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def broken_links(page: Path) -> list[str]:
    """Links of `page` inside the repository that lead to no file or to no heading."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    return broken


def missing_paths(page: Path) -> list[str]:
    """Source files and paths of this repository that `page` names and that do not exist."""
    beginnings = tuple(f"{name}/" for name in (*FOLDERS, "tests"))
    places = (page.parent, ROOT, ROOT / "aimbot_lab")
    return [
        name
        for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)*/?)`", prose(page))
        if (name.endswith(".py") or name.startswith(beginnings))
        and not GYMNASIUM_ID.search(name)
        and not any((place / name).exists() for place in places)
    ]


def resolves(dotted: str) -> bool:
    """Whether `dotted` names a module, or what a module holds."""
    parts = dotted.split(".")
    found = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        try:
            found = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
    return True


def missing_modules(page: Path) -> list[str]:
    """Dotted names of this package that `page` names and that do not exist."""
    text = re.sub(r'entry-points\."[\w.]+"', "", page.read_text(encoding="utf-8"))
    names = re.findall(r"\baimbot_lab(?:\.\w+)+", text)
    return [name for name in dict.fromkeys(names) if not resolves(name)]


# The blocks of code of the pages, by page and heading. YAML is read in
# tests/experiment/test_shipped_curricula.py; tests/cli/test_commands.py knows all commands.
PACKAGE, LONG, OTHERS = (
    "aimbot_lab/",
    "takes minutes or more",
    "needs programs that are not installed here",
)
RUN = {
    "tests/adapters/test_sb3_adapter.py": ["worlds/arena/README.md#Interfaces"],
    "tests/arena/test_arena_page.py": [
        *("worlds/arena/README.md#Interfaces", "worlds/arena/README.md#Arrays in, arrays out"),
        *("worlds/arena/README.md#What can be read", "worlds/arena/README.md#What can be edited"),
        *("worlds/arena/README.md#A picture", "worlds/arena/README.md#What can be set"),
    ],
    "tests/cli/test_page_stories.py": [
        *("README.md#From Python", "evaluation/README.md#Several seeds"),
        "tracking/README.md#Find and delete runs",
        "training/README.md#Start from another run's agent",
        *("worlds/duel/README.md#In PettingZoo", "worlds/gorge/data/README.md#Maps of your own"),
        *("worlds/gorge/data/README.md#The best walk", "worlds/gorge/README.md#In Gymnasium"),
    ],
    "tests/experiment/test_own_presets.py": ["worlds/arena/data/README.md#In a curriculum"],
    "tests/mlagents/test_lab_environment.py": ["mlagents/README.md#ML-Agents"],
    "tests/training/test_engines.py": [
        *("training/EXTENDING.md#Add a network", "training/EXTENDING.md#Add an algorithm"),
        "training/EXTENDING.md#Add an engine",
    ],
    "tests/training/test_onnx_export.py": ["evaluation/README.md#Export"],
    "tests/worlds/test_gymnasium_training.py": ["worlds/README.md#An environment of your own"],
}
NOT_RUN = {
    LONG: [
        *("#Start", "#Eight commands", "#Your own environment", "sweeps/README.md#Sweeps"),
        *("bench/README.md#Free with a continuous mouse", "README.md#Develop"),
        *("cluster/README.md#A training", "training/processes/README.md#One machine"),
        *("panel/README.md#The panel", "tracking/README.md#Resume a run"),
        *("worlds/unity/README.md#Unity builds", "mlagents/README.md#A world as a build"),
        *("worlds/arena/data/README.md#Target blocks of your own", "cluster/README.md#Ray"),
        "worlds/gorge/README.md#Play it yourself",
    ],
    OTHERS: [
        *("cluster/README.md#A sweep", "cluster/README.md#Kubernetes"),
        *("mlagents/README.md#ML-Agents' trainer", "tracking/README.md#TensorBoard"),
        *("sweeps/README.md#Several machines", "sweeps/README.md#On a cluster of Ray"),
        *("training/processes/README.md#torchrun", "training/processes/README.md#SLURM"),
        "training/README.md#Callbacks",  # one of stable-baselines3's, with rich's bar, and wandb's
        "tracking/README.md#MLflow's page, and who gets in",
    ],
    "names files of the reader": [
        "experiment/conversion/README.md#ML-Agents' trainer files",
        *("worlds/README.md#From rl-zoo3", "worlds/README.md#Add a world"),
    ],
    "is a part of a function, or what a command prints": [
        *("panel/README.md#Add a tab", "curricula/README.md#When a lesson ends"),
        "curricula/README.md#Plan, explain and change a training",
        "curricula/README.md#Errors and references",
    ],
}


def blocks_of_code(page: Path) -> set[str]:
    """The page and heading of every block of `page` but YAML."""
    name, found, heading = str(page.relative_to(ROOT)).removeprefix(PACKAGE), set(), ""
    text = page.read_text(encoding="utf-8")
    for title, language in re.findall(r"(?ms)^#+ ([^\n]+)$|^```(\w*)\n.*?^```", text):
        heading = title or heading
        if not title and language != "yaml":
            found.add(f"{'' if page == PAGES[0] else name}#{heading}")
    return found


def test_every_block_of_code_is_run_by_a_test_or_listed_with_the_reason() -> None:
    listed = [block for blocks in (*RUN.values(), *NOT_RUN.values()) for block in blocks]
    assert set(listed) == set().union(*map(blocks_of_code, PAGES))
    for test, blocks in RUN.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert all(Path(block.partition("#")[0]).stem in text for block in blocks), test


def test_the_readme_has_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_readme_links_every_other_page() -> None:
    text = prose(ROOT / "README.md")
    pages = [str(page.relative_to(ROOT)) for page in PAGES[1:]]
    assert [page for page in pages if f"]({page})" not in text] == []


def test_links_lead_to_files_and_headings() -> None:
    for page in PAGES:
        assert broken_links(page) == [], page


def test_paths_that_a_page_names_exist() -> None:
    for page in PAGES:
        assert missing_paths(page) == [], page


def test_modules_that_a_page_names_exist() -> None:
    for page in PAGES:
        assert missing_modules(page) == [], page


def test_the_page_on_the_architecture_has_the_tested_layers() -> None:
    text = (ROOT / "aimbot_lab" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (\d) \| ([^|]+) \|", text)
    told = {name: int(layer) for layer, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert told == LAYERS


def test_a_broken_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "# Good\n[a](gone.md), [b](#bad), [c](#good), `tests/gone`, `gone.py`,"
        " `aimbot_lab/Goto-v0`, `aimbot_lab.gone`, `aimbot_lab.api.train`\n",
        encoding="utf-8",
    )
    assert broken_links(page) == ["gone.md", "#bad"]
    assert missing_paths(page) == ["tests/gone", "gone.py"]
    assert missing_modules(page) == ["aimbot_lab.gone"]


def test_pictures_of_the_pages_are_small() -> None:
    limits = {"png": 150_000, "gif": 1_500_000}  # bytes
    for kind, most in limits.items():
        pictures = [file for name in FOLDERS for file in (ROOT / name).rglob(f"*.{kind}")]
        assert pictures
        assert [str(file) for file in pictures if file.stat().st_size > most] == []


def test_the_changelog_has_each_group_once_a_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in text.split("\n## ")[1:]:
        groups = re.findall(r"(?m)^### (.+)$", version)
        assert set(groups) <= {"Added", "Changed", "Removed", "Fixed"}, groups
        assert len(groups) == len(set(groups)), groups


NUMBER = re.compile(r"\W*\d[\d.,]*( ?(%|million|thousand|µs|ms|s|k|M|MB))?( \[[^a-z]*)?")


def figures_without_command(text: str) -> list[str]:
    """Headings of sections whose tables are numbers for the most part, without a command."""
    found = []
    for section in re.split(r"(?m)^(?=#+ )", text):
        rows = re.findall(r"(?m)^\|(.*)\|$", section)
        cells = [cell.strip() for row in rows for cell in row.split("|")[1:]]
        numbers = sum(bool(NUMBER.fullmatch(cell)) for cell in cells)
        is_figure = numbers > 3 and numbers > 0.4 * len(cells)
        if is_figure and not re.search(r"aimbot-lab \w|make \w|test_\w+\.py", section):
            found.append(section.partition("\n")[0])
    return found


def test_figures_stand_beside_the_command_that_measures_them() -> None:
    for page in PAGES:
        assert figures_without_command(page.read_text(encoding="utf-8")) == [], page
    table = "\n| a | b |\n|---|---|\n" + "| x | 1.5 [1, 2] |\n" * 5
    told = f"# Told\n`aimbot-lab bench sim`{table}"
    assert figures_without_command(f"# Speed{table}{told}") == ["# Speed"]


def test_no_page_holds_both_sides_of_a_merge() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        assert not re.search(r"(?m)^(<{7}|>{7}) ", page.read_text(encoding="utf-8"))


def test_the_glossary_has_every_metric_and_reward_term() -> None:
    from aimbot_lab.foundation import metric_names
    from aimbot_lab.worlds.arena.core import state as arena
    from aimbot_lab.worlds.duel.core import state as duel
    from aimbot_lab.worlds.gorge.core import state as gorge

    text = (ROOT / "aimbot_lab" / "GLOSSARY.md").read_text(encoding="utf-8")
    names = [value for value in vars(metric_names).values() if isinstance(value, str)]
    metrics = {
        re.sub("_(lower|upper)$", "", one) for one in names if re.fullmatch(r"[a-z]+/\w+", one)
    }
    assert len(metrics) > 30
    assert [metric for metric in sorted(metrics) if f"`{metric}`" not in text] == []
    for name, state in (("arena", arena), ("duel", duel), ("gorge", gorge)):
        rows = text.split(f"| {name} | default |")[1].split("\n\n")[0].splitlines()[2:]
        terms = [term for row in rows for term in re.findall(r"`(\w+)`", row.split("|")[1])]
        assert sorted(terms) == sorted(state.REWARD_TERMS), name
