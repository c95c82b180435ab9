"""ONNX files compute what the model computes, to the last bit, on every edge; what they cannot say is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from derand import (
    AdditiveClassifier,
    AdditiveEnsemble,
    AdditiveRegressor,
    CategoryTable,
    GridTerm,
    RobAdaBoostClassifier,
    StepFunction,
    StumpClassifier,
    Threat,
    WeightedVote,
    certify,
    export_onnx,
    from_model,
)
from derand.convert.onnx import _onnx
from derand.fitted import encode_rows
from derand.model import TERMS, Argmax, LinearTerm, Shape, TreeTerm
from tests.storage.models import make_ensemble, make_frame, make_vote, make_with_gaps

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def make_grid() -> AdditiveEnsemble:
    """A term of two columns, of which one may be missing, beside a term of one."""
    scores = np.arange(12).reshape(3, 4)[::-1] - 5
    grid = GridTerm((0, 2), ([0.1], [-1 / 3, 1e-300, 0.2]), scores, missing=(True, False))
    return AdditiveEnsemble([grid, StepFunction(1, [0.1, 0.3], [-2, 0, 2])], 1, 3, levels=7)


def make_three_classes() -> AdditiveEnsemble:
    shape = Shape(0, [0.1, 0.7], [[0.5, 0.5, 0.0], [0.0, 1.0, 0.25], [0.3, 0.1, 0.2]])
    return AdditiveEnsemble.from_shapes([shape], intercept=[0.0, 0.0, 0.5], n_features=1, levels=2**40)


def make_number() -> AdditiveEnsemble:
    shape = Shape(0, [0.1, 2.0], [-1 / 3, 0.25, 1.5])
    return AdditiveEnsemble.from_number_shapes([shape], intercept=0.1, n_features=1, levels=2**40)


def make_constant() -> AdditiveEnsemble:
    return AdditiveEnsemble([], -3, 2)


def make_undecided() -> AdditiveEnsemble:
    return AdditiveEnsemble([StepFunction(0, [0.1], [1, 2])], None, 1)


def make_lines() -> AdditiveEnsemble:
    """Three lines beside a category: sums of doubles, in the model's own order."""
    lines = [LinearTerm(at, [slope]) for at, slope in ((2, 1e12 / 3), (0, -0.1), (3, 1e-7))]
    return AdditiveEnsemble([*lines[:1], CategoryTable(1, [0, 1], [3, -3], 2), *lines[1:]], 11, 4, levels=2**40)


def make_lines_of_classes() -> AdditiveEnsemble:
    return AdditiveEnsemble([LinearTerm(0, [0.1, -0.2, 0.3])], Argmax((1, 2, 3)), 1)


def make_lines_with_gaps() -> AdditiveEnsemble:
    return AdditiveEnsemble([LinearTerm(0, [0.1], None, -1 / 3), LinearTerm(1, [0.7])], 0, 2, levels=7)


def make_lines_of_classes_with_gaps() -> AdditiveEnsemble:
    return AdditiveEnsemble([LinearTerm(0, [0.1, -0.2, 0.3], None, (1 / 3, 0.5, -2.0))], Argmax((1, 2, 3)), 1)


MODELS: dict[str, Any] = {
    "mixed": make_ensemble,
    "gaps": make_with_gaps,
    "vote": make_vote,
    "grid": make_grid,
    "three classes": make_three_classes,
    "number": make_number,
    "constant": make_constant,
    "no decision": make_undecided,
    "lines": make_lines,
    "lines of classes": make_lines_of_classes,
    "lines with gaps": make_lines_with_gaps,
    "lines of classes with gaps": make_lines_of_classes_with_gaps,
}


