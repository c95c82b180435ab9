"""from_model: what every import shares, whatever the library."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.neighbors import KNeighborsClassifier

from derand import StumpClassifier, Threat, from_model, load, save
from derand.convert import read_model
from derand.estimators import ImportedClassifier, ImportedRegressor
from derand.estimators._imported import from_reading

Tumours = tuple[pd.DataFrame, np.ndarray, Any]


@pytest.fixture(scope="module")
def tumours() -> Tumours:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, labels = X.iloc[:, :6], np.where(y == 1, "benign", "malignant")
    return X, labels, GradientBoostingClassifier(max_depth=1, n_estimators=20, random_state=0).fit(X.to_numpy(), labels)


def test_as_deployed(tumours: Tumours) -> None:
    """Without noise labels, probabilities and raw scores are the library's."""
    X, _, theirs = tumours
    rows = X.to_numpy()
    model: Any = from_model(theirs)
    assert isinstance(model, ImportedClassifier)
    assert (model.rule, model.noise_, model.source_) == ("mean", None, "sklearn.GradientBoostingClassifier")
    assert model.classes_.tolist() == ["benign", "malignant"]
    assert (model.predict(rows) == theirs.predict(rows)).all()
    assert np.allclose(model.decision_function(rows), theirs.decision_function(rows), rtol=0, atol=1e-9)
    assert np.allclose(model.predict_proba(rows), theirs.predict_proba(rows), rtol=0, atol=1e-9)
    assert model.ensemble_.score_error / model.ensemble_.levels < 1e-9


def test_several_classes() -> None:
    rows, y = load_iris(return_X_y=True)
    theirs = GradientBoostingClassifier(max_depth=1, n_estimators=10, random_state=0).fit(rows, y)
    model: Any = from_model(theirs)
    assert (model.predict(rows) == theirs.predict(rows)).all()
    assert np.allclose(model.predict_proba(rows), theirs.predict_proba(rows), rtol=0, atol=1e-9)
    assert (model.certify(rows[:9], noise="gaussian:0.2").radius > 0).all()


def test_names_and_units_come_from_rows(tumours: Tumours) -> None:
    """Arrays have no names: rows give them, and what counts as a change of 1."""
    X, _, theirs = tumours
    bare: Any = from_model(theirs)
    assert bare.encoding_.names is None
    assert bare.units == (1.0,) * 6
    model: Any = from_model(theirs, X, scaling="standard")
    assert model.encoding_.names == tuple(X.columns)
    assert np.allclose(model.units, X.std(ddof=0), rtol=1e-12)
    found = model.certify(X.iloc[:30], threat=Threat(norm=None, limits={"mean radius": "5%"}, frozen=["mean area"]))
    assert (found.label == theirs.predict(X.to_numpy()[:30])).all()
    far = model.certify(X.iloc[:30], noise="gaussian:0.25").radius
    near = bare.certify(X.to_numpy()[:30], noise="gaussian:0.25").radius
    assert not np.allclose(far, near)


def test_smoothed_when_asked(tumours: Tumours) -> None:
    """A noise given once is the model's own; `certify` takes another one, and "none" for the model as deployed."""
    X, _, theirs = tumours
    model: Any = from_model(theirs, X, noise="gaussian:0.25", rule="vote", scaling="standard")
    rows = X.iloc[:20]
    own = model.certify(rows)
    assert own.rule == "vote"
    assert (own.label == model.predict(rows)).all()
    deployed = model.certify(rows, noise="none", rule="mean")
    assert (deployed.label == theirs.predict(rows.to_numpy())).all()


@pytest.mark.parametrize("scaling", [None, "robust"])
def test_saved_and_loaded(tumours: Tumours, scaling: str | None, tmp_path: Path) -> None:
    X, _, theirs = tumours
    model: Any = from_model(theirs, X, scaling=scaling)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    rows = X.iloc[:20]
    assert again.source_ == model.source_
    assert again.units == model.units
    assert (again.predict_proba(rows) == model.predict_proba(rows)).all()
    for question in ({}, {"noise": "laplace:0.5"}):
        assert again.certify(rows, **question).radius.tobytes() == model.certify(rows, **question).radius.tobytes()


def test_regressors(tumours: Tumours, tmp_path: Path) -> None:
    X, _, _ = tumours
    rows, target = X.to_numpy()[:, 1:], X.to_numpy()[:, 0]
    theirs = GradientBoostingRegressor(max_depth=1, n_estimators=20, random_state=0).fit(rows, target)
    model: Any = from_model(theirs)
    assert isinstance(model, ImportedRegressor)
    assert np.allclose(model.predict(rows), theirs.predict(rows), rtol=0, atol=1e-9)
    save(model, tmp_path / "model.json")
    assert (load(tmp_path / "model.json").predict(rows) == model.predict(rows)).all()


