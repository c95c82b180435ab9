"""Reports on numbers: what they say is what was certified, on every page."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveRegressor, Report, StumpRegressor, Threat
from derand._core.text import format_short, format_short_down
from derand.report import IntervalSummary
from derand.report.sections import intervals
from derand.report.sections.intervals import round_one
from tests.report.pages import SIZE_LIMIT, Page
from tests.report.test_types import list_faults


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, z, job = rng.normal(size=120), rng.normal(size=120), rng.choice(["cook", "<b>clerk</b>"], size=120)
    return pd.DataFrame({"x": x, "z": z, "job": job, "price": 20 * x - 5 * z + 10 * (job == "cook")})


@pytest.fixture(scope="module")
def regressor(frame: pd.DataFrame) -> AdditiveRegressor:
    return AdditiveRegressor(radius=0.2, regularization=1.0).fit(frame[["x", "z", "job"]], frame["price"])


def check_page(report: Report) -> Page:
    """Whole, small, without network, with names for what is seen; the other formats agree with it."""
    text = report.to_html()
    page = Page(text)
    assert not page.open
    assert len(text.encode()) < SIZE_LIMIT
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert all((link["href"] or "")[1:] in names for link in page.all("a"))
    assert "http://" not in text
    assert "https://" not in text
    assert all(image.get("aria-label") or image.get("aria-hidden") for image in page.all("svg"))
    guarantee = report.to_dict()["guarantee"]
    assert all(told in text for told in guarantee["statements"])
    assert guarantee["paragraph"] in report.to_markdown()
    assert report.to_latex().count("\\\\\n") >= 2
    assert json.loads(report.to_json()) == report.to_dict()
    return page


def test_a_report_says_what_was_certified(frame: pd.DataFrame, regressor: AdditiveRegressor) -> None:
    """Moves, widths, errors, rows and the curve are those of `certify_interval`."""
    rows, truth = frame[["x", "z", "job"]], frame["price"]
    report = Report(regressor, rows, truth, radius=0.2)
    found, told = regressor.certify_interval(rows, 0.2), report.to_dict()
    moves = np.sort(np.maximum(found.value - found.low, found.high - found.value))
    assert told["moves"] == {"half_of_rows": moves[59], "nine_in_ten": moves[107], "largest": moves[119]}
    assert told["widths"]["largest"] == found.width.max()
    assert told["errors"] is not None
    assert told["errors"]["rmse"] == pytest.approx(math.sqrt(np.mean((found.value - truth) ** 2)))
    assert told["errors"]["inside"] == ((found.low <= truth) & (truth <= found.high)).sum()
    assert told["errors"]["constant_rmse"] == pytest.approx(np.std(truth))
    assert told["errors"]["explained"] == pytest.approx(1 - np.mean((found.value - truth) ** 2) / np.var(truth))
    assert told["banner"] is None
    assert "## Are the answers any good?" in report.to_markdown()
    assert [row["value"] for row in told["rows"]["table"]] == found.value.tolist()
    tolerance = told["tolerance"]
    assert tolerance is not None
    radii = regressor.certify_radius(rows, tolerance["tolerance"]).radius
    assert tolerance["tolerance"] == round_one(told["errors"]["mean_absolute"])
    missed = format_short(told["errors"]["mean_absolute"], 3)
    assert missed in tolerance["reason"]
    assert f"answers miss the truth by {missed} on average" in told["guarantee"]["paragraph"]
    assert "derand report --tolerance NUMBER" in report.to_html()
    assert [row["radius"] for row in told["rows"]["table"]] == radii.tolist()
    assert tolerance["below"] == (radii < 0.2).sum()
    assert [row["radius"] for row in tolerance["smallest"]] == np.sort(radii)[:10].tolist()
    assert [row["row"] for row in told["rows"]["widest"]] == (np.argsort(-found.width, kind="stable")[:10] + 1).tolist()
    curve = told["curve"]
    assert curve is not None
    assert curve["radii"][4] == 0.2
    assert curve["radii"][-1] == 0.4
    assert curve["half_of_rows"][4] == told["widths"]["half_of_rows"]
    assert curve["half_of_rows"] == sorted(curve["half_of_rows"], key=float)
    page = check_page(report)
    assert list_faults(told, IntervalSummary) == []
    assert len(page.all("circle")) == 120
    assert "For half of the rows no change smaller than 0.2 moves the answer by more than" in report.to_markdown()


@pytest.mark.parametrize(
    ("radius", "threat", "words"),
    [
        (None, Threat(norm=None, limits={"x": 0.1}), "no change within the limits moves"),
        (1, Threat(norm=0), "no change of up to 1 number, to anything, moves"),
        (0.1, Threat(norm=math.inf, l0=1), "no change smaller than 0.1 moves"),
        (0.1, Threat(norm=2, frozen=("x", "z")), "no change smaller than 0.1 moves"),
        (0, Threat(norm=2), "no change smaller than 0 moves"),
    ],
    ids=["limits", "columns", "categories", "frozen", "nothing"],
)
def test_every_threat_has_a_page(
    radius: float | None, threat: Threat, words: str, frame: pd.DataFrame, regressor: AdditiveRegressor
) -> None:
    """With or without a curve, and without the truth; what is left out is said."""
    report = Report(regressor, frame[["x", "z", "job"]], radius=radius, threat=threat)
    told = report.to_dict()
    assert words in told["guarantee"]["paragraph"]
    assert told["errors"] is None
    assert any("No true numbers were given" in note for note in told["left_out"])
    has_curve = bool(radius) and not threat.frozen
    assert (told["curve"] is not None) == has_curve
    check_page(report)


def test_answers_that_are_no_better_than_a_constant_are_told_first(
    frame: pd.DataFrame, regressor: AdditiveRegressor
) -> None:
    """Where the truth has nothing to do with the answers."""
    rows, truth = frame[["x", "z", "job"]][:60], np.random.default_rng(0).normal(size=60)
    report = Report(regressor, rows, truth, radius=0.1, what_if=False)
    banner = report.to_dict()["banner"]
    assert banner is not None
    assert banner["level"] == "warning"
    assert banner["title"] in report.to_html()
    assert banner["title"] in report.to_markdown()
    check_page(report)


def test_many_rows_are_sampled(
    frame: pd.DataFrame, regressor: AdditiveRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table, the picture and the curve; the report says so, and the numbers are about all rows."""
    monkeypatch.setattr(intervals, "_CURVE_ROWS", 50)
    report = Report(regressor, frame[["x", "z", "job"]], frame["price"], radius=0.2, max_rows=30)
    told = report.to_dict()
    assert len(told["rows"]["table"]) == 30
    assert told["rows"]["sampled"]
    assert told["curve"] is not None
    assert told["curve"]["n_rows"] == 50
    assert told["widths"]["largest"] == told["rows"]["widest"][0]["width"]
    assert sum("drawn at random" in note for note in told["left_out"]) == 2
    check_page(report)


