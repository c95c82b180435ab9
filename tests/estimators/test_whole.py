"""Whole-number columns: known from training, kept in files, used by explanations and threats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from derand import AdditiveRegressor, StumpClassifier, Threat, certify, from_model, load, save
from derand.fitted import encode_rows

LOANS = pd.DataFrame(
    {
        "months": np.tile([6, 12, 18, 24, 36, 48], 20),
        "phone": np.repeat([0, 1], 60),
        "income": np.linspace(1000.5, 6000.25, 120),
        "job": np.tile(["cook", "clerk"], 60),
    }
)
OUTCOME = np.where(LOANS.months / 12 + LOANS.phone > LOANS.income / 1500, "late", "paid")
WHOLE = {0: (6, 48), 1: (0, 1)}


@pytest.fixture(scope="module")
def clf() -> StumpClassifier:
    return StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean").fit(LOANS, OUTCOME)


def test_columns_of_whole_numbers_are_learnt_saved_and_loaded(clf: StumpClassifier, tmp_path: Path) -> None:
    """Of classifiers, regressors and models of other libraries, also where there are none."""
    regressor = AdditiveRegressor(radius=0.1, regularization=1.0).fit(LOANS, LOANS.income.to_numpy() * 2)
    numbers = LOANS.drop(columns="job")
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, OUTCOME)
    for model in (clf, regressor, from_model(linear, numbers)):
        assert model.encoding_.whole == WHOLE
        save(model, tmp_path / "model.json")
        assert load(tmp_path / "model.json").encoding_.whole == WHOLE
    assert from_model(linear).encoding_.whole == {}
    save(from_model(linear), tmp_path / "model.json")
    assert load(tmp_path / "model.json").encoding_.whole == {}


def test_missing_numbers_and_booleans_do_not_hide_whole_numbers() -> None:
    """Gaps are no fractions; truth values that are read as numbers are 0 and 1."""
    table = LOANS.assign(months=LOANS.months.mask(LOANS.index % 7 == 0), phone=LOANS.phone == 1).drop(columns="job")
    clf = StumpClassifier(categorical_features=None).fit(table, OUTCOME)
    assert clf.encoding_.whole == WHOLE


def test_explained_flips_are_whole_numbers(clf: StumpClassifier) -> None:
    """A count flips at a count, a column of 0 and 1 moves by 1; any number where that is asked for."""
    fractions = 0
    for row in range(0, 120, 30):
        one = LOANS.iloc[[row]]
        for change in clf.explain(one).columns:
            if change.row is not None and change.feature in WHOLE:
                assert change.row[0].is_integer()
                assert change.row[1] in (0.0, 1.0)
                assert clf.predict(clf.decode_rows(change.row[None]))[0] != clf.predict(one)[0]
                assert change.certified == pytest.approx(change.attacked, rel=1e-9)
        plain = [change.row for change in clf.explain(one, whole=False).columns if change.feature in WHOLE]
        fractions += sum(not (row[0].is_integer() and row[1].is_integer()) for row in plain if row is not None)
    assert fractions > 0


def test_a_row_with_a_fraction_is_explained_by_any_numbers(clf: StumpClassifier) -> None:
    """Its own number is none of those that training had; steps of a threat count from it."""
    row = LOANS.iloc[[0]].assign(months=6.5)
    assert clf.encoding_.find_whole(encode_rows(clf, row)) == {1: (0, 1)}
    found = clf.certify(row, threat=Threat(norm=None, limits={"months": 20}, whole=True))
    assert found.witness is not None
    assert (found.witness[0, 0] - 6.5).is_integer()


def test_a_threat_of_whole_numbers_flips_fewer_rows(clf: StumpClassifier) -> None:
    """Steps of 1, 0 and 1 alone, and integers in the witnesses; the columns are named in the threat."""
    limits = {"months": "10%", "phone": 0.6}
    plain = clf.certify(LOANS, threat=Threat(norm=None, limits=limits))
    whole = clf.certify(LOANS, threat=Threat(norm=None, limits=limits, whole=True))
    named = clf.certify(LOANS, threat=Threat(norm=None, limits=limits, steps={"months": 1, "phone": 1}))
    assert (whole.threat.steps, whole.threat.domain, whole.threat.whole) == ({0: 1.0, 1: 1.0}, {1: (0.0, 1.0)}, False)
    assert whole.flips is not None
    assert plain.flips is not None
    assert whole.flips.sum() < plain.flips.sum()
    assert (whole.verdict == named.verdict).all()
    changed = clf.decode_rows(whole.witness)
    assert changed.dtypes[["months", "phone"]].tolist() == [np.dtype("int64")] * 2
    assert clf.decode_rows(plain.witness).months.dtype == np.dtype("float64")
    attacks = clf.attack(LOANS[:20], threat=Threat(whole=True))
    assert attacks.rows.months.dtype == np.dtype("int64")
    attacks.require_outside(clf.certify(LOANS[:20], threat=Threat(whole=True)))


def test_what_a_threat_of_whole_numbers_cannot_mean_is_told(clf: StumpClassifier) -> None:
    """A bare model knows no columns; a row beyond 0 and 1; an estimator that knows none."""
    with pytest.raises(ValueError, match="`whole` of Threat must be False for a bare model"):
        certify(clf.ensemble_, encode_rows(clf, LOANS), clf.noise_, threat=Threat(whole=True))
    with pytest.raises(ValueError, match=r"got \[0.0, 1.0\] for column 1 and 2.0 in row 0: by `whole`"):
        clf.certify(LOANS.iloc[[0]].assign(phone=2), threat=Threat(whole=True))
    wide = Threat(whole=True, domain={"phone": (0, 5)})
    assert clf.certify(LOANS.iloc[[0]].assign(phone=2), threat=wide).threat.domain == {1: (0.0, 5.0)}
    with pytest.raises(TypeError, match="`whole` of Threat must be True or False, got 'months'"):
        Threat(whole="months")  # type: ignore[arg-type]
    rows: Any = np.random.default_rng(0).normal(size=(40, 2))
    other = StumpClassifier().fit(rows, rows[:, 0] > 0)
    with pytest.warns(UserWarning, match="`whole` of Threat changes nothing"):
        other.certify(rows[:1], threat=Threat(whole=True))