def test_a_reading_that_is_wrong_is_never_handed_out(tumours: Tumours) -> None:
    """One edge a step off, or one value by a thousandth: raw scores are compared on every edge."""
    reading = read_model(tumours[2])
    first, *others = reading.shapes
    off = first._replace(edges=np.nextafter(first.edges, -np.inf))
    lifted = first._replace(values=first.values + 1e-3)
    for wrong in (off, lifted):
        with pytest.raises(ValueError, match=r"raw scores of sklearn\.GradientBoostingClassifier differ by"):
            from_reading(
                replace(reading, shapes=[wrong, *others]), None, noise="none", rule="mean", scaling=None, n_jobs=None
            )


def test_bad_input_is_named(tumours: Tumours) -> None:
    X, y, theirs = tumours
    with pytest.raises(TypeError, match="which is no sum of functions of few columns"):
        from_model(KNeighborsClassifier().fit(X, y))
    with pytest.raises(ValueError, match="must be fitted"):
        from_model(GradientBoostingClassifier())
    with pytest.raises(ValueError, match="`scaling` is 'standard', which is measured on rows: give `X`"):
        from_model(theirs, scaling="standard")
    with pytest.raises(ValueError, match="`scaling` must be None or one of"):
        from_model(theirs, X, scaling="minmax")
    with pytest.raises(ValueError, match="`noise` must not be 'none' under the rule 'vote'"):
        from_model(theirs, rule="vote")
    with pytest.raises(ValueError, match="6 features"):
        from_model(theirs, X.to_numpy()[:, :4])
    with pytest.raises(TypeError, match="trained elsewhere and cannot be fitted"):
        clone(from_model(theirs)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        deep = GradientBoostingClassifier(max_depth=5, n_estimators=20, random_state=0).fit(X, y)
    assert from_model(deep).ensemble_.has_trees


def test_labels_may_be_named_and_units_are_those_of_the_rows() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    boosted = GradientBoostingClassifier(max_depth=1, n_estimators=5, random_state=0).fit(X, y)
    model = from_model(boosted, X, classes=["ill", "well"])
    assert model.predict(X[:3]).tolist() == np.array(["ill", "well"])[boosted.predict(X[:3])].tolist()
    assert np.allclose(model.units, X.std(axis=0))
    assert from_model(boosted).units == (1.0,) * 30
    assert from_model(boosted, X, scaling=None).units == (1.0,) * 30
    for wrong in (["a"], ["a", "a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="`classes` must be 2 different labels"):
            from_model(boosted, classes=wrong)
    with pytest.raises(TypeError, match="got the class GradientBoostingClassifier"):
        from_model(GradientBoostingClassifier)
    with pytest.raises(TypeError, match=r"derand import model\.json"):
        from_model("model.json")


def test_tables_with_types_of_pyarrow_and_booleans(tumours: Tumours, tmp_path: Path) -> None:
    """Whole numbers of pyarrow in pandas are numbers; booleans are refused where the rows of the import held numbers,
    and a file remembers that."""
    X, labels, _ = tumours
    table = pd.DataFrame({"size": X.iloc[:, 0].round().astype(int), "large": X.iloc[:, 1] > 20})
    theirs = GradientBoostingClassifier(max_depth=1, n_estimators=5, random_state=0).fit(table, labels)
    arrow = table.astype({"size": "int64[pyarrow]", "large": "bool[pyarrow]"})
    wrong = table.assign(size=table["size"] > 14)
    model: Any = from_model(theirs, arrow)
    save(model, tmp_path / "model.json")
    for one in (model, load(tmp_path / "model.json")):
        assert one.encoding_.booleans == (1,)
        assert (one.certify(arrow).label == theirs.predict(table)).all()
        with pytest.raises(ValueError, match="column 'size' of `X` holds booleans now"):
            one.predict(wrong)
    bare: Any = from_model(theirs)
    assert (bare.predict(wrong) == theirs.predict(wrong)).all()
    own = StumpClassifier(noise="gaussian:1", categorical_features=None).fit(arrow, labels)
    save(own, tmp_path / "own.json")
    for other in (own, load(tmp_path / "own.json")):
        assert (other.predict(arrow) == own.predict(table)).all()
        with pytest.raises(ValueError, match="column 'size' of `X` holds booleans now"):
            other.certify(wrong)
