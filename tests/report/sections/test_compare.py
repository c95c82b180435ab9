"""Two models side by side: the same rows, the same changes, and figures that each model's own certificates give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, StumpClassifier, Threat, certified_accuracy, from_model
from derand.report import Report
from tests.report.pages import check_page
from tests.report.samples import make_mixed, make_rows

HOSTILE = "<script>alert(1)</script> & | _x_"


@pytest.fixture(scope="module")
def pair() -> tuple[AdditiveClassifier, StumpClassifier, pd.DataFrame, np.ndarray]:
    """Two models in the same units, the second without the column “town”, and with its columns in another order."""
    X, y = make_mixed()
    first = AdditiveClassifier(regularization=1.0, radius=0.2).fit(X, y)
    second = StumpClassifier(noise="gaussian:0.5", class_weight="balanced", scaling="range")
    return first, second.fit(X[["job", "age"]], y), X, y


def report_on(pair: Any, **options: Any) -> Report:
    first, second, X, y = pair
    return Report(first, X, y, compare=second, what_if=False, n_explained=1, **{"compare_name": HOSTILE, **options})


def test_both_are_certified_against_the_same_changes(pair: Any) -> None:
    """Shares and curves are those of the other model's own certificates, in the units of the report."""
    first, second, X, y = pair
    report = report_on(pair, subgroups="job")
    check_page(report)
    found = report.to_dict()["comparison"]
    assert found is not None
    units = dict(zip(X.columns, first.units or (1.0, 1.0, 1.0), strict=True))
    threat = Threat(norm=2, units={"age": units["age"], "job": 1.0})
    own = [first.certify(X), second.certify(X[["job", "age"]], threat=threat)]
    for curve, certificates in zip(found["curves"], own, strict=True):
        assert curve == certified_accuracy(y, certificates, found["radii"]).tolist()
    assert found["same_answers"] == (own[0].label == own[1].label).sum()
    held = [(one.label == y) & (one.radius >= 0.25) for one in own]
    counts = [int(one.sum()) for one in held]
    of_all = f"Of all {len(X)} rows, this model is right and proven at radius 0.25 on {counts[0]}, the other one on "
    assert f"{of_all}{counts[1]}:" in found["sentence"]
    share = found["shares"][1]
    assert share["name"] == "Right and certified at 0.25"
    assert share["only"] == [(held[0] & ~held[1]).sum(), (held[1] & ~held[0]).sum()]
    tables = {one["key"]: one for one in found["disagreements"]}
    assert [tables[key]["n_rows"] for key in ("first", "second")] == share["only"]
    for key, mask in (("first", held[0] & ~held[1]), ("second", held[1] & ~held[0])):
        assert {row["row"] - 1 for row in tables[key]["rows"]} <= set(np.flatnonzero(mask).tolist())  # type: ignore[index]
        assert len(tables[key]["rows"]) == min(20, tables[key]["n_rows"])  # type: ignore[index]
    told = " ".join(found["remarks"])
    assert "counts changes in other units" in told
    assert "does not know “town”" in told


def test_no_script_comes_from_the_name_of_the_other_model(pair: Any) -> None:
    """It is text in every format."""
    report = report_on(pair)
    assert "<script>alert" not in report.to_html()
    assert "<script>" not in report.to_markdown().replace("\\<script\\>", "")
    assert r"\textless{}script" in report.to_latex()


def test_a_model_beside_itself_differs_nowhere(pair: Any) -> None:
    """No row is told, and equal models are no surprise."""
    first, _, X, y = pair
    found = Report(first, X, y, compare=first, what_if=False, n_explained=0).to_dict()["comparison"]
    assert found is not None
    assert found["curves"][0] == found["curves"][1]
    assert [one["n_rows"] for one in found["disagreements"]] == [0, 0, 0]
    assert all(one["chance"] == 1.0 for one in found["shares"])
    assert "counts changes in other units" not in " ".join(found["remarks"])


