"""The page in a browser: started, steered, watched, killed, and offline.

One panel, one training and one browser serve all tests, which go on where those before ended.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest
from browser_page import LARGE, SMALL, Browser, Stage, needs_chromium, wait_for_text
from leash import leashed
from page_audit import AUDIT, AXE, FILLED, TINY, axe_script
from panel_server import running_panel
from planted_sweep import add_trial, planted

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.agents import fetch_agent
from aimbot_lab.experiment.runs.run_record import RESOLVED_NAME
from aimbot_lab.panel.server.serve import PARTS
from aimbot_lab.panel.server.trainings import Started
from aimbot_lab.tracking.data_folder import DataFolder

pytestmark = needs_chromium
CURRICULUM = """
# A training without an end.
name: endless
env: {num_envs: 32, time_limit: 5.0}
lessons:
  - name: "<b>first</b>"
    targets: {goto: 3, attack: 1}
    difficulty: {goto: [1, 0, 0, 0, 0], attack: [1, 1, 0, 0, 0]}
    completion_criteria: {threshold: 0.999, min_lesson_length: 1000000}
train:
  total_steps: 1_000_000_000
  n_steps: 32
  batch_size: 512
  n_epochs: 1
  network: {layers: [8]}
"""
PACED = Path(__file__).parents[1] / "cli" / "paced_lab.py"
SHOWN = "els => els.map(one => one.value)"


@pytest.fixture(scope="module")
def stage(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    here = tmp_path_factory.mktemp("here")
    (here / "endless.yaml").write_text(CURRICULUM)
    (here / "broken.yaml").write_text("name: broken\nlessons: 7\n")
    sweep = planted(DataFolder(here / "data"))
    for value in (0.25, 0.75, 0.5):
        add_trial(sweep, value, first=20.0 * value)
    with running_panel(here / "data", here=here) as panel:
        panel.lab.trainings.program = leashed(sys.executable, str(PACED))
        yield Stage(browser, panel, here)
        started = panel.lab.trainings.look()
        if started is not None and started.alive:
            os.kill(started.pid, signal.SIGKILL)
            with suppress(psutil.NoSuchProcess):
                psutil.Process(started.pid).wait()


def test_a_choice_starts_a_training_holds_and_shows_it_live(stage: Stage) -> None:
    with stage.browser.page(stage.panel) as page:
        page.locator(".main-cards .card").first.wait_for()
        titles = page.locator(".main-cards strong").all_text_contents()
        assert titles[:4] == ["Train-Free", "Train-Goto", "Train-Attack", "Train-Mix"]
        faults = page.locator(".card.faulty .faults li").all_text_contents()
        assert any(line.startswith(f"{stage.here}/broken.yaml:2:10: lessons: ") for line in faults)
        page.locator(".card", has_text="endless.yaml").click()
        page.get_by_label("Seed").fill("7")
        page.locator("summary", has_text="Weights of rewards").click()
        page.get_by_label("spin penalty").fill("0.25")
        attack = page.locator(".sheet fieldset", has=page.locator("legend", has_text="of attack"))
        attack.locator(".lock").first.click()  # whose weight stays
        attack.locator("input").nth(2).focus()
        page.keyboard.press("End")
        page.wait_for_function("() => !document.querySelector('.asking')")
        shown = attack.locator("output").all_text_contents()
        assert [float(one) for one in shown] == [0.5, 0, 0.5, 0, 0]
        page.get_by_role("button", name="Start").click()
        wait_for_text(page, ".held", "since .* A choice holds until the run ends")
        assert page.locator("button.card:not([disabled])").count() == 0
        page.wait_for_url("**/#training/*")
        wait_for_text(page, "h1", "^endless")
        wait_for_text(page, ".tile", r"^steps[\d,]+of 1 G")
        assert page.locator(".lessons .now strong").text_content() == "<b>first</b>"
        assert page.locator(".cells tbody tr").count() == 2
    run = training_of(stage).run_id
    checkpoints = stage.panel.lab.run_list.find(str(run))
    assert checkpoints is not None
    config = load_curriculum(checkpoints.checkpoints / RESOLVED_NAME).config
    env: Any = config.env
    assert (config.seed, env.rewards.spin_penalty) == (7, 0.25)
    assert config.lessons[0].difficulty["goto"] == (1, 0, 0, 0, 0)
    assert config.lessons[0].difficulty["attack"] == (0.5, 0, 0.5, 0, 0)


def test_a_second_choice_is_refused_while_the_training_holds(stage: Stage) -> None:
    with stage.panel.page() as page:
        page.ask("start", "offer")
        sheet = page.ask("start", "sheet", key="shipped:goto")
        told = page.refused("start", "begin", **sheet)
        assert told == "endless.yaml still trains; stop it first"
        told = page.refused("start", "begin", **{**sheet, "rewards": {"win": -1e30, "no": 1}})
        assert told.startswith("--set env.rewards.")
        assert "not offered" in page.refused("start", "sheet", key="../../etc/passwd")
        told = page.refused("runs", "delete", runs=[str(training_of(stage).run_id)])
        assert told.endswith(" trains; stop it first")


def training_of(stage: Stage) -> Started:
    started = stage.panel.lab.trainings.look()
    assert started is not None
    return started


def weights_of(page: Any, group: str) -> list[float]:
    fieldset = page.locator("fieldset", has=page.locator("legend", has_text=group))
    page.wait_for_function("() => !document.querySelector('.asking')")
    return [float(text) for text in fieldset.locator("output").all_text_contents()]


def test_sliders_keep_the_sum_with_locks_and_reach_the_run(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "training") as page:
        group = page.locator("fieldset", has=page.locator("legend", has_text="of goto"))
        sliders, locks = group.locator("input"), group.locator(".lock")
        sliders.nth(2).scroll_into_view_if_needed()
        box = sliders.nth(2).bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 8, middle)
        page.mouse.down()
        for part in (0.2, 0.35, 0.5):
            page.mouse.move(box["x"] + part * box["width"], middle)
            assert sum(weights_of(page, "of goto")) == pytest.approx(1.0, abs=1e-9)
        page.mouse.up()
        moved = weights_of(page, "of goto")
        assert 0.4 < moved[2] < 0.6
        assert moved[0] == pytest.approx(1 - moved[2], abs=1e-9)
        wait_for_text(page, "fieldset .note", r"holds from step [\d,]+ on")
        locks.nth(2).click()
        wait_for_text(page, "fieldset .note", r"holds from step [\d,]+ on")
        sliders.nth(4).focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        again = weights_of(page, "of goto")
        assert again[2] == moved[2]
        assert again[4] == pytest.approx(0.03)
        assert sum(again) == pytest.approx(1.0, abs=1e-9)
        page.keyboard.press("End")  # no more than the lock leaves
        assert weights_of(page, "of goto")[4] == pytest.approx(1 - moved[2], abs=1e-9)
        page.wait_for_function("() => !document.querySelector('.waiting')")
    run = str(training_of(stage).run_id)
    with stage.panel.page() as page:
        told = page.ask("training", "weights", run=run, target="goto", moves=[], lock=[], unlock=[])
        assert told["weights"][4] == pytest.approx(1 - moved[2], abs=1e-3)
        assert told["locked"] == [False, False, True, False, False]
        refused = page.refused(
            "training", "weights", run=run, target="goto", moves=[[3, 0.1]], lock=[], unlock=[]
        )
        assert refused == "difficulty 3: its weight is locked"


def test_two_open_pages_agree_on_the_weights_of_targets(stage: Stage) -> None:
    with (
        stage.browser.page(stage.panel, "training") as one,
        stage.browser.page(stage.panel, "training") as other,
    ):
        for page in (one, other):
            page.locator("fieldset input").first.wait_for()
        assert weights_of(other, "Targets") == [0.75, 0.25]
        slider = one.locator("fieldset", has_text="Targets").locator("input").nth(1)
        slider.focus()
        one.keyboard.press("End")
        wait_for_text(other, "fieldset output", r"^1\.000$")
        other.wait_for_function(
            f"() => document.querySelector('fieldset').dataset.sum === '1.000' && "
            f"({SHOWN})([...document.querySelectorAll('fieldset:first-of-type output')])[1]"
            " === '1.000'"
        )
        wait_for_text(other, "fieldset .note", r"holds from step [\d,]+ on")
        assert weights_of(one, "Targets") == weights_of(other, "Targets") == [0.0, 1.0]


def test_the_agent_of_a_run_that_trains_acts_in_test_and_play_though_nobody_watched_it(
    stage: Stage,
) -> None:
    run = str(training_of(stage).run_id)
    with stage.panel.page() as page:
        opened = page.ask("test", "choose", actor=f"run:{run}")
        assert opened["actor"] == f"run:{run}"
        assert opened["step"] > 0
        assert page.wait_for("test", "frame")["view"]["target"] == "Stay"
        page.ask("test", "leave")
        label = f"agent: endless seed 7 ({run[:6]}), newest"
        chosen = {"target": "goto", "difficulty": 1, "seed": 3, "beside": f"run:{run}"}
        begun = page.ask("play", "begin", **chosen)
        assert label in [one["label"] for one in begun["actors"]]


def test_an_agent_saved_from_the_page_is_found_by_its_name_everywhere(stage: Stage) -> None:
    run, lab = str(training_of(stage).run_id), stage.panel.lab
    with stage.browser.page(stage.panel, "training") as page:
        page.get_by_role("button", name="Save agent").click()
        wait_for_text(page, ".notice.done", r"^The agent of step [\d,]+ is saved as step-\d+\.$")
        said = str(page.locator(".saved code").text_content())
        name = re.findall(r"step-\d+", said)[0]
        assert said.startswith(f"aimbot-lab evaluate {run[:12]} --agent {name} --data-dir ")
        page.locator(".saved li", has_text="Watch").get_by_role("link").click()
        page.wait_for_url(f"**/#watch/{run}/{name}")
        step = int(name.removeprefix("step-"))
        wait_for_text(page, ".state", f"^weights of step {step:,}$")
    assert fetch_agent(run, name, data_folder=lab.data_folder).step == step
    with stage.panel.page() as page:
        assert page.ask("test", "choose", actor=f"run:{run}:{name}")["step"] == step
        assert "there is no such" in page.refused("test", "choose", actor=f"run:{run}:step-1")
        assert "saved no such agent" in page.refused("watch", "watch", run=run, agent="step-1")
        assert "saved already" in page.ask("test", "save_agent")["said"]
        page.ask("test", "choose", actor=f"run:{run}")
        assert "has saved its present agent as step-" in page.ask("test", "save_agent")["said"]
        page.ask("test", "choose", actor="script:greedy")
        assert "nothing was saved" in page.ask("test", "save_agent")["said"]


def test_the_newest_agent_is_watched_at_play(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "watch") as page:
        wait_for_text(page, ".state", r"^weights of step [\d,]+$")
        page.locator(".term").first.wait_for()
        assert "target hit" in page.locator(".term").all_text_contents()[1]
        wait_for_text(
            page,
            ".mind",
            r"Critic's value -?[\d.]+vertical stay \d+ %ahead \d+ %back \d+ %horizontal",
        )
        assert page.locator(".mind .taken").count() == 3  # one of each branch
        wait_for_text(page, ".results li", r"^(Won|Lost) after")
        painted = page.evaluate(
            "() => { const c = document.querySelector('canvas');"
            " return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size }"
        )
        assert painted > 20


@pytest.mark.parametrize(("scheme", "size"), [("light", LARGE), ("dark", SMALL)], ids=str)
def test_keys_reach_every_tab_all_is_named_and_no_part_is_too_wide_or_has_a_serious_fault(
    stage: Stage, scheme: str, size: tuple[int, int]
) -> None:
    script = axe_script()
    with stage.browser.page(stage.panel, size=size, color_scheme=scheme, bypass_csp=True) as page:
        page.evaluate(script)
        page.locator("#tab-start").focus()
        for name in PARTS:
            if name != "start":
                page.keyboard.press("ArrowRight")
                page.wait_for_url(f"**/#{name}")
                assert page.evaluate("document.activeElement.id") == f"tab-{name}"
            page.locator(f"main.part-{name} {FILLED[name]}").first.wait_for(state="attached")
            wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, (name, size)
            assert page.evaluate(AUDIT) == page.evaluate(AXE) == [], name
            assert size == LARGE or page.evaluate(TINY) == [], name


def test_a_killed_run_keeps_its_last_state_and_can_be_resumed(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "training") as page:
        wait_for_text(page, ".run-head .state", "^trains$")
        page.locator(".progress .tiles").wait_for()
        os.kill(training_of(stage).pid, signal.SIGKILL)
        wait_for_text(page, ".run-head .state", "^its process died$")
        wait_for_text(page, ".progress .lead", "last state it showed; Resume continues")
        assert page.locator(".progress .tiles").is_visible()
        page.get_by_role("button", name="Resume").click()
        wait_for_text(page, ".run-head .state", "^trains$")
        page.get_by_role("button", name="Stop").click()
        wait_for_text(page, ".run-head .state", "^stopped$")


def test_a_run_that_is_over_shows_what_it_came_to_and_what_can_be_done_with_it(
    stage: Stage,
) -> None:
    run, script = str(training_of(stage).run_id), axe_script()
    with stage.browser.page(stage.panel, f"training/{run}", bypass_csp=True) as page:
        wait_for_text(page, ".outcome", r"^Stopped in lesson 1 \(<b>first</b>\)\.$")
        wait_for_text(page, ".report .tile", r"^steps[\d,]+seed 7$")
        (row,) = page.locator(".report table").first.locator("tbody tr").all_text_contents()
        assert re.match(r"1<b>first</b>not passed[\d,]+\d+\.\d %", row)
        told = page.locator(".report code").all_text_contents()
        assert any(one.startswith(f"aimbot-lab evaluate {run[:12]}") for one in told)
        assert page.locator(".progress").is_hidden()
        assert page.locator(".saved li").count() == 2
        page.evaluate(script)
        for scheme, (width, height) in product(("light", "dark"), (LARGE, SMALL)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate(AXE) == page.evaluate(AUDIT) == []
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
