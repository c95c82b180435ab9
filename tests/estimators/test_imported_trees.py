"""Default models of other libraries, certified as they are deployed: verdicts that their own `predict` confirms."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from derand import Report, SmoothedClassifier, Threat, from_model, load, save

COLUMNS = ["mean radius", "mean texture", "mean area", "mean smoothness", "worst area"]
TWO = Threat(norm=None, limits={"mean area": "3%", "worst area": "3%"})


def make_table() -> tuple[pd.DataFrame, pd.Series]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X[COLUMNS], y.map({0: "malignant", 1: "benign"})


def make_forest(**more: Any) -> RandomForestClassifier:
    X, y = make_table()
    return RandomForestClassifier(random_state=0, **{"n_estimators": 10, "max_depth": 4} | more).fit(X, y)


def check_points(deployed: Any, c: Any, X: pd.DataFrame, threat: Threat, classes: Any = None) -> None:
    """Rows that hold keep their label at many points within the limits; witnesses flip it. Asked of the library."""
    rng, own = np.random.default_rng(0), deployed.predict(X)
    label = c.label if classes is None else np.searchsorted(classes, c.label)
    assert (own == label).all()
    held = np.flatnonzero(c.verdict == "holds")
    for _ in range(20):
        moved = X.iloc[held].copy()
        for column, limit in threat.limits.items():
            share = float(str(limit).rstrip("%")) / 100
            moved[column] *= 1 + share * rng.choice([-1.0, 1.0, 0.0, rng.uniform(-1, 1)], held.size)
            low, high = X[column].iloc[held] * (1 - share), X[column].iloc[held] * (1 + share)
            moved[column] = moved[column].clip(low, high)
        assert (deployed.predict(moved) == label[held]).all()
    flips = np.flatnonzero(c.flips)
    witnesses = pd.DataFrame(c.witness[flips], columns=X.columns)
    assert (deployed.predict(witnesses) != label[flips]).all()


def test_a_default_xgboost() -> None:
    """Every verdict is the library's own."""
    xgboost = pytest.importorskip("xgboost")
    X, y = make_table()
    deployed = xgboost.XGBClassifier(n_jobs=1).fit(X, (y == "benign").astype(int))
    model = from_model(deployed)
    assert model.ensemble_.has_trees
    c = model.certify(X[:120], threat=TWO)
    assert set(c.verdict) == {"holds", "flips"}
    check_points(deployed, c, X[:120], TWO)


@pytest.mark.parametrize("kind", [make_forest, lambda: HistGradientBoostingClassifier(max_iter=20).fit(*make_table())])
def test_other_defaults(kind: Any) -> None:
    """With labels of text."""
    deployed, (X, _) = kind(), make_table()
    model = from_model(deployed)
    c = model.certify(X[:120], threat=TWO)
    assert (c.verdict != "undecided").mean() > 0.9
    check_points(deployed, c, X[:120], TWO)


def test_the_library_is_asked_as_long_as_it_is_at_hand(tmp_path: Path) -> None:
    """Not by copies, pickles, files and moved thresholds, which leave its ties to it."""
    deployed, (X, _) = make_forest(n_estimators=4, max_depth=3), make_table()
    model = from_model(deployed)
    assert model._library is not None
    own = model.certify(X, threat=TWO)
    save(model, tmp_path / "m.json")
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path / "m.json")]
    for other in others:
        assert other._library is None
        c = other.certify(X, threat=TWO)
        assert (c.label == own.label).all()
        assert (c.verdict[c.verdict != own.verdict] == "undecided").all()
        assert c.is_tie[c.verdict != own.verdict].all()
    assert model.with_threshold(0.7)._library is None
    assert from_model(deployed, decision_threshold=0.7)._library is None


def test_a_model_that_was_trained_again_is_noticed() -> None:
    """In one line that says what to do."""
    deployed, (X, y) = make_forest(), make_table()
    model = from_model(deployed)
    assert model.certify(X, threat=TWO).flips.any()
    deployed.fit(X, y.map({"benign": "malignant", "malignant": "benign"}))
    with pytest.raises(ValueError, match=r"trained or changed since then\. Call `from_model` again\.$"):
        model.certify(X, threat=TWO)


