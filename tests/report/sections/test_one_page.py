"""The page to sign: what stands on it, that it stays short, and that its figures are those of pandas."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, AdditiveRegressor, Report, Threat
from derand.report import _printing
from tests.report.pages import Page, read_tables
from tests.report.samples import make_mixed, make_vote, report_on_bare, report_under


def make_page(report: Report) -> str:
    """The page, which must be whole, without scripts, and have one part alone."""
    text = report.to_html(one_page=True)
    page = Page(text)
    assert not page.open
    assert len(page.all("section")) == 1
    assert not page.all("script")
    assert not page.all("nav")
    assert "script-src 'none'" in text
    return text


def test_it_has_question_answer_quality_and_a_line_for_a_signature() -> None:
    """Figures are those of the dict, and it is the first part of the long report."""
    limits = Threat(norm=None, limits={"age": "20%"}, frozen=["town"], l0=1)
    report = report_under(threat=limits)
    text, summary = make_page(report), report.to_dict()
    found, tables = summary["guarantee"], read_tables(text)
    assert found["question"] == "Can a change within the limits flip any of these 120 decisions?"
    for told in (found["question"], found["statements"][0], *found["limits"], "Signature", "What may change."):
        assert told in text
    assert [line[0] for line in tables["quality"][1:4]] == ["Accuracy", "Balanced accuracy", "Right and proven"]
    assert [line[1] for line in tables["quality"][1:]][:2] == [
        one["value"].replace("\N{NO-BREAK SPACE}", " ") for one in summary["answers"]["lines"][:2]
    ]
    columns = summary["verdicts"]["flips"]["columns"][:5]
    assert [line[0] for line in tables["flip-table"][1:]] == [f"{one['column']} {one['direction']}" for one in columns]
    for one in summary["checksums"]:
        assert one["sha256"] in text
    whole = report.to_html()
    assert whole.index('id="guarantee"') < whole.index('id="threat"')
    assert found["question"] in whole


@pytest.mark.parametrize("kind", ["ball", "no labels", "vote", "number"])
def test_every_kind_of_report_has_one(kind: str) -> None:
    frame, target = make_mixed()
    if kind == "number":
        reg = AdditiveRegressor(radius=0.2, regularization=1.0).fit(frame, 10.0 * target + frame["age"])
        report = Report(reg, frame, 10.0 * target + frame["age"], radius=0.2, subgroups="job")
    elif kind == "vote":
        report = report_on_bare(make_vote())
    else:
        report = report_under(labels=kind == "ball")
    text, found = make_page(report), report.to_dict()["guarantee"]
    assert found["question"] in text
    assert found["statements"][0] in html.unescape(str(text))
    assert ("quality" in read_tables(text)) == (kind != "no labels")


def test_bars_add_up_and_are_those_of_the_answers() -> None:
    report = report_under(rule="mean", threat=Threat(norm=None, limits={"age": "20%"}, l0=1))
    first, *others = report.to_dict()["guarantee"]["bars"]
    counts = report.to_dict()["verdicts"]["counts"][0]
    assert (first["holds"], first["flips"], first["undecided"]) == (
        counts["holds"],
        counts["flips"],
        counts["undecided"],
    )
    for key in ("n_rows", "holds", "flips", "undecided"):
        assert first[key] == sum(one[key] for one in others)


MINUS = "\N{MINUS SIGN}"


def write_points(difference: float) -> str:
    return f"{'+' if difference > 0 else MINUS}{abs(round(100 * difference, 1)):.1f}"


def test_figures_are_those_of_pandas() -> None:
    """Counts, shares, flips by column and direction and subgroups of 20,000 rows, from the text of the page."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.normal(40, 12, 20_400).round(), "debt": rng.lognormal(8, 0.4, 20_400).round()})
    frame["job"] = rng.choice(["clerk", "cook", "smith"], len(frame))
    score = frame["age"] / 12 - frame["debt"] / 2000 + 2 * (frame["job"] == "smith") + rng.normal(size=len(frame))
    y = np.where(score > 2.5, "repaid", "default")
    clf = AdditiveClassifier(radius=0.1, regularization=1.0, noise="none").fit(frame[:400], y[:400])
    rows, truth = frame[400:].reset_index(drop=True), pd.Series(y[400:])
    threat = Threat(norm=None, limits={"age": 3, "debt": "10%"}, l0=1)
    less: dict[str, Any] = {"what_if": False, "n_explained": 0, "n_shapes": 0, "max_rows": 5, "n_detailed": 1}
    report = Report(clf, rows, truth, threat=threat, subgroups="job", **less)
    tables, c = read_tables(report.to_html(one_page=True)), clf.certify(rows, threat=threat)
    known = pd.DataFrame({"label": c.label, "true": truth, "verdict": c.verdict, "job": rows["job"]})
    right = known["label"] == known["true"]

    quality = {name: value for name, value, *_ in tables["quality"][1:]}
    assert quality["Accuracy"] == f"{np.floor(1000 * right.mean()) / 10:.1f} %"
    assert quality["Balanced accuracy"] == f"{np.floor(1000 * right.groupby(truth).mean().mean()) / 10:.1f} %"
    assert (
        quality["Right and proven"] == f"{np.floor(1000 * (right & (known['verdict'] == 'holds')).mean()) / 10:.1f} %"
    )
    for bar in report.to_dict()["guarantee"]["bars"][1:]:
        counts = known[known["label"] == bar["name"]]["verdict"].value_counts()
        assert [bar[key] for key in ("holds", "flips", "undecided")] == [
            counts.get(verdict, 0) for verdict in ("holds", "flips", "undecided")
        ]

    moved: dict[str, Any] = {}
    seen = dict(enumerate(clf.encoding_.categories[2]))
    after = pd.DataFrame(c.witness, columns=["age", "debt", "job"]).assign(job=lambda one: one["job"].map(seen))
    for name in ("age", "debt"):
        moved[f"{name} up"], moved[f"{name} down"] = after[name] > rows[name], after[name] < rows[name]
    moved["job to a seen value"] = after["job"].notna() & (after["job"] != rows["job"])
    changes = pd.DataFrame(moved) & (c.verdict == "flips")[:, None]
    alone = changes.sum(axis=1) == 1
    other = {"repaid": "default", "default": "repaid"}
    assert len(tables["flip-table"]) == 6
    for column, answer, n_alone, n_together in tables["flip-table"][1:]:
        label, _, flipped = answer.split()
        at = changes[column] & (known["label"] == label)
        assert flipped == other[label]
        assert [n_alone, n_together] == [f"{(at & alone).sum():,}", f"{(at & ~alone).sum():,}"]

    gets = known["label"] == clf.classes_[1]
    assert any(what == "Gets “repaid”" for _, what, *_ in tables["differences"][1:])
    measures = {
        "Gets “repaid”": (gets, gets | True),
        "Certified": (right & (known["verdict"] == "holds"), gets | True),
        "Wrong": (~right, gets | True),
        "Wrong of true “repaid”": (~right, truth == "repaid"),
        "Wrong of true “default”": (~right, truth == "default"),
    }
    for group, what, share, others, points in tables["differences"][1:]:
        inside, (counts, among) = known["job"] == group.removeprefix("job: "), measures[what]
        own, rest = counts[inside & among].mean(), counts[~inside & among].mean()
        assert abs(float(share.removesuffix(" %")) - 100 * own) <= 0.1
        assert abs(float(others.removesuffix(" %")) - 100 * rest) <= 0.1
        assert points == write_points(own - rest)


