"""Fitted models of every trainer and of other libraries: terms, thresholds, predictions, and reports on them."""

from __future__ import annotations

import functools
import html.parser
import importlib.util
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from scripts.snapshot.claims import ATTACKS, AUDIT, CERTIFICATES, INTERVALS, TOLERANCE, VERDICTS
from scripts.snapshot.recording import Recorder

TERMS = {
    "StepFunction": ("feature", "edges", "scores", "missing"),
    "CategoryTable": ("feature", "categories", "scores", "other", "missing"),
    "GridTerm": ("features", "edges", "scores", "missing"),
    "LinearTerm": ("feature", "slopes", "errors", "missing", "missing_errors"),
}
MODEL = ("threshold", "offset", "offsets", "levels", "score_error", "n_features")
N_ROWS, N_TRAINING = 420, 300
FIXED: dict[str, Any] = {"radius": 0.1, "regularization": 1.0}
SCALED: dict[str, Any] = {"noise": "gaussian:0.25", "scaling": "standard"}
TRAINERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("AdditiveClassifier", "labels", {"radius": 0.2}),
    ("AdditiveClassifier", "labels", {**FIXED, "radius": 0.0}),
    ("AdditiveClassifier", "labels", {**FIXED, "norm": 1, "l0": 1}),
    ("AdditiveClassifier", "labels", {**FIXED, "norm": np.inf, "l0": 1}),
    ("AdditiveClassifier", "labels", {**FIXED, "rule": "vote", "n_cuts": 4}),
    ("AdditiveClassifier", "labels", {**FIXED, "groups": [["age", "income"]]}),
    ("AdditiveClassifier", "labels", {**FIXED, "threat": {"norm": None, "limits": {"income": "10%"}, "l0": 1}}),
    ("AdditiveClassifier", "labels", {**FIXED, "monotone": {"late": 1}, "n_cuts": 9, "frozen": ["age"]}),
    ("AdditiveClassifier", "labels", {**FIXED, "min_rows_per_category": 80, "class_weight": "balanced"}),
    ("AdditiveClassifier", "labels", {**FIXED, "cost": {"false_positive": 1, "false_negative": 5}}),
    ("AdditiveClassifier", "classes", FIXED),
    ("AdditiveClassifier", "classes", {**FIXED, "groups": [["age", "late"]]}),
    ("AdditiveRegressor", "regression", {"radius": 0.1}),
    ("AdditiveRegressor", "regression", {**FIXED, "l0": 1, "groups": [["age", "income"]]}),
    ("StumpClassifier", "labels", SCALED),
    ("StumpClassifier", "labels", {**SCALED, "noise": "uniform:0.5", "levels": 200}),
    ("StumpClassifier", "labels", {**SCALED, "noise": "laplace:0.25", "class_weight": "balanced"}),
    ("StumpClassifier", "classes", {**SCALED, "rule": "mean", "scaling": "robust"}),
    ("StumpRegressor", "regression", SCALED),
    ("RobTreeBoostClassifier", "labels", {**SCALED, "n_estimators": 8}),
    ("RobTreeBoostClassifier", "labels", {**SCALED, "noise": "uniform:0.5", "n_estimators": 8}),
    (
        "RobTreeBoostClassifier",
        "labels",
        {**SCALED, "validation_fraction": 0.2, "n_iter_no_change": 3, "random_state": 0},
    ),
    ("RobAdaBoostClassifier", "labels", {**SCALED, "n_estimators": 4}),
)
"""Every trainer, with options that change what is fitted, and the kind of its target."""


@functools.cache
def make_table(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Loans with numbers, whole numbers, categories, missing values and a yes or no, and how risky each one is."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N_ROWS),
            "income": rng.lognormal(8, 0.5, N_ROWS).round(2),
            "purpose": rng.choice(["car", "house", "other"], N_ROWS, p=[0.5, 0.3, 0.2]),
            "debt": rng.normal(5000, 2000, N_ROWS).round(),
            "late": rng.poisson(1.0, N_ROWS),
            "owner": rng.integers(0, 2, N_ROWS),
        }
    )
    frame.loc[rng.random(N_ROWS) < 0.1, "debt"] = np.nan
    risk = frame["late"] + (frame["purpose"] == "car") - frame["age"] / 40 - frame["income"] / 4000
    risk += frame["debt"].fillna(7000) / 4000 + 0.6 * rng.normal(size=N_ROWS)
    return frame, risk.to_numpy()


