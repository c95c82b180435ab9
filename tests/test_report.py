"""The report says what the library computes, never more, whatever it is given."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    StepFunction,
    StumpClassifier,
    WeightedVote,
    average_certified_radius,
    certified_accuracy,
    certify,
    distribution,
)
from derand.report import CertificateReport
from derand.report._attack import find_attack, measure
from derand.report._features import move_alone, multiply_down
from derand.report._inputs import read_inputs, read_subject
from derand.report._text import percent
from derand.storage._classifiers import list_estimators
from derand.text import format_short_down

SIZE_LIMIT = 3 * 2**20
NASTY = '</script><script>alert("x")</script> & <b>'


def make_rows(n_rows: int = 80, n_columns: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    return X, np.where(X[:, 0] + 0.7 * X[:, 1] > 0, "yes", "no")


def make_mixed(n_rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n_rows).round(1),
            "job": rng.choice(["clerk", "smith", "cook"], n_rows),
            "town": rng.choice(["Málaga", "Łódź", "東京"], n_rows),
        }
    )
    y = (frame["age"] / 12 + 2 * (frame["job"] == "smith") + rng.normal(size=n_rows) > 4).to_numpy().astype(int)
    return frame, y


@pytest.fixture(scope="module")
def numbers() -> tuple[StumpClassifier, np.ndarray, np.ndarray]:
    X, y = make_rows()
    return StumpClassifier(noise="gaussian:0.5", scaling="standard").fit(X, y), X, y


@pytest.fixture(scope="module")
def mixed() -> tuple[StumpClassifier, pd.DataFrame, np.ndarray]:
    X, y = make_mixed()
    return StumpClassifier(noise="gaussian:0.5", scaling="standard", class_weight="balanced").fit(X, y), X, y


def series(summary: dict[str, Any], key: str) -> list[float]:
    (found,) = [one["values"] for one in summary["accuracy"]["series"] if one["key"] == key]
    return found


def test_curves_are_the_metrics(mixed: Any) -> None:
    """Every curve equals certified_accuracy at every radius, for all rows, classes and categorical budgets."""
    clf, X, y = mixed
    summary = CertificateReport(clf, X, y).to_dict()
    radii = summary["scale"]["radii"]
    found = clf.certify(X, l0=[0, 1, 2])
    assert series(summary, "all") == certified_accuracy(y, found[0], radii).tolist()
    assert series(summary, "balanced") == certified_accuracy(y, found[0], radii, balanced=True).tolist()
    for l0 in (0, 1, 2):
        assert series(summary, f"l0={l0}") == certified_accuracy(y, found[l0], radii).tolist()
    for label in (0, 1):
        at = np.flatnonzero(y == label)
        assert series(summary, f"class={label}") == certified_accuracy(y[at], found[0][at], radii).tolist()
    assert float(summary["radii"]["average_certified_radius"]) == average_certified_radius(y, found[0])
    assert summary["radii"]["accuracy"] == (clf.predict(X) == y).mean()


def test_the_table_is_cut_from_the_curves(numbers: Any) -> None:
    """The table holds the curves at its radii, as shares and as text that never shows more."""
    clf, X, y = numbers
    summary = CertificateReport(clf, X, y).to_dict()
    certificates = clf.certify(X)
    row = next(row for row in summary["table"]["rows"] if row["key"] == "all")
    assert row["values"] == certified_accuracy(y, certificates, summary["table"]["radii"]).tolist()
    for share, text in zip(row["values"], row["text"], strict=True):
        assert 100 * share - 0.1 <= float(text.split("\N{NO-BREAK SPACE}")[0]) <= 100 * share + 1e-9


def test_baselines_are_what_they_say(numbers: Any) -> None:
    """One always gives the most frequent label; the other is trained again with a hundredth of the noise."""
    clf, X, y = numbers
    summary = CertificateReport(clf, X[:40], y[:40], X_train=X, y_train=y).to_dict()
    radii = summary["scale"]["radii"]
    frequent = max(np.unique(y).tolist(), key=lambda name: (y == name).sum())
    assert series(summary, "baseline=constant") == [float((y[:40] == frequent).mean())] * len(radii)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = StumpClassifier(noise=Gaussian(0.005), scaling="standard").fit(X, y)
    codes = (y[:40] == "yes").astype(int)
    expected = certified_accuracy(codes, certify(twin.ensemble_, X[:40], clf.noise_), radii)
    assert series(summary, "baseline=without-noise") == expected.tolist()
    alone = CertificateReport(clf, X[:40], y[:40]).to_dict()
    assert [one["key"] for one in alone["accuracy"]["baselines"]] == ["constant"]


def test_moves_are_the_median_radius_in_each_column(numbers: Any) -> None:
    """A move is radius times unit, at least half of the rows have it, and it stays inside the open ball."""
    clf, X, y = numbers
    summary = CertificateReport(clf, X, y).to_dict()
    radius = clf.certify(X).radius
    assert (radius >= summary["radii"]["median"]).mean() >= 0.5
    assert (radius >= summary["radii"]["tenth"]).mean() >= 0.9
    for move in summary["moves"]:
        unit = clf.noise_.units[move["feature"]]
        assert move["half_of_rows"] == pytest.approx(summary["radii"]["median"] * unit)
        assert move["half_of_rows"] < summary["radii"]["median"] * unit
        assert float(format_short_down(move["half_of_rows"])) <= move["half_of_rows"]


def test_a_single_move_never_flips_a_row(numbers: Any) -> None:
    """Rows with at least the median radius keep their label when one column moves by what the table says."""
    clf, X, y = numbers
    summary = CertificateReport(clf, X, y).to_dict()
    certificates = clf.certify(X)
    sure = certificates.radius >= summary["radii"]["median"]
    for move in summary["moves"]:
        for sign in (-1, 1):
            moved = X[sure].copy()
            moved[:, move["feature"]] += sign * float(format_short_down(move["half_of_rows"]))
            assert (clf.predict(moved) == certificates.label[sure]).all()


def test_products_are_rounded_down() -> None:
    """A product of floats is never above the true one, and a move is inside the open ball."""
    from fractions import Fraction

    rng = np.random.default_rng(3)
    for radius, unit in rng.lognormal(size=(200, 2)).tolist():
        assert Fraction(multiply_down(radius, unit)) <= Fraction(radius) * Fraction(unit)
        assert Fraction(move_alone(radius, unit)) < Fraction(radius) * Fraction(unit)
    assert multiply_down(0.5, 1.0) == 0.5
    assert move_alone(math.inf, 2.0) == math.inf
    assert move_alone(0.0, 2.0) == 0.0


def test_text_never_rounds_in_favour() -> None:
    """Radii and shares are cut, also where a share has no exact double."""
    assert format_short_down(0.9999999) == "0.999"
    for rows in range(1, 300):
        for held in (0, rows // 3, rows - 1, rows):
            shown = float(percent(held / rows).split("\N{NO-BREAK SPACE}")[0])
            assert shown == (1000 * held // rows) / 10


def test_pushes_add_up_to_the_mean_score_under_noise(mixed: Any) -> None:
    """All pushes of a row together are its mean score above the threshold."""
    clf, X, y = mixed
    report = CertificateReport(clf, X, y)
    for row in report.to_dict()["rows"]["table"][:10]:
        matrix = clf.encoding_.encode(X.iloc[[row["row"] - 1]])
        law = distribution(clf.ensemble_, matrix, clf.noise_)
        mean = float(law.pmf[0] @ law.support) - clf.ensemble_.threshold
        assert row["pushes"]["total"] == pytest.approx(mean, abs=0.01)


def test_laws_on_the_wrong_side_are_the_failure_mass(numbers: Any) -> None:
    """The cdf at the threshold's bin is the failure mass, or what is left of it, to the picture's resolution."""
    clf, X, y = numbers
    rows = CertificateReport(clf, X, y).to_dict()["rows"]
    axis = rows["law_axis"]
    for row in rows["table"]:
        law = row["law"]
        at = axis["threshold_bin"] - 1 - law["start"]
        below = 0 if at < 0 else law["cdf"][min(at, len(law["cdf"]) - 1)] / 1000
        expected = row["failure"] if row["is_one"] else 1 - row["failure"]
        assert below == pytest.approx(expected, abs=2e-3)


def test_fine_models_show_the_laws_of_fewer_rows(numbers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where laws would take too long, only the first rows have one; the explained ones always do."""
    clf, X, y = numbers
    monkeypatch.setattr("derand.report._rows._LAW_NUMBERS", 1)
    monkeypatch.setattr("derand.report._rows._CHUNK_NUMBERS", 1)
    report = CertificateReport(clf, X, y, n_explained=2)
    check_page(report)
    table = report.to_dict()["rows"]["table"]
    assert all(row["law"] for row in table[:2])
    assert table[2]["law"] is table[-1]["law"] is None
    assert any("laws of 2 rows" in note for note in report.to_dict()["left_out"])


