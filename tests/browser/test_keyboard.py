"""The page by keyboard alone: everything that acts is reached, is seen where it has the focus, and nothing traps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from derand.report import Report

Visit = Callable[..., Any]

# what has the focus: how it is called, and whether that is seen
FOCUSED = """
() => {
  const one = document.activeElement;
  if (one === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const name = one.ariaLabel || one.labels?.[0]?.textContent || one.textContent.trim();
  const seen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return { tag: one.tagName.toLowerCase(), id: one.id, name, seen, known: (one.known = (one.known ?? 0) + 1) };
}
"""


def walk(page: Any) -> list[dict[str, Any]]:
    """All stops of the tab key from the top of the page to its end."""
    stops = []
    for _ in range(300):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop is None or stop["known"] > 1:
            return stops
        stops.append(stop)
    raise AssertionError("the page has no end")


def test_every_control_is_reached_named_and_seen(visit: Visit, mixed_report: Report) -> None:
    """From the link that skips the navigation to the last control; the table of rows is one stop."""
    page = visit(mixed_report)
    stops = walk(page)
    assert stops[0]["name"] == "Skip to the report"
    assert [one for one in stops if not one["name"] or not one["seen"]] == []
    reached = {one["id"] for one in stops}
    assert {"radius-a", "radius-b", "budget", "show", "find", "detail-whatif", "whatif-row", "whatif-0"} <= reached
    assert sum(one["name"].startswith("Show row") for one in stops) == 1
    assert sum(one["tag"] == "summary" for one in stops) == page.locator("summary:visible").count()
    assert sum(one["tag"] == "a" for one in stops) == page.locator("a:visible, a.skip").count()


def test_arrows_move_from_row_to_row(visit: Visit, mixed_report: Report) -> None:
    """Enter picks the row that has the focus; sliders, filters and folded parts work by key, too."""
    page, listed = visit(mixed_report), mixed_report.to_dict()["rows"]["listed"]["row"]
    page.locator("#row-table tbody button").first.focus()
    for key in ("ArrowUp", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    assert page.locator("#detail-title").inner_text() == f"Row {listed[2]}"
    assert page.locator("#row-table tr[aria-current]").get_attribute("data-at") == "2"
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.locator("#detail-title").inner_text() == f"Row {listed[-1]}"
    before = page.locator("[data-test=radius-text]").inner_text()
    page.locator("#radius-a").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[data-test=radius-text]").inner_text() != before
    page.locator("#find").focus()
    page.keyboard.type("smith")
    assert page.locator("#row-table tbody tr").count() < 120
    card = page.locator("[data-test=weak-row] summary").nth(1)
    card.focus()
    page.keyboard.press("Enter")
    assert card.locator("xpath=..").get_attribute("open") is not None