def take_target(kind: str) -> np.ndarray:
    """The risk, or two or three labels of it."""
    _, risk = make_table()
    if kind == "regression":
        return 100 * risk
    labels = np.where(risk > 1.2, "default", "repaid")
    return np.where(risk < -0.3, "early", labels) if kind == "classes" else labels


def list_imported(quick: bool) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Estimators of other libraries that read a table of numbers, with the kind of their target."""
    from sklearn import ensemble, linear_model, pipeline, preprocessing

    def logistic() -> Any:
        return pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())

    trees: dict[str, Any] = {"random_state": 0, "max_depth": 1}
    yield "logistic", "labels", logistic
    yield "boosted", "labels", lambda: ensemble.GradientBoostingClassifier(n_estimators=20, **trees)
    yield "histogram", "labels", lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, **trees)
    yield "boosted classes", "classes", lambda: ensemble.GradientBoostingClassifier(n_estimators=5, **trees)
    yield "ridge", "regression", linear_model.Ridge
    yield "histogram regression", "regression", lambda: ensemble.HistGradientBoostingRegressor(max_iter=20, **trees)
    made = {
        ("xgboost", "XGBClassifier"): {"n_estimators": 10, "max_depth": 1, "n_jobs": 1},
        ("lightgbm", "LGBMClassifier"): {"n_estimators": 10, "num_leaves": 2, "n_jobs": 1, "verbose": -1},
        ("catboost", "CatBoostClassifier"): {"iterations": 10, "depth": 1, "thread_count": 1, "verbose": False,
                                             "allow_writing_files": False, "random_seed": 0},
        ("interpret.glassbox", "ExplainableBoostingClassifier"): {"interactions": 0, "max_rounds": 20, "n_jobs": 1},
    }  # fmt: skip
    for (library, name), options in {} if quick else made.items():
        if importlib.util.find_spec(library.partition(".")[0]):
            yield name, "labels", functools.partial(getattr(importlib.import_module(library), name), **options)


def record_trainers(recorder: Recorder, quick: bool) -> None:
    """Fit every trainer, and read models of other libraries."""
    frame, _ = make_table()
    for name, kind, options in TRAINERS:
        with recorder.at(f"trainers/{name} {kind} {json.dumps(options)}"):
            y = take_target(kind)
            given = {key: recorder.words.Threat(**one) if key == "threat" else one for key, one in options.items()}
            fitted = getattr(recorder.words, name)(**given).fit(frame[:N_TRAINING], y[:N_TRAINING])
            _record_fitted(recorder, fitted, kind, frame[N_TRAINING:], y[N_TRAINING:], quick)
    numbers = frame.drop(columns=["purpose"]).fillna({"debt": 5000.0})
    for name, kind, make in list_imported(quick):
        with recorder.at(f"imported/{name}"):
            y = take_target(kind)
            coded = y if kind == "regression" else np.unique(y, return_inverse=True)[1]
            model = make().fit(numbers[:N_TRAINING], coded[:N_TRAINING])
            for noise in ("none", "gaussian:0.25"):
                with recorder.at(f"imported/{name}/{noise}"):
                    imported = recorder.words.from_model(model, numbers[:N_TRAINING], noise=noise)
                    _record_fitted(recorder, imported, kind, numbers[N_TRAINING:], coded[N_TRAINING:], quick)
    _record_smoothed(recorder, numbers, quick)
    _record_figures(recorder, quick)


def _record_smoothed(recorder: Recorder, numbers: pd.DataFrame, quick: bool) -> None:
    from sklearn import ensemble, linear_model

    trees = ensemble.GradientBoostingClassifier(n_estimators=5, max_depth=1, random_state=0)
    made = {
        "labels": lambda: recorder.words.SmoothedClassifier(trees, augment=2, random_state=0),
        "regression": lambda: recorder.words.SmoothedRegressor(linear_model.Ridge(), augment=2, random_state=0),
    }
    for kind, make in made.items():
        with recorder.at(f"trainers/smoothed {kind}"):
            y = take_target(kind)
            fitted = make().fit(numbers[:N_TRAINING], y[:N_TRAINING])
            _record_fitted(recorder, fitted, kind, numbers[N_TRAINING:], y[N_TRAINING:], quick)


def _record_fitted(recorder: Recorder, fitted: Any, kind: str, X: pd.DataFrame, y: Any, quick: bool) -> None:
    """Terms, predictions, and what is said of rows by a fitted estimator."""
    words, place = recorder.words, recorder.place
    _record_terms(recorder, fitted)
    recorder.add("predict", fitted.predict(X))
    recorder.add("score", fitted.score(X, y))
    threats: dict[str, dict[str, Any]] = {
        "own": {},
        "l0 1": {"norm": 2, "l0": 1},
        "named": {"units": {"age": 5.0}, "frozen": ["late"]},
        "whole": {"norm": None, "limits": {"*": "10%"}, "whole": True},
    }
    for name, given in threats.items():
        with recorder.at(f"{place}/{name}"):
            asked = {"threat": words.Threat(**given)} if given else {}
            _record_rows(recorder, fitted, kind, X[:8], asked, radius=None if name == "whole" else 0.1)
    if kind != "regression":
        recorder.add("predict_proba", fitted.predict_proba(X))
        recorder.add("decision_function", fitted.decision_function(X))
    if kind == "labels":
        with recorder.at(f"{place}/moved"):
            moved = words.call(fitted, "with_threshold", 0.3)
            recorder.add("predict", moved.predict(X))
            _record_rows(recorder, moved, kind, X[:4], {}, None)
    for at in range(1 if quick else 4):
        with recorder.at(f"{place}/explain {at}"):
            asked = {"radius": 0.1} if kind == "regression" else {}
            told = words.call(fitted, "explain", X[at : at + 1], **asked)
            recorder.add("sentences", words.get(told, "sentences"))


def _record_terms(recorder: Recorder, fitted: Any) -> None:
    """The model of an estimator, number by number."""
    words, model = recorder.words, recorder.words.get(fitted, "ensemble_")
    for at, member in enumerate(words.get(model, "members")):
        recorder.add_fields(member, *MODEL, below=f"model {at}")
        for number, term in enumerate(words.get(member, "terms")):
            kind = type(term).__name__
            for field, value in words.read(term, *TERMS[kind]).items():
                several = field == "edges" and isinstance(value, tuple)
                for part, one in enumerate(value if several else [value]):
                    recorder.add(f"model {at}/{number} {kind}/{field} {part}", one)
    recorder.add_fields(model, "weights", below="model")


def _record_rows(
    recorder: Recorder, fitted: Any, kind: str, rows: pd.DataFrame, asked: dict[str, Any], radius: float | None
) -> None:
    """What is proven of rows against a threat, proven again, and attacked."""
    words = recorder.words
    if kind == "regression":
        found = words.call(fitted, "certify_interval", rows, radius, **asked)
        recorder.add_fields(found, *INTERVALS)
        if radius is not None:
            recorder.add_fields(
                words.call(fitted, "certify_radius", rows, 10.0, **asked), *TOLERANCE, below="tolerance"
            )
        tried = words.call(fitted, "attack_interval", rows[:2], radius, **asked)
        recorder.add_fields(tried, *INTERVALS, below="attack")
    else:
        found = words.call(fitted, "certify", rows, **asked)
        recorder.add_fields(found, *CERTIFICATES, *VERDICTS)
        tried = words.call(fitted, "attack", rows[:1], **asked)
        recorder.add_fields(tried, *(name for name in ATTACKS if name != "rows"), below="attack")
        recorder.add("attack/rows", words.get(tried, "rows").to_csv().splitlines())
    recorder.add_fields(words.call(fitted, "audit", rows, found, rows=1), *AUDIT, below="audit")


def _record_figures(recorder: Recorder, quick: bool) -> None:
    """Figures over rows, a file that is read again, and what tuning says."""
    words, (frame, _), y = recorder.words, make_table(), take_target("labels")
    fitted = words.StumpClassifier(noise="gaussian:0.25", scaling="standard").fit(frame[:N_TRAINING], y[:N_TRAINING])
    X, y = frame[N_TRAINING:], y[N_TRAINING:]
    with recorder.at("figures/certified"):
        found = words.call(fitted, "certify", X)
        for balanced in (False, True):
            shares = words.certified_accuracy(y, found, [0.0, 0.1, 0.3], balanced=balanced)
            recorder.add(f"accuracy {balanced}", shares)
        recorder.add("average", words.average_certified_radius(y, found))
        recorder.add_json("radii", words.call(words.summarize_radii(y, found), "to_dict"))
        graded = words.measure_answers(y, words.get(found, "label"), probability=fitted.predict_proba(X)[:, 1])
        recorder.add_json("answers", words.call(graded, "to_dict"))
    with recorder.at("figures/tune"):
        known, labels = (frame, take_target("labels")) if not quick else (frame[:150], take_target("labels")[:150])
        recorder.add_json("told", words.call(words.tune(fitted, known, labels, radii=[0.1], cv=2), "to_dict"))


def record_reports(recorder: Recorder, quick: bool) -> None:
    """Reports of every kind: JSON by leaves, and of HTML what is seen and the numbers that the page draws."""
    words, (frame, _) = recorder.words, make_table()
    stumps = {"noise": "gaussian:0.25", "scaling": "standard"}
    X, rest = frame[:N_TRAINING], frame[N_TRAINING:].reset_index(drop=True)
    limits = words.Threat(norm=None, limits={"income": "10%", "debt": 500.0})

    def report(kind: str, clf: Any, **options: Any) -> Any:
        y = take_target(kind)
        has_two = words.translate("Report") != "Report"  # one for classifiers, one for regressors
        make = words.IntervalReport if has_two and kind == "regression" else words.Report
        return make(clf.fit(X, y[:N_TRAINING]), rest, y[N_TRAINING:], **options)

    def additive(**options: Any) -> Any:
        return words.AdditiveClassifier(radius=0.2, regularization=1.0, **options)

    made: dict[str, Callable[[], Any]] = {
        "vote": lambda: report("labels", words.StumpClassifier(**stumps), subgroups=["purpose"]),
        "mean": lambda: report("labels", additive(), X_train=X, y_train=take_target("labels")[:N_TRAINING]),
        "limits": lambda: report("labels", additive(), threat=limits),
        "compare": lambda: report(
            "labels", additive(), compare=words.StumpClassifier(**stumps).fit(X, take_target("labels")[:N_TRAINING])
        ),
        "classes": lambda: report("classes", words.StumpClassifier(rule="mean", **stumps)),
        "regression": lambda: report(
            "regression", words.AdditiveRegressor(radius=0.2, regularization=1.0), radius=0.2, tolerance=20.0
        ),
    }
    for name, make in made.items():
        with recorder.at(f"reports/{name}"):
            written = make()
            recorder.add_json("json", json.loads(words.call(written, "to_json")))
            for section, lines in read_page(words.call(written, "to_html")).items():
                recorder.add(f"html {section}", lines)
            if not quick:
                recorder.add("markdown", words.call(written, "to_markdown").splitlines())
                recorder.add("latex", words.call(written, "to_latex").splitlines())


class _Page(html.parser.HTMLParser):
    """Visible text, and data for scripts, by the identifier of the section."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: dict[str, list[str]] = {}
        self._open = ["top"]
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "section":
            self._open.append(named.get("id") or self._open[-1])
        if tag in ("script", "style"):
            self._hidden = tag == "style" or named.get("type") != "application/json"

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self._open.pop()
        self._hidden = False if tag in ("script", "style") else self._hidden

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not self._hidden:
            self.sections.setdefault(self._open[-1], []).append(text)


def read_page(text: str) -> dict[str, list[str]]:
    """What a page shows, by section: one line per piece of text, pictures' numbers among them."""
    page = _Page()
    page.feed(text)
    return page.sections
