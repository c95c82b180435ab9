"""The report in a real browser: it loads alone, its controls work, and its numbers are the library's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, StumpClassifier, Threat, WeightedVote, certified_accuracy
from derand.report import Report
from tests.app.jobs.tables import make_loans
from tests.report.samples import LIMITS, report_under

Visit = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 844}}


def visible_rows(page: Any) -> list[int]:
    """Numbers of the rows that the table shows, from top to bottom."""
    names = page.locator("#row-table tbody tr:visible .row-name").all_inner_texts()
    return [int(name.replace(",", "")) for name in names]


def set_radius(page: Any, at: int) -> None:
    page.locator("#radius-b").evaluate(
        "(input, at) => { input.value = at; input.dispatchEvent(new Event('input')) }", at
    )


def test_the_page_loads_alone(visit: Visit, mixed_report: Report) -> None:
    """No console message, no request beyond the file (held by `visit`), and all sections are there."""
    page = visit(mixed_report)
    for name in (
        "guarantee",
        "threat",
        "answers",
        "accuracy",
        "radii",
        "units",
        "shapes",
        "weakest",
        "rows",
        "whatif",
        "subgroups",
        "computed",
    ):
        assert page.locator(f"section#{name} h2").is_visible()
    assert page.locator("nav a").count() == 12


def test_a_script_that_is_not_the_page_s_does_not_run(
    browser: Any, write_page: Callable[[Any], Path], mixed_report: Report, tmp_path: Path
) -> None:
    """The policy names the page's own scripts and styles by their hashes: the page works, whatever else is in it."""
    foreign = (
        "<script>window.ran = 1</script><img src='data:,x' onerror='window.ran = 2'>"
        "<style>#accuracy { display: none }</style><a id='trap' href='javascript:window.ran = 3'>here</a>"
    )
    injected = tmp_path / "injected.html"
    page_text = write_page(mixed_report).read_text(encoding="utf-8")
    assert "script-src 'sha256-" in page_text
    injected.write_text(page_text.replace("<main", f"{foreign}<main", 1), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(injected.as_uri())
    page.locator("#trap").dispatch_event("click")
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert page.locator("section#accuracy h2").is_visible()
    assert len([text for text in refused if "Content Security Policy" in text]) >= 4
    set_radius(page, 1)
    context.close()


def test_the_slider_shows_the_library_s_numbers(visit: Visit, mixed_report: Report) -> None:
    """At each place of the slider, and for each number of changed categories, the count is certified accuracy."""
    page, summary = visit(mixed_report), mixed_report.to_dict()
    found, labels = mixed_report._inputs.certificates, mixed_report._inputs.truth
    for budget in (0, 2):
        page.select_option("#budget", str(budget))
        for at in (0, 7, len(summary["scale"]["radii"]) - 1):
            set_radius(page, at)
            radius = summary["scale"]["radii"][at]
            expected = round(certified_accuracy(labels, found[budget], [radius])[0] * 120)
            text = page.locator("[data-test=budget-text]").inner_text()
            assert re.search(r": (\d+) of 120 rows", text).group(1) == str(expected)
            first = page.locator("[data-test=radius-text]").inner_text()
            assert re.search(r": (\d+) of", first).group(1) == str(
                round(certified_accuracy(labels, found[0], [radius])[0] * 120)
            )


def test_the_slider_moves_marks_and_marks_rows(visit: Visit, mixed_report: Report) -> None:
    """Which rows are called certified follows the radius, and the charts' marks move with it."""
    page, summary = visit(mixed_report), mixed_report.to_dict()
    mark = page.locator("#accuracy .radius-mark").first
    before = float(mark.get_attribute("x1"))
    at = len(summary["scale"]["radii"]) // 2
    set_radius(page, at)
    assert float(mark.get_attribute("x1")) != before
    held = page.locator("#row-table .status.held").count()
    radii = [float(row["radius"][0]) for row in summary["rows"]["table"]]
    assert held == sum(radius >= summary["scale"]["radii"][at] for radius in radii)
    assert page.locator("#radius-a").input_value() == str(at)
    assert f"radius {summary['scale']['radii'][at]:g}" in page.locator("#radius-a").get_attribute("aria-valuetext")


def test_filters_show_the_rows_that_fit(visit: Visit, mixed_report: Report) -> None:
    """Wrong answers, certified rows, labels, and words among the values."""
    page, table = visit(mixed_report), mixed_report.to_dict()["rows"]["table"]
    page.select_option("#show", "wrong")
    assert sorted(visible_rows(page)) == sorted(row["row"] for row in table if not row["correct"])
    page.select_option("#show", "label:yes")
    assert sorted(visible_rows(page)) == sorted(row["row"] for row in table if row["label"] == "yes")
    page.select_option("#show", "held")
    at = int(page.locator("#radius-b").input_value())
    radius = mixed_report.to_dict()["scale"]["radii"][at]
    assert sorted(visible_rows(page)) == sorted(row["row"] for row in table if float(row["radius"][0]) >= radius)
    page.select_option("#show", "")
    page.fill("#find", "smith łódź")
    expected = [row["row"] for row in table if {"smith", "Łódź"} <= {one["value"] for one in row["pushes"]["listed"]}]
    assert sorted(visible_rows(page)) == sorted(expected)
    assert page.locator("#shown").inner_text() == f"{len(expected)} of 120 rows"
    what_if, numbers = mixed_report.to_dict()["what_if"], mixed_report.to_dict()["rows"]["listed"]["row"]
    ages = what_if["cells"][[one["name"] for one in what_if["columns"]].index("age")]
    smiths = {row["row"] for row in table if "smith" in {one["value"] for one in row["pushes"]["listed"]}}
    aged = {row for row, age in zip(numbers, ages, strict=True) if age == ages[0]}
    page.fill("#find", f"age {ages[0]:g}")
    assert set(visible_rows(page)) == aged
    page.fill("#find", f"{ages[0]:g}")
    assert set(visible_rows(page)) >= aged
    page.fill("#find", f"job=smith age {ages[0]:g}")
    assert set(visible_rows(page)) == aged & smiths
    assert "such as “" in page.locator("[data-test=find-hint]").inner_text()


def test_headers_sort_by_mouse_and_keyboard(visit: Visit, mixed_report: Report) -> None:
    """A header sorts, once more turns the order around, and a screen reader is told."""
    page, table = visit(mixed_report), mixed_report.to_dict()["rows"]["table"]
    page.click("th[data-sort=row] button")
    assert visible_rows(page) == sorted(row["row"] for row in table)
    page.locator("th[data-sort=row] button").press("Enter")
    assert visible_rows(page) == sorted((row["row"] for row in table), reverse=True)
    assert page.locator("th[data-sort=row]").get_attribute("aria-sort") == "descending"
    assert page.locator("th[data-sort=radius]").get_attribute("aria-sort") is None
    page.click("th[data-sort=radius] button")
    radius = {row["row"]: float(row["radius"][0]) for row in table}
    shown = [radius[row] for row in visible_rows(page)]
    assert shown == sorted(shown)


def test_picking_a_row_shows_its_certificate_and_its_law(visit: Visit, mixed_report: Report) -> None:
    """The details are those of the picked row, drawn as the server would draw them."""
    from derand.report.sections import rows

    page, summary = visit(mixed_report), mixed_report.to_dict()
    before = page.locator("#detail path.law-cdf").get_attribute("d")
    table = summary["rows"]["table"]
    at = next(at for at, row in enumerate(table) if row["law"]["density"] != table[0]["law"]["density"])
    picked = table[at]
    page.locator(f"#row-table tbody tr[data-at='{at}'] button").press("Enter")
    assert page.locator("#detail-title").inner_text() == f"Row {picked['row']}"
    facts = page.locator("#detail-facts").inner_text()
    for text in (*picked["radius_text"], picked["failure_text"], picked["label"]):
        assert text in facts
    paths = rows.law_paths(picked["law"], summary["rows"]["law_axis"], picked["is_one"])
    for name, expected in paths.items():
        drawn = page.locator(f"#detail path.law-{name}").get_attribute("d")
        assert re.sub(r"[\d.]+", "", drawn) == re.sub(r"[\d.]+", "", expected)
        places = [[float(place) for place in re.findall(r"[\d.]+", path)] for path in (drawn, expected)]
        assert places[0] == pytest.approx(places[1], abs=0.11)
    assert page.locator("#detail path.law-cdf").get_attribute("d") != before
    listed = page.locator("#detail-pushes li .push-name").all_inner_texts()
    for one in picked["pushes"]["listed"]:
        assert any(one["value"] in text for text in listed)


def test_tables_show_what_the_dict_holds(visit: Visit, mixed_report: Report) -> None:
    """The accuracy table, the moves and the subgroups are the dict's texts."""
    page, summary = visit(mixed_report), mixed_report.to_dict()
    cells = page.locator("[data-test=accuracy-table] tbody td").all_inner_texts()
    assert cells == [text for row in summary["table"]["rows"] for text in row["text"]]
    assert page.locator("[data-test=guarantee]").inner_text() == summary["guarantee"]["statements"][0]
    names = page.locator("[data-test=moves] tbody th").all_inner_texts()
    assert names == [move["name"] for move in summary["moves"]]
    assert page.locator("[data-test=subgroups]").count() == 2


def test_without_javascript_everything_but_the_controls_remains(visit: Visit, mixed_report: Report) -> None:
    """Charts, tables and explanations are there; what would not work is hidden."""
    page, summary = visit(mixed_report, java_script_enabled=False), mixed_report.to_dict()
    assert page.locator("#row-table tbody tr").count() == len(summary["rows"]["table"])
    assert page.locator("#accuracy svg[role=img]").count() == 3
    assert page.locator("#weakest .law-held").first.is_visible()
    for control in ("#radius-a", "#radius-b", "#show", "#find", "#detail"):
        assert not page.locator(control).is_visible()


@pytest.mark.parametrize("options", [{}, PHONE, {"color_scheme": "dark"}])
def test_nothing_overflows_the_screen(visit: Visit, mixed_report: Report, options: dict[str, Any]) -> None:
    """Wide and narrow, light and dark: the page is never wider than the window, and text stands out."""
    page = visit(mixed_report, **options)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    ink, paper = page.evaluate(
        "[getComputedStyle(document.documentElement).color, getComputedStyle(document.documentElement).backgroundColor]"
    )
    assert contrast(ink, paper) > 7
    quiet = page.evaluate("getComputedStyle(document.querySelector('.lede')).color")
    assert contrast(quiet, paper) > 4.5
    dark = options.get("color_scheme") == "dark"
    assert (luminance(paper) < 0.5) == dark


@pytest.mark.parametrize("options", [{}, {**PHONE, "color_scheme": "dark"}])
def test_a_worthless_model_is_seen_first(visit: Visit, options: dict[str, Any]) -> None:
    """The banner is on the first screen and above the title, its title stands out, and figures are below."""
    frame = make_loans()
    X, y = frame[["age", "debt"]], frame["outcome"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = StumpClassifier(noise="gaussian:1", scaling="standard").fit(X, y)
    page = visit(Report(clf, X, y), **options)
    banner = page.locator("[data-test=banner]")
    assert "88.0 % is what the constant answer 'repaid' gets, too" in banner.inner_text()
    assert banner.bounding_box()["y"] < page.locator("h1").bounding_box()["y"] < 700
    ink, paper = banner.evaluate(
        "one => [one.querySelector('.banner-title'), one].map((e, k) => "
        "k ? getComputedStyle(e).backgroundColor : getComputedStyle(e).color)"
    )
    assert contrast(ink, paper) > 4.5
    assert page.locator("[data-test=answers] tbody tr").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    """Ratio of brightness as the accessibility guidelines define it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_paper_shows_all_and_no_controls(visit: Visit, mixed_report: Report) -> None:
    """Printed, the page is light, opens what is folded, and leaves the controls away."""
    page = visit(mixed_report, color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("#radius-b").is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator("[data-test=weak-row] .law-held").last.is_visible()
    ink = page.evaluate("getComputedStyle(document.querySelector('.statement')).color")
    assert luminance(ink) < 0.1


def test_user_text_is_shown_and_not_run(visit: Visit) -> None:
    """A script in a name, a label or a value appears as text, also where JavaScript writes it."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    nasty = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    y = np.where(X[:, 0] > 0, nasty, "no")
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    page = visit(Report(clf, X, y, feature_names=[nasty, "b"], title=nasty))
    page.on("dialog", lambda dialog: pytest.fail("a script of the user's data ran"))
    page.locator("#row-table tbody tr[data-at='5'] button").click()
    page.select_option("#show", f"label:{nasty}")
    assert page.locator("h1").inner_text() == nasty
    assert page.locator("img").count() == 0
    assert nasty[:20] in page.locator("#detail-pushes").inner_text()


def test_a_vote_and_a_model_without_numbers_work(visit: Visit) -> None:
    """Pages that lack laws, pushes or radii have working scripts."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)
    stump = AdditiveEnsemble.from_stumps([0], [0.1], [0.1], [0.9], n_features=2)
    vote = Report(WeightedVote([stump, stump], [1.0, 0.5]), X, y, noise="gaussian:0.25")
    constant = Report(AdditiveEnsemble((), 0, 2), X, noise="gaussian:0.25")
    for report in (vote, constant):
        page = visit(report)
        page.locator("#row-table tbody tr[data-at='3'] button").click()
        assert page.locator("#detail-title").inner_text() == f"Row {report.to_dict()['rows']['table'][3]['row']}"
        page.select_option("#show", "held")
        assert visible_rows(page)


def test_the_expected_score_is_shown_in_the_place_of_failure_masses(visit: Visit) -> None:
    """By the rule "mean" details hold score and margin, the mark of the law stays, and headers sort by them."""
    report = report_under(rule="mean", threat=Threat(norm=np.inf))
    page, table = visit(report), report.to_dict()["rows"]["table"]
    page.locator("#row-table tbody tr[data-at='3'] button").press("Enter")
    facts = page.locator("#detail-facts").inner_text()
    assert table[3]["score_text"] in facts
    assert table[3]["margin_text"] in facts
    before = page.locator("#detail .law-percentile").get_attribute("x1")
    set_radius(page, 3)
    assert page.locator("#detail .law-percentile").get_attribute("x1") == before
    assert page.locator("#detail .legend li").last.inner_text() == "expected score"


@pytest.mark.parametrize("size", [{}, PHONE])
def test_limits_alone_show_verdicts_and_witnesses(visit: Visit, size: dict[str, Any]) -> None:
    """Counts and witnesses are the dict's, rows can be filtered by what holds, and nothing overflows."""
    report = report_under(rule="mean", threat=LIMITS)
    page, summary = visit(report, **size), report.to_dict()
    assert page.locator("[data-test=guarantee]").inner_text() == summary["guarantee"]["statements"][0]
    assert page.locator("[data-test=witness]").count() == len(summary["verdicts"]["witnesses"])
    page.select_option("#show", "held")
    held = [row["row"] for row in summary["rows"]["table"] if row["verdict"] == "holds"]
    assert sorted(visible_rows(page)) == sorted(held)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_phone_shows_details_below_the_table(visit: Visit, mixed_report: Report) -> None:
    """A tapped row's details follow the table and come into view."""
    page = visit(mixed_report, **PHONE)
    page.locator("#row-table tbody tr[data-at='4'] button").click()
    page.wait_for_function("document.querySelector('#detail').getBoundingClientRect().top < innerHeight")
    below = "document.querySelector('.scroll.tall').getBoundingClientRect().bottom"
    assert page.evaluate(f"{below} <= document.querySelector('#detail').getBoundingClientRect().top")


def test_bars_of_subgroups_stand_below_each_other(visit: Visit, mixed_report: Report) -> None:
    """Also where one of the shares has a digit more."""
    page = visit(mixed_report)
    for table in page.locator("[data-test=subgroups]").all():
        assert len(set(table.locator(".meter").evaluate_all("all => all.map((one) => one.offsetLeft)"))) == 1