def test_a_median_and_names_by_number() -> None:
    """Another rule, an array without names, and one row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    report = Report(StumpRegressor(regularization=1.0).fit(X, X[:, 0]), X[:1], [0.5], radius=0.1)
    assert report.to_dict()["model"]["feature_names"] == ["feature 0", "feature 1"]
    assert "median" in report.to_dict()["rule"]["sentence"]
    check_page(report)


def test_what_makes_no_sense_is_refused(frame: pd.DataFrame, regressor: AdditiveRegressor, tmp_path: Any) -> None:
    """By the name of the parameter."""
    rows = frame[["x", "z", "job"]]
    with pytest.raises(TypeError, match="`model` must be a fitted classifier or regressor"):
        Report(object(), rows, radius=0.1)
    with pytest.raises(ValueError, match="`max_rows` must be a whole number"):
        Report(regressor, rows, radius=0.1, max_rows=0)
    with pytest.raises(ValueError, match="`y` must hold one finite number per row, 120 in all"):
        Report(regressor, rows, [1.0], radius=0.1)
    with pytest.raises(ValueError, match=r"`path` must end with one of \.html"):
        Report(regressor, rows, radius=0.1).write(tmp_path / "report.txt")


def test_rows_have_names_and_parts_can_be_asked_for(frame: pd.DataFrame, regressor: AdditiveRegressor) -> None:
    """Names of rows stay text, a tolerance is the one that was given, and "What if" can be left out."""
    rows = frame[["x", "z", "job"]][:20]
    names = [f"<script>alert({at})</script>" for at in range(20)]
    report = Report(regressor, rows, radius=0.2, row_names=names, tolerance=3.0, what_if=False)
    told = report.to_dict()
    assert [row["name"] for row in told["rows"]["table"]] == names
    assert told["tolerance"]["tolerance"] == 3.0
    assert told["what_if"] is None
    assert any("left out on request" in note for note in told["left_out"])
    check_page(report)
    assert "<script>alert" not in report.to_html()
    assert "<script>alert" not in report.to_markdown()
    indexed = Report(regressor, rows.set_index(np.arange(100, 120)), radius=0.2, tolerance=3.0).to_dict()
    assert indexed["rows"]["table"][0]["name"] == "100"
    with pytest.raises(ValueError, match="`tolerance` must be a positive"):
        Report(regressor, rows, radius=0.2, tolerance=-1.0)
    with pytest.raises(ValueError, match="`row_names` must hold one name per row, 20 in all"):
        Report(regressor, rows, radius=0.2, row_names=["a"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.2345678, "1.23456"), (-1.2345671, "-1.23457"), (0.0, "0"), (-123.0, "-123"), (99.99999999, "99.9999")],
)
def test_lowest_numbers_are_never_shown_higher(value: float, text: str) -> None:
    """Of either sign."""
    assert format_short_down(value, 6) == text
