"""The part Runs in a browser: found by words, compared in one chart, renamed, tagged, deleted."""

from pathlib import Path
from typing import Any

from browser_page import SMALL, Browser, needs_chromium, wait_for_text
from panel_server import running_panel

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings

pytestmark = needs_chromium


def kept(data: DataFolder, name: str, rate: float, *, points: int = 10, **tags: str) -> str:
    """A run that is over, with a win rate that rises to `rate`."""
    tags = {"lab.lesson": "narrow ways", "lab.lessons_passed": "1 of 2", **tags}
    tracker = open_run(data, TrackingSettings(), RunDescription(name, tags=tags))
    for step in range(1, points + 1):
        value = rate * step / 10
        ends = {"lower": value - 0.05, "upper": value + 0.05}
        ends = {f"learning/win_rate_{key}": end for key, end in ends.items()}
        tracker.log_metrics(1000 * step, {"learning/win_rate": value, **ends})
    tracker.finish("FINISHED")
    return tracker.run_id


NO_STORAGE = "Object.defineProperty(self, 'sessionStorage', { get() { throw new Error('none'); } })"


def shown(page: Any) -> list[str]:
    return list(page.locator(".all-runs tbody strong:first-child").all_text_contents())


def test_runs_are_found_compared_renamed_tagged_and_deleted(
    browser: Browser, tmp_path: Path
) -> None:
    data = DataFolder(tmp_path / "data")
    first = kept(data, "walker", 0.6, kind="slow")
    second = kept(data, "runner", 0.9)
    with running_panel(data.root, here=tmp_path) as panel, browser.page(panel, "runs") as page:
        wait_for_text(page, ".run-head [role=status]", "^2 runs$")
        row = page.locator(f"tr[data-run='{second}']")
        assert row.locator("td").nth(3).text_content() == "90.0 % [85.0, 95.0]"
        assert row.locator("td").nth(4).text_content() == "narrow ways, 1 of 2 passed"
        page.get_by_label("Filter").fill("kind=slow passed")
        wait_for_text(page, ".run-head [role=status]", "^1 of 2 runs$")
        page.reload()  # which keeps what is looked for
        wait_for_text(page, ".run-head [role=status]", "^1 of 2 runs$")
        assert page.locator(".all-runs tbody tr").get_attribute("data-run") == first
        page.add_init_script(NO_STORAGE)
        page.reload()
        wait_for_text(page, ".run-head [role=status]", "^2 runs$")
        page.get_by_label("Order").select_option("best")
        assert page.locator(".all-runs tbody tr").first.get_attribute("data-run") == second

        page.get_by_label("Compare walker").check()
        page.get_by_label("Compare runner").check()
        said = "Win rate, training episodes: .*6.0 % at step 1 k, 60.0 % at step 10 k; .*90.0 % at"
        page.locator(".curve canvas").wait_for()
        page.wait_for_function(
            "pattern => new RegExp(pattern).test("
            "document.querySelector('.curve canvas').getAttribute('aria-label'))",
            arg=said,
        )
        over = page.locator(".curve .u-over")
        box = over.bounding_box()
        over.hover(position={"x": box["width"] / 2, "y": 50})
        wait_for_text(page, ".u-legend", r"walker.*% \[.*, .*\].*runner.*% \[.*, .*\]")
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
        page.mouse.up()
        page.get_by_role("button", name="Show all steps").click()
        page.get_by_role("button", name="Show all steps").wait_for(state="hidden")

        row.get_by_role("button", name="Edit").click()
        page.get_by_label("Name").fill("the <b>best</b>")
        page.get_by_label("Note").fill("Kept for the talk.")
        page.get_by_label("Tags").fill("kind=fast\ntalk=yes")
        page.get_by_role("button", name="Save").click()
        wait_for_text(
            page, f"tr[data-run='{second}']", "the <b>best</b>.*Kept for the talk.*talk=yes"
        )
        (stored,) = [run for run in list_runs(data) if run.run_id == second]
        assert stored.name == "the <b>best</b>"
        own = {key: stored.tags[key] for key in ("note", "kind", "talk")}
        assert own == {"note": "Kept for the talk.", "kind": "fast", "talk": "yes"}

        page.locator(f"tr[data-run='{first}']").get_by_role("button", name="Edit").click()
        page.get_by_label("Tags").fill("lab.seed=7")
        page.get_by_role("button", name="Save").click()
        wait_for_text(page, "dialog .notice", "tag: lab. and mlflow. are reserved")
        page.locator("dialog").get_by_role("button", name="Delete …").click()
        wait_for_text(page, "dialog", "Delete walker\\?.*can't be undone")
        page.get_by_role("button", name="Delete for good").click()
        wait_for_text(page, ".run-head [role=status]", "^1 run$")
        assert [run.run_id for run in list_runs(data)] == [second]


def test_all_runs_that_are_found_are_compared_by_one_click_up_to_their_own_ends(
    browser: Browser, tmp_path: Path
) -> None:
    data = DataFolder(tmp_path / "data")
    kept(data, "walker", 0.6, points=5, kind="slow")
    kept(data, "a very long name " * 14, 0.8, kind="slow")
    kept(data, "runner", 0.9)
    with (
        running_panel(data.root, here=tmp_path) as panel,
        browser.page(panel, "runs", size=SMALL) as page,
    ):
        page.get_by_label("Filter").fill("kind=slow")
        wait_for_text(page, ".run-head [role=status]", "^2 of 3 runs$")
        everything = page.get_by_label("Compare all listed runs")
        everything.check()
        wait_for_text(page, ".u-legend", r"long name.*80.0 % \[75.0, 85.0\]")
        wait_for_text(page, ".u-legend", r"walker.*30.0 % \[25.0, 35.0\]")
        assert page.locator(".u-legend tr", has_text="long").bounding_box()["height"] < 60
        page.locator("#tab-training").click()
        page.locator("#tab-runs").click()  # where all is as it was left
        wait_for_text(page, ".u-legend", r"long name.*walker")
        assert page.get_by_label("Filter").input_value() == "kind=slow"
        everything.uncheck()
        page.locator(".compare").wait_for(state="hidden")
        for part in ("replays", "training", "watch"):
            page.locator(f"#tab-{part}").click()
            page.locator(f".part-{part}", has_text="a very long name").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            page.set_viewport_size({"width": 1400, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_run_that_a_person_looks_at_stays_when_another_begins(
    browser: Browser, tmp_path: Path
) -> None:
    data = DataFolder(tmp_path / "data")
    kept(data, "first", 0.6)
    with running_panel(data.root, here=tmp_path) as panel, browser.page(panel, "training") as page:
        wait_for_text(page, "h1", "^first$")
        kept(data, "second", 0.7)
        wait_for_text(page, "h1", "^second$")  # the newest, as long as the page was left alone
        page.locator("h1").click()
        kept(data, "third", 0.8)
        page.locator(".run-link", has_text="third").wait_for()
        assert page.locator("h1").text_content() == "second"