def test_a_radius_between_what_is_certified_and_what_is_attacked() -> None:
    """Two columns are free; the nearest flip is one of the library."""
    deployed, (X, _) = make_forest(), make_table()
    model, threat = from_model(deployed), Threat(norm=math.inf, frozen=COLUMNS[:3], units=None)
    c = model.certify(X[:40], threat=threat)
    assert (c.radius <= c.attacked).all()
    some = np.flatnonzero(np.isfinite(c.attacked))
    witnesses = pd.DataFrame(c.witness[some], columns=X.columns)
    assert (deployed.predict(witnesses) != c.label[some]).all()
    found = model.attack(X[:40], threat=threat)
    found.require_outside(c)
    assert (deployed.predict(found.rows[found.found]) != c.label[found.found]).all()


def test_what_trees_cannot_do_is_said_in_a_line() -> None:
    """Noise, when a model is read and when it is certified, and pictures of single columns."""
    deployed, (X, y) = make_forest(), make_table()
    model = from_model(deployed)
    for ask in (
        lambda: from_model(deployed, noise="gaussian:0.25"),
        lambda: model.certify(X, noise="gaussian:0.25", rule="mean"),
        lambda: model.certify(X, noise="gaussian:0.25", rule="vote"),
        lambda: SmoothedClassifier(make_forest(), noise="gaussian:0.25", augment=1).fit(X, y),
    ):
        with pytest.raises(ValueError, match=r"^Noise is not for a model whose trees join many columns: .*depth 1\.$"):
            ask()
    with pytest.raises(ValueError, match=r"^`plot` draws what each column adds by itself, and the trees"):
        model.plot()
    for budget in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=r"^`budget` must be a whole number of nodes"):
            model.certify(X, budget=budget)


def test_limits_of_a_column_that_no_tree_asks() -> None:
    """By its name, once."""
    X, y = make_table()
    X = X.assign(constant=1.0)
    model = from_model(RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, y))
    limits = {"mean area": "3%", "constant": 5.0}
    with pytest.warns(UserWarning, match=r"^The model does not use column 'constant'") as told:
        model.certify(X[:5], threat=Threat(norm=None, limits=limits))
    assert len(told) == 1


def test_a_row_is_explained() -> None:
    """Its label, the radius, each column alone; no contributions."""
    deployed, (X, _) = make_forest(), make_table()
    told = from_model(deployed).explain(X.iloc[0], threat=TWO)
    assert not told.pushes
    assert "One column alone" in str(told)
    assert "pushes it" not in str(told)
    assert told._repr_html_()
    for change in told.columns:
        if change.row is not None:
            assert deployed.predict(pd.DataFrame([change.row], columns=X.columns))[0] != told.label


def test_a_forest_of_numbers() -> None:
    """Intervals hold what the library answers; an explanation has no parts that add up."""
    X, _ = make_table()
    target = X["mean radius"] * X["mean texture"] + X["mean smoothness"] * X["worst area"]
    deployed = RandomForestRegressor(5, max_depth=5, max_features=2, random_state=0).fit(X, target)
    model, rows = from_model(deployed), X[:30]
    assert model.ensemble_.has_trees
    threat = Threat(norm=None, limits={"mean area": "3%"})
    c = model.certify_interval(rows, threat=threat)
    for share in np.linspace(-0.03, 0.03, 41):
        answers = deployed.predict(rows.assign(**{"mean area": rows["mean area"] * (1 + 0.999 * share)}))
        assert (c.low <= answers).all()
        assert (answers <= c.high).all()
    model.attack_interval(rows, threat=threat).require_inside(c)
    told = model.explain(rows.iloc[0], threat=threat)
    assert "What adds up" not in str(told)
    assert told._repr_html_()
    assert model.certify_radius(rows[:5], 0.5, threat=Threat(norm=math.inf, frozen=COLUMNS[:3])).radius.shape == (5,)


def test_a_report_counts_and_leaves_out() -> None:
    """Holds, flips, undecided and ties; no shapes, no What if, with a reason each."""
    deployed, (X, y) = make_forest(n_estimators=4, max_depth=3), make_table()
    page = Report(load_again(from_model(deployed)), X[:60], y[:60], threat=TWO)
    content = page.to_dict()
    assert content["shapes"] == []
    assert content["what_if"] is None
    text = page.to_html()
    assert "Trees join many columns" in text
    assert "the page computes functions of a few columns only" in text
    counts = content["verdicts"]["counts"][0]
    assert counts["holds"] + counts["flips"] + counts["undecided"] == 60


def load_again(model: Any) -> Any:
    """Without the library."""
    return copy.deepcopy(model)
