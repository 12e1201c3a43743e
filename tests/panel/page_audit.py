"""What is looked for in every part of the page: names, sizes, and the rules of axe-core."""

from pathlib import Path

import pytest

AUDIT = """() => {
  const seen = [...document.querySelectorAll("*")].filter((one) => one.checkVisibility());
  const named = (one) => one.getAttribute("aria-label") || one.textContent.trim() ||
    one.labels?.length || one.getAttribute("aria-labelledby");
  const ids = seen.map((one) => one.id).filter(Boolean);
  const used = "button, a[href], input, select, [role=tab], [role=img]";
  return [
    ...seen.filter((one) => one.matches(used) && !named(one))
      .map((one) => "no name: " + one.outerHTML.slice(0, 80)),
    ...seen.filter((one) => one.matches("[tabindex]") && one.tabIndex > 0).map(() => "tabindex"),
    ...seen.filter((one) => one.matches("img:not([alt])")).map(() => "a picture without alt"),
    ...ids.filter((id, k) => ids.indexOf(id) !== k).map((id) => "twice: #" + id),
    ...(document.querySelectorAll("h1").length === 1 ? [] : ["not one h1"]),
  ];
}"""
TINY = """() => [...document.querySelectorAll("button, a[href], select, input, summary")]
  .filter((one) => one.checkVisibility())
  .map((one) => (one.matches("[type=radio]") ? one.parentElement : one))
  .filter((one) => !one.closest("p, #replay-file") && one.getBoundingClientRect().height < 32)
  .map((one) => `too small for a finger: ${one.outerHTML.slice(0, 80)}`)"""
AXE = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`)"""
FILLED = {  # what a part shows once it has been told what there is
    "start": ".main-cards .card",
    "runs": ".all-runs tbody tr",
    "training": ".cells tbody tr",
    "watch": ".term",
    "test": "#actor option[value^='run:']",
    "play": "#beside option[value^='run:']",
    "replays": "#replay-run option:nth-child(2)",
    "sweep": ".trials tbody tr:nth-child(3)",
}


def axe_script() -> str:
    """axe-core, of the package that brings it; the test is skipped where that is not installed."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe-core: make setup")
    return Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