def test_huge_and_constant_columns_have_shapes() -> None:
    """A column of one huge value, and one whose values are far beyond the noise, do not break the charts."""
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    strange = X.copy()
    strange[:, 0] = 1e17
    strange[:, 1] *= 1e200
    report = CertificateReport(clf, strange, y)
    check_page(report)
    assert all(math.isfinite(value) for shape in report.to_dict()["shapes"] for value in shape["smooth"])


def test_failure_masses_below_all_doubles_are_bounded_by_a_power_of_ten() -> None:
    """Far from every edge the failure mass is shown by its logarithm, rounded up."""
    model = AdditiveEnsemble.from_stumps([0], [0.0], [0.1], [0.9], n_features=1)
    (row,) = CertificateReport(model, [[30.0]], noise="gaussian:0.5").to_dict()["rows"]["table"]
    log_failure = certify(model, [[30.0]], "gaussian:0.5").log_failure[0]
    assert row["failure_text"].startswith("below 1e-")
    assert float(row["failure_text"].removeprefix("below 1e")) >= log_failure / math.log(10)


def test_percentiles_pass_the_threshold_at_the_certified_radius(numbers: Any) -> None:
    """A row's percentile is on the answer's side at exactly the radii at which it is certified."""
    clf, X, y = numbers
    summary = CertificateReport(clf, X, y).to_dict()
    axis = summary["rows"]["law_axis"]
    for row in summary["rows"]["table"]:
        for radius, place in zip(summary["scale"]["radii"], row["law"]["percentile"], strict=True):
            if abs(radius - row["radius"][0]) > 1e-6:
                assert ((place > axis["threshold_bin"]) == row["is_one"]) == (row["radius"][0] > radius)


