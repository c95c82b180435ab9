"""Reports on numbers in a real browser: "What if" gives the numbers of `predict`, and the row table is filtered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from derand import AdditiveRegressor, StumpRegressor
from derand._core.text import format_short, format_short_down, format_short_up
from derand.certificates import find_answers
from derand.report import Report
from tests.browser.test_what_if import PLAY, draw_moves, encode_moves, make_table

Visit = Callable[..., Any]


def make_report(reg: Any, **options: Any) -> Report:
    frame, _ = make_table()
    target = frame["age"] + 20 * (frame["job"] == "smith") + 5 * frame["debt"].fillna(1.0)
    reg.fit(frame[:160], target[:160])
    return Report(reg, frame[160:220], target[160:220], radius=0.2, **options)


@pytest.mark.parametrize(
    "reg",
    [
        AdditiveRegressor(radius=0.2, regularization=1.0),
        AdditiveRegressor(radius=0.2, regularization=1.0, noise="none", l0=1),
        StumpRegressor(regularization=1.0),
    ],
    ids=["mean", "no noise", "median"],
)
def test_moved_rows_get_the_numbers_of_predict(visit: Visit, reg: Any) -> None:
    """On 200 moved rows; what is called within the certified set lies in the interval, which `predict` confirms."""
    report = make_report(reg)
    page, moves = visit(report), draw_moves(report)
    said = page.evaluate(PLAY, moves)
    inputs, rows = report._inputs, encode_moves(report, moves)
    answers = find_answers(inputs.subject.model, rows, inputs.subject.noise, rule=inputs.rule)
    slack = 1e-9 * np.abs(answers).max()
    table = report.to_dict()["rows"]["table"]
    for move, one, answer in zip(moves, said, answers.tolist(), strict=True):
        low, high = one["score"]
        assert low - slack <= answer <= high + slack
        if one["inside"]:
            assert table[move["at"]]["low"] <= answer <= table[move["at"]]["high"]
    spread = np.array([one["score"][1] - one["score"][0] for one in said])
    assert np.median(spread) < 0.01 * np.ptp(answers)
    assert any(one["inside"] for one in said)
    assert not all(one["inside"] for one in said)


def test_the_page_says_where_a_moved_row_lies(visit: Visit) -> None:
    """A small move stays within the certified set, a large one leaves it, and names of rows are shown as text."""
    report = make_report(
        AdditiveRegressor(radius=0.2, regularization=1.0), row_names=[f"<b>{at}</b>" for at in range(60)]
    )
    page = visit(report)
    box = page.locator(".whatif-line:has-text('age') .whatif-number")
    own = float(box.input_value())
    assert "the row as it is" in page.locator("#whatif-change").inner_text()
    assert "Within the certified set of row <b>30</b>" in page.locator("#whatif-certified").inner_text()
    box.fill(str(own + 1))
    assert "Within" in page.locator("#whatif-certified").inner_text()
    assert "lies in the row" in page.locator("#whatif-interval").inner_text()
    box.fill(str(own + 300))
    assert "nothing is proven about the moved row" in page.locator("#whatif-certified").inner_text()
    page.locator("#whatif-back").click()
    assert "the row as it is" in page.locator("#whatif-change").inner_text()
    assert page.locator("#row-table b").count() == 0


def test_rows_are_filtered_and_sorted(visit: Visit) -> None:
    """By what is shown, by name, and by the heads of columns."""
    report = make_report(AdditiveRegressor(radius=0.2, regularization=1.0))
    page, told = visit(report), report.to_dict()
    shown = page.locator("#shown")
    assert shown.inner_text() == "60 of 60 rows"
    page.locator("#show").select_option("outside")
    n_outside = sum(row["inside"] is False for row in told["rows"]["table"])
    assert shown.inner_text() == f"{n_outside} of 60 rows"
    page.locator("#show").select_option("small")
    assert shown.inner_text() == f"{told['tolerance']['below']} of 60 rows"
    page.locator("#show").select_option("")
    page.locator("#find").fill("161")
    assert page.locator("#row-table tbody tr:visible").count() >= 1
    page.locator("#find").fill("")
    page.locator("th[data-sort=width] button").click()
    page.locator("th[data-sort=width] button").click()
    first = page.locator("#row-table tbody tr").first.get_attribute("data-at")
    widths = [row["width"] for row in told["rows"]["table"]]
    assert widths[int(first)] == max(widths)


def test_more_rows_than_the_picture_has_are_listed_and_moved(visit: Visit) -> None:
    """The table has all rows; radii for the tolerance are those of the rows with details, and stand first or last."""
    report = make_report(AdditiveRegressor(radius=0.2, regularization=1.0), n_detailed=20)
    page, told = visit(report), report.to_dict()
    listed = told["rows"]["listed"]
    assert len(told["rows"]["table"]) == told["tolerance"]["n_rows"] == 20
    assert [one for one in listed["tolerance"] if one is not None] == [row["radius"] for row in told["rows"]["table"]]
    assert page.locator("#shown").inner_text() == "60 of 60 rows"
    at = next(at for at in range(60) if at not in listed["detailed"])
    line = page.locator(f"#row-table tbody tr[data-at='{at}']")
    texts = [format_short(listed["value"][at], 6), format_short_up(listed["high"][at], 6)]
    assert [line.locator("td").nth(place).inner_text() for place in (0, 2)] == texts
    assert line.locator("td").last.inner_text() == ""
    page.locator("th[data-sort=tolerance] button").click()
    places = page.eval_on_selector_all("#row-table tbody tr", "rows => rows.map((row) => Number(row.dataset.at))")
    assert sorted(places[:20]) == listed["detailed"]
    line.locator("button").press("Enter")
    assert page.locator("#detail-title").inner_text() == f"Row {listed['name'][at]}"
    assert texts[0] in page.locator("#detail-facts").inner_text()
    page.locator("#detail-whatif").press("Enter")
    assert page.locator("#whatif-row").input_value() == str(at)
    assert page.locator("#whatif-answer").inner_text() == texts[0]


def test_numbers_are_written_as_the_library_writes_them(visit: Visit) -> None:
    """Of either sign, at every size: down, up and to nearest."""
    random = np.random.default_rng(2)
    values = [0.0, 1.0, -1.0, 999_999.5, 9_999_999.5, 1_234_566.5, 1_234_567.5, 9.99999e-5, 9.9999999e-5, 1e7, 1e300]
    values += (random.choice([-1.0, 1.0], 300) * 10.0 ** random.uniform(-7, 9, 300)).tolist()
    page = visit(make_report(AdditiveRegressor(radius=0.2, regularization=1.0)))
    write = "(values) => values.map((one) => [derand.write(one, 6, 'up'), derand.write(one, 6, 'near')])"
    assert page.evaluate(write, values) == [[format_short_up(one, 6), format_short(one, 6)] for one in values]
    sizes = [abs(one) for one in values]
    written = page.evaluate("(values) => values.map((one) => derand.write(one, 6, 'down'))", sizes)
    assert written == [format_short_down(one, 6) for one in sizes]