@pytest.mark.parametrize("labels", [True, False])
def test_limits_frozen_columns_and_categories_are_translated(pair: Any, labels: bool) -> None:
    """By name and by value, with and without true labels; verdicts stand instead of radii."""
    first, second, X, y = pair
    own = {"limits": {"age": "20%"}, "may_become": {"job": ["cook"]}}
    threat = Threat(norm=None, l0=1, frozen=["town"], **own)  # type: ignore[arg-type]
    report = Report(first, X, y if labels else None, compare=second, threat=threat, what_if=False, n_explained=0)
    check_page(report)
    found = report.to_dict()["comparison"]
    assert found is not None
    rows = X[["job", "age"]]
    direct = second.certify(rows, threat=Threat(norm=None, l0=1, **own))  # type: ignore[arg-type]
    right = np.ones(len(X), dtype=bool) if not labels else direct.label == y
    assert found["shares"][-1]["shares"][1]["value"] == (right & (direct.verdict == "holds")).mean()
    assert found["radii"] == [0.0]


def test_models_as_deployed_stand_beside_each_other(pair: Any) -> None:
    """A report without the model's own noise leaves out that of the other one, too."""
    _, second, X, y = pair
    rows = X[["job", "age"]]
    other = StumpClassifier(noise="gaussian:0.2", scaling="range").fit(rows, y)
    options: dict[str, Any] = {"what_if": False, "n_explained": 0}
    report = Report(second, rows, y, rule="mean", noise="none", compare=other, **options)
    found = report.to_dict()["comparison"]
    assert found is not None
    assert {line["name"]: line["texts"] for line in found["lines"]}["Noise"] == ["none", "none"]
    direct = other.certify(rows, rule="mean", noise="none")
    assert found["curves"][1] == certified_accuracy(y, direct, found["radii"]).tolist()


def test_it_says_what_each_was_trained_for(pair: Any) -> None:
    """In full, with a remark where that differs; a model that was trained for nothing is not told to differ."""
    first, _, X, y = pair
    other = AdditiveClassifier(regularization=1.0, radius=0.1, l0=1, frozen=["age"]).fit(X, y)
    told = Report(first, X, y, compare=other, what_if=False, n_explained=0).to_dict()["comparison"]
    assert told is not None
    trained = next(line["texts"] for line in told["lines"] if line["name"] == "Trained for")
    assert trained == ["0.2 in l2", "0.1 in l2, one category, “age” frozen"]
    assert "may differ for that reason alone" in " ".join(told["remarks"])


def test_arrays_imported_models_and_several_classes() -> None:
    """Columns without names go by number; models of other libraries and of three classes stand beside others."""
    from sklearn.ensemble import GradientBoostingClassifier

    X, y = make_rows(60, 2)
    imported = from_model(GradientBoostingClassifier(max_depth=1, n_estimators=5).fit(X, y), X)
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    for first, second in ((clf, imported), (imported, clf)):
        check_page(Report(first, X, y, compare=second, what_if=False, n_explained=0))
    three = np.digitize(X[:, 0], [-0.4, 0.4])
    one, two = (AdditiveClassifier(regularization=size).fit(X, three) for size in (0.1, 1.0))
    report = Report(one, X, three, compare=two, subgroups=1, what_if=False, n_explained=0)
    check_page(report)
    assert [one["title"] for one in report.to_dict()["subgroups"][0]["groups"][0]["contrasts"]] == [
        "Certified at 0.25",
        "Wrong",
        *(f"Gets “{name}”" for name in range(3)),
    ]


def test_what_cannot_be_compared_is_refused(pair: Any) -> None:
    """Columns that nothing is said of, other classes, other kinds of columns, and what is no classifier."""
    first, second, X, y = pair
    rows = X[["job", "age"]]
    with pytest.raises(ValueError, match="`compare` reads 'town', which the model of the report does not know"):
        Report(second, rows, y, compare=first)
    with pytest.raises(ValueError, match="must answer with the same classes, 0 and 1, got"):
        Report(first, X, y, compare=StumpClassifier().fit(rows, y == 1))
    as_codes = X.assign(job=(X["job"] == "smith").astype(float))
    with pytest.raises(ValueError, match="reads 'job' as a number, and the model of the report as a category"):
        Report(first, X, y, compare=StumpClassifier().fit(as_codes, y))
    with pytest.raises(ValueError, match="3 columns without names"):
        Report(second, rows, y, compare=StumpClassifier().fit(make_rows(120)[0], y))
    with pytest.raises(TypeError, match="must be a fitted classifier of derand, got int"):
        Report(first, X, y, compare=3)