def test_a_page_is_written_as_html_or_pdf_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other formats are refused; without chromium a PDF is, and nothing is left."""
    report = report_under()
    with pytest.raises(ValueError, match=r"must end with one of .html, .pdf, got"):
        report.write(tmp_path / "page.md", one_page=True)
    monkeypatch.setattr(_printing, "find_browser", lambda: None)
    with pytest.raises(ValueError, match="needs chromium, which was not found"):
        report.write(tmp_path / "page.pdf", one_page=True)
    report.write(tmp_path / "page.html", one_page=True)
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_subgroups_of_numbers_are_those_of_pandas() -> None:
    """Mean answers and errors by group; a planted difference in answers is on the page."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "job": rng.choice(["cook", "clerk"], 400)})
    price = 20 * frame["x"] + 30 * (frame["job"] == "cook") + rng.normal(size=400)
    reg = AdditiveRegressor(radius=0.2, regularization=1.0).fit(frame[:200], price[:200])
    rows, truth = frame[200:].reset_index(drop=True), price[200:].reset_index(drop=True)
    report = Report(reg, rows, truth, radius=0.2, subgroups="job", what_if=False)
    answers = pd.Series(reg.certify_interval(rows, 0.2).value)
    (column,) = report.to_dict()["subgroups"]
    for group in column["groups"]:
        at = rows["job"] == group["name"]
        facts = {name: float(text) for name, text in group["facts"]}
        assert facts["Mean answer"] == pytest.approx(answers[at].mean(), rel=1e-3)
        assert facts["Mean error"] == pytest.approx((answers - truth)[at].abs().mean(), rel=1e-3)
        (above,) = [one for one in group["contrasts"] if one["kind"] == "answer"]
        assert above["count"] == (answers > answers.median())[at].sum()
        assert above["mark"]
    first = read_tables(report.to_html(one_page=True))["differences"][1]
    assert first[0].startswith("job: ")
    assert first[1].startswith("Answer above")


def test_shapes_of_numbers_are_told_from_the_mean() -> None:
    """What columns add, with the mean of the answers, is the answer of the model as deployed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = 20 * X[:, 0] - 5 * X[:, 1]
    reg = AdditiveRegressor(radius=0.1, regularization=1.0, noise="none").fit(X, y)
    report = Report(reg, X, y, radius=0.1, what_if=False)
    value, total = reg.predict(X), np.full(300, reg.predict(X).mean())
    for shape in report.to_dict()["shapes"]:
        cells = np.searchsorted(shape["edges"], X[:, shape["feature"]], side="right")
        total += np.array(shape["pushes"])[cells]
    assert np.abs(total - value).max() < 1e-6
    assert 'id="h-shapes"' in report.to_html()