def run(path: Path, feed: Any) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def list_edges(model: Any, seed: int = 0) -> np.ndarray:
    """Rows on every edge and one step of doubles beside it, category codes, and missing values where they are taken."""
    rng = np.random.default_rng(seed)
    places: list[list[float]] = [[0.0, *rng.normal(size=20)] for _ in range(model.n_features)]
    for term in model.member_terms:
        for at, edges in term.axes:
            places[at] += [*edges, *np.nextafter(edges, -np.inf), *np.nextafter(edges, np.inf)]
        if not term.axes:
            places[term.features[0]] = [*term.codes, -1.0, 77.0, 0.5, np.nan]
    for at in model.missing_features:
        places[at].append(np.nan)
    return np.stack([np.resize(rng.permutation(column), 600)[rng.permutation(600)] for column in places], axis=1)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_the_models_own_to_the_last_bit(name: str, tmp_path: Path) -> None:
    """On every edge and one step beside it; what is computed here knows nothing of the exporter."""
    model = MODELS[name]()
    export = export_onnx(model, tmp_path / "model.onnx")
    rows = list_edges(model)
    found = run(tmp_path / "model.onnx", {"X": rows})
    assert tuple(found) == export.outputs
    assert export.inputs == ("X",)
    assert export.checked_rows >= 2000 // 2 * len(model.members)
    assert export.n_bytes == (tmp_path / "model.onnx").stat().st_size
    if model.weights is not None:
        votes = np.stack([member.score(rows) > member.threshold for member in model.members])
        lead = np.where(votes, 1.0, -1.0).T @ model.weights / np.abs(model.weights).sum()
        np.testing.assert_allclose(found["score"], lead, rtol=0, atol=1e-12)
        return
    shift = np.array(model.offsets) if model.offsets else model.offset or -(model.threshold or 0)
    total = model.score(rows) + shift
    assert np.array_equal(found[export.outputs[0]], total / model.levels)
    assert len(np.unique(total, axis=0)) > 1 or name == "constant"
    if "label" in found:
        assert np.array_equal(found["label"], total.argmax(axis=1) if total.ndim == 2 else total > 0)


REFUSED = {TreeTerm.kind}
"""Kinds of terms that no file can hold."""


@pytest.mark.parametrize("kind", TERMS)
def test_every_term_can_be_written(kind: str) -> None:
    """A new one must be honoured or refused by name, and have its model here."""
    assert kind in {term.kind for make in MODELS.values() for term in make().member_terms} | REFUSED


@pytest.mark.parametrize("name", ["mixed", "vote", "three classes"])
def test_labels_are_those_that_are_certified_without_noise(name: str, tmp_path: Path) -> None:
    """The written model is the one that `certify` speaks of under no noise."""
    model = MODELS[name]()
    export_onnx(model, tmp_path / "model.onnx")
    rows = np.nan_to_num(list_edges(model))
    certificates = certify(model, rows, None, rule="mean", threat=Threat(norm=2))
    assert np.array_equal(run(tmp_path / "model.onnx", {"X": rows})["label"], certificates.label)