@pytest.mark.parametrize("noise", ["gaussian:0.5", "uniform:1.5", "laplace:0.5"])
def test_an_attack_flips_and_is_never_nearer_than_the_certificate(noise: str) -> None:
    """Every flip that is found changes the label, and lies outside the certified ball."""
    X, y = make_rows(60)
    clf = StumpClassifier(noise=noise, scaling="standard").fit(X, y)
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    found = [find_attack(inputs, row) for row in range(0, 60, 5)]
    assert sum(attack["found"] for attack in found) >= 8
    for row, attack in zip(range(0, 60, 5), found, strict=True):
        if attack["found"]:
            assert attack["distance"] >= inputs.plain.radius[row]
            assert float(attack["distance_text"]) >= attack["distance"]
            assert attack["label"] != inputs.plain.label[row]


def test_an_attack_on_one_stump_is_tight() -> None:
    """With one feature the certificate is exact, and the search comes within a thousandth of it."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    inputs = read_inputs(read_subject(model, Gaussian(0.25), None), [[0.0], [2.0]], None, None)
    for row, distance in ((0, 0.5), (1, 1.5)):
        assert find_attack(inputs, row)["distance"] == pytest.approx(distance, rel=2e-2)
    assert measure(inputs.subject, np.array([-3.0]), np.array([0])) == pytest.approx(3.0)


def test_the_weakest_rows_come_first_and_a_sample_is_announced() -> None:
    """Of many rows the table shows the weakest and a sample, and says so; all other numbers count every row."""
    X, y = make_rows(2000)
    clf = StumpClassifier(noise="gaussian:0.5").fit(X[:200], y[:200])
    report = CertificateReport(clf, X, y, max_rows=60, n_explained=3)
    summary = report.to_dict()
    radius = clf.certify(X).radius
    shown = [row["row"] - 1 for row in summary["rows"]["table"]]
    assert len(shown) == len(set(shown)) == 60
    assert radius[shown[:15]].tolist() == np.sort(radius)[:15].tolist()
    assert [row["radius"][0] for row in summary["rows"]["table"]] == radius[shown].tolist()
    assert any("60 rows of 2,000" in note for note in summary["left_out"])
    assert "60 rows of 2,000" in report.to_html()
    assert sum(summary["histogram"]["right"]) + sum(summary["histogram"]["wrong"]) <= 2000
    histogram = summary["histogram"]
    beside = histogram["beyond"] + histogram["nothing_certified"] + histogram["cannot_flip"]
    assert sum(histogram["right"]) + sum(histogram["wrong"]) + beside == 2000


def test_subgroups_are_the_metrics_of_their_rows(mixed: Any) -> None:
    """Groups by a category, by a number and by what the user brings, each measured on its own rows."""
    clf, X, y = mixed
    summary = CertificateReport(clf, X, y, groups=["job", "age"]).to_dict()
    certificates = clf.certify(X)
    jobs, ages = summary["subgroups"]
    for group in jobs["groups"]:
        at = np.flatnonzero(X["job"] == group["name"])
        assert group["n_rows"] == at.size
        assert group["certified"] == certified_accuracy(y[at], certificates[at], [summary["scale"]["quoted"]])[0]
        assert (certificates.radius[at] >= float(group["median_radius"])).mean() >= 0.5
    limit = float(ages["groups"][0]["name"].removeprefix("up to "))
    assert ages["groups"][0]["n_rows"] == (X["age"] <= limit).sum()
    assert [group["n_rows"] for group in ages["groups"]] == pytest.approx([len(X) / 4] * 4, abs=3)
    assert ages["groups"][-1]["name"].startswith("above")
    own = CertificateReport(clf, X, y, groups={"my groups": ["a"] * 50 + [None] * (len(X) - 50)}).to_dict()["subgroups"]
    assert [(group["name"], group["n_rows"]) for group in own[0]["groups"]] == [("(missing or new)", 70), ("a", 50)]


def test_many_groups_are_put_together(numbers: Any) -> None:
    """Beyond a dozen kinds the rarest share one line."""
    clf, X, y = numbers
    report = CertificateReport(clf, X, y, groups={"kind": [str(k % 40) for k in range(len(X))]})
    (group,) = report.to_dict()["subgroups"]
    assert len(group["groups"]) == 12
    assert group["groups"][0]["name"] == "(other, 29 kinds)"


def test_a_chosen_radius_is_quoted(numbers: Any) -> None:
    """The text, the table and the curves speak of the radius that was asked for."""
    clf, X, y = numbers
    summary = CertificateReport(clf, X, y, radius=0.123).to_dict()
    assert summary["scale"]["quoted"] == 0.123
    assert 0.123 in summary["table"]["radii"]
    share = certified_accuracy(y, clf.certify(X), [0.123])[0]
    assert series(summary, "all")[summary["scale"]["radii"].index(0.123)] == share
    assert "smaller than 0.123" in summary["guarantee"]["paragraph"]
    assert percent(share) in summary["guarantee"]["paragraph"]


class _Page(HTMLParser):
    """Tags with their attributes, in order, and whether every one was closed."""

    VOID = frozenset({"meta", "link", "input", "br", "line", "rect", "path", "polyline"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(report: CertificateReport) -> _Page:
    """What every page must be: whole, small, without network, with names for what is seen."""
    text = report.to_html()
    assert len(text.encode()) < SIZE_LIMIT
    page = _Page(text)
    assert not page.open
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    assert all((link["href"] or "")[1:] in names for link in page.all("a"))
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    assert "http://" not in text
    assert "https://" not in text
    assert all(image.get("aria-label") or image.get("aria-hidden") for image in page.all("svg"))
    assert report.to_markdown().startswith("# ")
    assert report.to_latex().count(r"\\") == 1 + len(report.to_dict()["table"]["rows"])
    assert json.loads(report.to_json()) == report.to_dict()
    return page


def make_vote() -> WeightedVote:
    members = [
        AdditiveEnsemble.from_stumps([0], [0.1], [0.1], [0.9], n_features=3),
        AdditiveEnsemble.from_stumps([1], [0.0], [0.3], [0.8], n_features=3),
    ]
    return WeightedVote([members[0], members[1], members[0]], [1.0, 0.7, -0.2])


def report_on_words(**options: Any) -> CertificateReport:
    frame, target = make_mixed()
    words = frame[["job", "town"]]
    labels = {"y": target} if options else {}
    return CertificateReport(StumpClassifier().fit(words, target), words, **labels, **options)


def report_on_codes() -> CertificateReport:
    X, y = make_rows()
    terms = (CategoryTable(0, [0, 1, 5], [-3, 3, 1], 0), StepFunction(1, [0.0], [-2, 3]))
    rows = np.column_stack([np.tile([0, 1, 5, 7, np.nan], 16), X[:, 1]])
    return CertificateReport(AdditiveEnsemble(terms, 0, 2), rows, (y == "yes").astype(int), noise="laplace:1")


def report_on_numbers(case: str) -> CertificateReport:
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    some = {"no labels": (X,), "one class": (X[y == "yes"], y[y == "yes"]), "one row": (X[:1], y[:1])}
    if case == "no explanations":
        return CertificateReport(clf, X, y, n_explained=0, n_shapes=0, max_rows=1)
    return CertificateReport(clf, *some[case], groups=0)


def report_on_bare(model: AdditiveEnsemble | WeightedVote) -> CertificateReport:
    X, y = make_rows()
    return CertificateReport(model, X, (y == "yes").astype(int), noise="gaussian:0.25")


CASES: dict[str, tuple[Callable[[], CertificateReport], str]] = {
    "no labels": (lambda: report_on_numbers("no labels"), "No labels were given"),
    "one class": (lambda: report_on_numbers("one class"), "All rows have the label “yes”"),
    "one row": (lambda: report_on_numbers("one row"), "All rows have the label"),
    "no explanations": (lambda: report_on_numbers("no explanations"), "Shapes are shown for the 0"),
    "categories alone": (lambda: report_on_words(groups="job"), "The model reads no numbers"),
    "categories alone, no labels": (report_on_words, "The model reads no numbers"),
    "codes": (report_on_codes, "No column was chosen"),
    "a vote": (lambda: report_on_bare(make_vote()), "weighted vote"),
    "a constant model": (lambda: report_on_bare(AdditiveEnsemble((), 0, 3)), "The model reads no numbers"),
}


@pytest.mark.parametrize("name", list_estimators())
def test_every_trainer_has_a_report(name: str) -> None:
    """A report on each classifier that can be trained is whole, with a twin of the same kind as the baseline."""
    X, y = make_rows(60, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = list_estimators()[name](noise="gaussian:0.5").fit(X, y)
    report = CertificateReport(clf, X, y, X_train=X, y_train=y, max_rows=20)
    check_page(report)
    assert name in report.to_dict()["accuracy"]["baselines"][1]["description"]


@pytest.mark.parametrize("case", CASES)
def test_unusual_input_gives_a_whole_report_that_says_what_is_missing(case: str) -> None:
    """The page is whole, and what could not be shown is named."""
    make, note = CASES[case]
    report = make()
    check_page(report)
    assert any(note in one for one in report.to_dict()["left_out"])


def test_what_needs_labels_is_left_out_without_them() -> None:
    """Without labels there is no accuracy, no class and no baseline; shares count certified rows."""
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    summary = CertificateReport(clf, X).to_dict()
    assert {one["role"] for one in summary["accuracy"]["series"]} == {"all", "l0"}
    assert "accuracy" not in summary["radii"]
    radius = clf.certify(X).radius
    assert series(summary, "all") == [float(((radius >= r) & (radius > 0)).mean()) for r in summary["scale"]["radii"]]
    assert "right" not in summary["guarantee"]["paragraph"].split("This is proven")[0]


def test_many_columns_with_long_foreign_names_stay_small() -> None:
    """500 columns of long, non-ASCII names: the page stays below the limit and names are cut."""
    X, y = make_rows(200, 500)
    names = [f"Messgröße {k} «{'sehr ' * 40}lang» 測定値" for k in range(500)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = StumpClassifier(noise="gaussian:0.5", max_entropy=10.0).fit(X, y)
    report = CertificateReport(clf, X, y, feature_names=names)
    check_page(report)
    assert len(report.to_dict()["shapes"]) == 24
    assert len(report.to_dict()["moves"]) == 500


def test_text_from_the_data_is_escaped() -> None:
    """Names, categories, labels, groups and titles cannot become markup, in any format."""
    frame, target = make_mixed()
    frame.columns = [NASTY + "1", NASTY + "2", "a|b_$%"]
    frame[NASTY + "2"] = frame[NASTY + "2"].replace("cook", NASTY)
    labels = np.where(target == 1, NASTY, "<i>no</i>")
    clf = StumpClassifier(noise="gaussian:0.5", scaling="standard").fit(frame, labels)
    report = CertificateReport(clf, frame, labels, title=NASTY, groups=[NASTY + "2", NASTY + "1"])
    page = check_page(report)
    assert len(page.all("script")) == 2
    assert not page.all("b")
    assert not page.all("i")
    assert "<script>alert" not in report._repr_html_()
    assert "<b>" not in report.to_markdown()
    assert r"\$\%" in report.to_latex().replace(r"\_", "") or r"\textless{}" in report.to_latex()
    (table,) = [part for part in report.to_markdown().split("\n\n") if part.startswith("| feature")]
    assert len({line.replace(r"\|", "").count("|") for line in table.splitlines()}) == 1


def test_the_report_is_written_whole_and_opened(numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """write_html leaves one file, open shows one, and a notebook gets a frame."""
    clf, X, y = numbers
    report = CertificateReport(clf, X, y, title="Größe")
    report.write_html(tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "<title>Größe</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert report.open().is_file()
    assert opened[0].startswith("file://")
    assert report._repr_html_().startswith("<iframe srcdoc=")
    assert "80 rows" in repr(report)
    report.write(tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == report.to_markdown()
    with pytest.raises(ValueError, match=r"must end with one of \.html"):
        report.write(tmp_path / "report.pdf")
    with pytest.raises(FileNotFoundError):
        report.write_html(tmp_path / "missing" / "report.html")


def test_the_dict_is_computed_once_and_repeats(numbers: Any) -> None:
    """The same input gives the same report, but for the clock."""
    clf, X, y = numbers
    report = CertificateReport(clf, X, y)
    assert report.to_dict() is report.to_dict()
    first, second = ({**CertificateReport(clf, X, y).to_dict(), "computed": None} for _ in range(2))
    assert first == second


def test_the_checksum_follows_the_data(numbers: Any) -> None:
    """Another value, another label, another checksum."""
    clf, X, y = numbers
    moved = X.copy()
    moved[7, 1] += 1e-9
    swapped = y.copy()
    swapped[3] = "no" if y[3] == "yes" else "yes"
    sums = [CertificateReport(clf, *data).to_dict()["data"]["sha256"] for data in ((X, y), (moved, y), (X, swapped))]
    assert len(set(sums)) == 3
    assert sums[0] == CertificateReport(clf, X.tolist(), y.tolist()).to_dict()["data"]["sha256"]


def test_wrong_input_is_refused_with_a_hint(numbers: Any) -> None:
    """Errors name the parameter and what to do."""
    clf, X, y = numbers
    cases: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
        (TypeError, "`clf` must be a fitted classifier", (object(), X, y), {}),
        (ValueError, "call `fit` first", (StumpClassifier(), X, y), {}),
        (ValueError, "`noise` must be left out", (clf, X, y), {"noise": "gaussian:1"}),
        (ValueError, "`noise` must be given with a bare", (clf.ensemble_, X, y), {}),
        (ValueError, "`y` must hold one label per row", (clf, X, y[:5]), {}),
        (ValueError, "`y` must hold labels among", (clf, X, ["maybe"] * len(X)), {}),
        (ValueError, "`feature_names` must hold 3 names", (clf, X, y), {"feature_names": ["a"]}),
        (ValueError, "`y_train` is missing", (clf, X, y), {"X_train": X}),
        (ValueError, "`l0` must be", (clf, X, y), {"l0": -1}),
        (ValueError, "`radius` must be", (clf, X, y), {"radius": 0}),
        (ValueError, "`max_rows` must be", (clf, X, y), {"max_rows": 0}),
        (ValueError, "`n_explained` must be", (clf, X, y), {"n_explained": True}),
    ]
    for kind, message, data, options in cases:
        with pytest.raises(kind, match=message):
            CertificateReport(*data, **options)
    for groups, message in (
        ("nothing", "names the column 'nothing'"),
        (7, "by number from 0 to 2"),
        ({"a": [1]}, r"`groups\['a'\]` must"),
    ):
        with pytest.raises(ValueError, match=message):
            CertificateReport(clf, X, y, groups=groups).to_dict()
    bare = CertificateReport(clf.ensemble_, X, (y == "yes") * 1, noise=clf.noise_, X_train=X, y_train=y)
    with pytest.raises(ValueError, match="bare model cannot"):
        bare.to_dict()