def test_equal_scores_go_to_the_lower_class(tmp_path: Path) -> None:
    """As the decision says: classes 0 and 1 are level below the first edge, and class 2 is behind."""
    shape = Shape(0, [0.1], [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    model = AdditiveEnsemble.from_shapes([shape], intercept=[0.0, 0.0, 0.0], n_features=1, levels=10)
    export_onnx(model, tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", {"X": np.array([[0.0], [0.2]])})["label"].tolist() == [0, 1]


def test_tied_votes_go_to_the_first_class(tmp_path: Path) -> None:
    """0.1 + 0.2 against 0.3 is a tie, whatever doubles say."""
    members = [AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)] * 2
    against = AdditiveEnsemble([StepFunction(0, [0.0], [1, 0])], 0, 1)
    vote = WeightedVote((*members, against), [0.1, 0.2, 0.3])
    export_onnx(vote, tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", {"X": np.array([[1.0], [-1.0]])})["label"].tolist() == [0, 0]


def as_feed(frame: pd.DataFrame) -> dict[str, Any]:
    """The columns of a frame as a user gives them."""
    feed = {}
    for name, column in frame.items():
        is_text = isinstance(column.dropna().iloc[0], str)
        cells = column.astype(object).where(column.notna(), "") if is_text else column.astype(np.float64)
        feed[str(name)] = cells.to_numpy(dtype=object if is_text else np.float64)[:, None]
    return feed


@pytest.mark.parametrize("kind", [StumpClassifier, AdditiveClassifier, RobAdaBoostClassifier])
def test_categories_are_given_by_name(kind: Any, tmp_path: Path) -> None:
    """Text as text, truth values and numbers as numbers; unseen and missing ones are honoured."""
    frame = make_frame()
    if kind is RobAdaBoostClassifier:
        frame = frame[["x", "nothing"]]
    y = np.where(frame["x"] > 0.1, "yes", "no")
    parameters = {"regularization": 1.0} if kind is AdditiveClassifier else {}
    clf = kind(**parameters).fit(frame, y)
    export = export_onnx(clf, tmp_path / "model.onnx")
    new = frame.copy()
    if "color" in new:
        new["color"], new["floor"] = new["color"].astype(object), new["floor"].astype(float)
        new.loc[:9, "color"], new.loc[10:19, "color"], new.loc[5:14, "floor"] = "blue", None, np.nan
        new.loc[20:24, "floor"] = 9.0
        assert export.inputs == tuple(frame.columns)
        found = run(tmp_path / "model.onnx", as_feed(new))
    else:
        found = run(tmp_path / "model.onnx", {"X": new.to_numpy(dtype=np.float64)})
    rows = encode_rows(clf, new)
    if clf.ensemble_.weights is None:
        expected = (clf.ensemble_.score(rows) - clf.ensemble_.threshold) / clf.ensemble_.levels
        assert np.array_equal(found["score"], expected)
        assert np.unique(expected).size > 2
    plain = certify(clf.ensemble_, rows, None, rule="mean", threat=Threat(norm=2))
    assert np.array_equal(found["label"], clf.classes_[plain.label])
    facts = {one.key: one.value for one in onnx.load(str(tmp_path / "model.onnx")).metadata_props}
    assert json.loads(facts["columns"]) == list(frame.columns)
    assert json.loads(facts["classes"]) == ["no", "yes"]


@pytest.mark.parametrize("labels", [(False, True), (1.0, 2.0), (3, 7)])
def test_labels_of_any_kind(labels: Any, tmp_path: Path) -> None:
    """As the classifier gives them."""
    X = np.linspace(-1, 1, 40)[:, None]
    clf = StumpClassifier().fit(X, np.asarray(labels)[(X[:, 0] > 0).astype(int)])
    export_onnx(clf, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", {"X": X})["label"]
    assert set(found.tolist()) == set(labels)
    assert found.dtype.kind == clf.classes_.dtype.kind


def test_a_regressor_gives_its_value(tmp_path: Path) -> None:
    """Of a fitted regressor with a category."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "value": rng.choice(["a", "b"], size=60)})
    reg = AdditiveRegressor(regularization=1.0, noise="none").fit(frame, 3 * frame["x"] + (frame["value"] == "a"))
    export = export_onnx(reg, tmp_path / "model.onnx")
    assert export.outputs == ("value",)
    assert export.inputs == ("x", "value_")  # no input is called like an output
    feed = as_feed(frame)
    feed["value_"] = feed.pop("value")
    assert np.array_equal(run(tmp_path / "model.onnx", feed)["value"], reg.predict(frame))


def test_the_empty_text_may_be_a_category(tmp_path: Path) -> None:
    """It is the category then, and not a missing value."""
    frame = pd.DataFrame({"x": ["", "a", "b"] * 10, "z": np.arange(30.0)})
    clf = StumpClassifier().fit(frame, (frame["x"] == "").to_numpy().astype(int))
    assert "" in clf.encoding_.categories[0]
    export_onnx(clf, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", as_feed(frame))["score"] * clf.ensemble_.levels
    expected = clf.ensemble_.score(encode_rows(clf, frame)) - clf.ensemble_.threshold
    assert np.array_equal(np.rint(found), expected)
    assert expected[0] > expected[1] == expected[2]


@pytest.mark.parametrize("name", ["mixed", "grid", "lines"])
def test_a_missing_number_that_is_refused_is_an_error_of_the_runtime(name: str, tmp_path: Path) -> None:
    """No label is made up."""
    model = MODELS[name]()
    export_onnx(model, tmp_path / "model.onnx")
    rows = np.zeros((2, model.n_features))
    rows[1, 2] = np.nan
    with pytest.raises(Exception, match="out of data bounds"):
        run(tmp_path / "model.onnx", {"X": rows})


def test_single_precision_is_refused_by_the_runtime(tmp_path: Path) -> None:
    """Numbers that were rounded are other numbers."""
    export_onnx(make_grid(), tmp_path / "model.onnx")
    with pytest.raises(Exception, match="tensor\\(double\\)"):
        run(tmp_path / "model.onnx", {"X": np.zeros((2, 3), dtype=np.float32)})


@pytest.mark.parametrize("name", ["mixed", "gaps", "vote", "grid", "three classes", "number", "lines"])
def test_a_graph_that_differs_is_found_and_not_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit of the grid, in one cell."""
    usual = _onnx.tabulate

    def spoil(*arguments: Any) -> Any:
        lookup = usual(*arguments)
        lookup.scores[0] += 1000 if name in ("vote", "lines") else 1  # a vote shows labels alone
        return lookup

    monkeypatch.setattr(_onnx, "tabulate", spoil)
    with pytest.raises(ValueError, match="computes another"):
        export_onnx(MODELS[name](), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_edge_that_is_off_by_one_step_is_found(shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In doubles: single precision would never notice."""
    usual = _onnx.tabulate

    def spoil(*arguments: Any) -> Any:
        lookup = usual(*arguments)
        axes = tuple(
            _onnx.Cells(one.feature, np.nextafter(one.places, shift * np.inf), one.is_category, one.missing)
            for one in lookup.axes
        )
        return _onnx.Lookup(axes, lookup.scores)

    monkeypatch.setattr(_onnx, "tabulate", spoil)
    with pytest.raises(ValueError, match="computes another"):
        export_onnx(make_grid(), tmp_path / "model.onnx")


def test_what_cannot_be_written_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other objects, unfitted estimators, models without columns, terms that are not constant within cells."""
    path = tmp_path / "model.onnx"
    for other in ("model", StumpClassifier()):
        with pytest.raises(TypeError, match="must be an AdditiveEnsemble"):
            export_onnx(other, path)
    with pytest.raises(ValueError, match="at least one column"):
        export_onnx(AdditiveEnsemble([], 0, 0), path)
    model = AdditiveEnsemble([CategoryTable(1, [0], [1], 0)], 0, 2)
    monkeypatch.setattr(CategoryTable, "kind", "curve")
    with pytest.raises(ValueError, match="a term of the kind 'curve' for column 1"):
        export_onnx(model, path)
    assert not path.exists()


def test_libraries_that_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without onnx nothing is written; without onnxruntime nothing is checked."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert export_onnx(make_grid(), tmp_path / "model.onnx").checked_rows == 0
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"derand\[onnx\]"):
        export_onnx(make_grid(), tmp_path / "other.onnx")
    assert not (tmp_path / "other.onnx").exists()


N_PROBABLE = 20_000


def make_probable(kind: str) -> tuple[Any, pd.DataFrame]:
    """A classifier with probabilities, and twenty thousand rows."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(N_PROBABLE, 3)), columns=["a", "b", "probability"])
    frame["job"] = rng.choice(["cook", "clerk", "nurse"], N_PROBABLE)
    lead = frame["a"] - frame["b"] + (frame["job"] == "cook") + rng.normal(0, 0.7, N_PROBABLE)
    y = np.digitize(lead, [-0.5, 0.8] if kind == "three classes" else [0.3])
    rows, labels = frame.iloc[:1_500], y[:1_500]
    if kind == "share":
        forest = RandomForestClassifier(20, max_depth=1, random_state=0).fit(rows[["a", "b"]], labels)
        return from_model(forest), frame[["a", "b"]]
    threshold = {"decision_threshold": 0.3} if kind == "threshold" else {}
    clf = AdditiveClassifier(noise="none", radius=0.05, regularization=1.0, **threshold)  # type: ignore[arg-type]
    return clf.fit(rows, labels), frame


@pytest.mark.parametrize("kind", ["two classes", "three classes", "threshold", "share"])
def test_probabilities(kind: str, tmp_path: Path) -> None:
    """Those of `predict_proba`, on twenty thousand rows; a column of that name gives way."""
    clf, frame = make_probable(kind)
    export = export_onnx(clf, tmp_path / "model.onnx")
    assert export.outputs == ("score", "label", "probability")
    assert export.probability_error is not None
    assert export.probability_error <= 1e-12
    feed: dict[str, Any] = {"X": frame.to_numpy()}
    if kind != "share":
        feed = {name: frame[[own]].to_numpy() for name, own in zip(export.inputs, frame, strict=True)}
        assert export.inputs == ("a", "b", "probability_", "job")
    found = run(tmp_path / "model.onnx", feed)
    assert found["probability"].shape == (N_PROBABLE, clf.classes_.size)
    assert np.abs(found["probability"] - clf.predict_proba(frame)).max() <= 1e-12
    assert (found["label"] == clf.predict(frame)).all()


def test_a_vote_of_noisy_copies_has_no_probability(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = StumpClassifier().fit(X, X[:, 0] > 0)
    export = export_onnx(clf, tmp_path / "model.onnx")
    assert (export.outputs, export.probability_error) == (("score", "label"), None)
