"""One row as a service gets it: a dict, with None for what is missing, answers as a frame of one row does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from derand import AdditiveClassifier, AdditiveRegressor, StumpClassifier, Threat, from_model

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame(
    {"income": RNG.normal(50, 10, N), "age": RNG.integers(20, 60, N), "job": RNG.choice(["cook", "clerk"], N)}
)
X.loc[::9, "income"] = np.nan
X.loc[::7, "job"] = None
Y = (X["income"].fillna(45) + 6 * (X["job"] == "cook") + RNG.normal(0, 3, N) > 52).astype(int)
CLASSIFIERS = {
    "additive": AdditiveClassifier(noise="none", rule="mean", radius=0.1, regularization=1.0),
    "stumps": StumpClassifier(noise="gaussian:0.25", scaling="standard"),
}
ROWS = [
    '{"income": 49.5, "age": 30, "job": "cook"}',
    '{"income": null, "age": 30, "job": "cook"}',
    '{"job": null, "income": 61.25, "age": 22, "id": "extra"}',
    '{"income": null, "age": 41, "job": null}',
]


@pytest.fixture(scope="module", params=CLASSIFIERS)
def classifier(request: pytest.FixtureRequest) -> Any:
    return CLASSIFIERS[request.param].fit(X, Y)


@pytest.mark.parametrize("text", ROWS)
def test_a_dict_and_frames_of_one_row_give_equal_answers(classifier: Any, text: str) -> None:
    row = json.loads(text)
    columns = {name: [row[name]] for name in X}
    frame = pd.DataFrame(columns)
    typed = pd.DataFrame({"income": pd.Series([row["income"]], dtype=float), "age": [row["age"]], "job": [row["job"]]})
    tables = [frame, typed, pa.table(columns), pl.DataFrame(columns)]
    threat = Threat(norm=None, limits={"income": 5.0}, l0=1)
    for other in tables:
        assert classifier.predict(row) == classifier.predict(other)
        assert (classifier.predict_proba(row) == classifier.predict_proba(other)).all()
        assert (classifier.decision_function(row) == classifier.decision_function(other)).all()
        for asked in (None, threat):
            mine, theirs = classifier.certify(row, threat=asked), classifier.certify(other, threat=asked)
            assert (mine.label, mine.radius, mine.failure.tobytes()) == (
                theirs.label,
                theirs.radius,
                theirs.failure.tobytes(),
            )
        mine, theirs = classifier.attack(row), classifier.attack(other)
        assert (mine.distance, mine.flipped) == (theirs.distance, theirs.flipped)
        assert str(classifier.explain(row)) == str(classifier.explain(other))


def test_numbers_and_imported_models_take_a_dict() -> None:
    row: dict[str, Any] = {"income": None, "age": 30, "job": "cook"}
    regressor = AdditiveRegressor(noise="none", rule="mean", regularization=1.0).fit(
        X, X["age"] * 2.0 + 9 * Y + RNG.normal(0, 9, N)
    )
    assert regressor.predict(row) == regressor.predict(pd.DataFrame([row]))
    assert regressor.certify_interval(row).low == regressor.certify_interval(pd.DataFrame([row])).low
    plain = X[["age"]].assign(income=X["income"].fillna(0.0))
    imported = from_model(LogisticRegression().fit(plain, Y), plain)
    assert imported.predict({"income": 50.0, "age": 30}) == imported.predict(plain.iloc[:1].assign(income=50.0, age=30))


def test_what_a_row_must_not_be(classifier: Any) -> None:
    row = {"income": 49.5, "age": 30, "job": "cook"}
    with pytest.raises(ValueError, match=r"got a row without 'income'"):
        classifier.predict({"age": 30, "job": "cook"})
    with pytest.raises(ValueError, match=r"column 'income' of `X` holds text, such as '49': turn it into numbers"):
        classifier.predict(row | {"income": "49"})
    with pytest.raises(ValueError, match=r"'job' of `X` holds numbers now and held text then"):
        classifier.certify(row | {"job": 3})
    with pytest.raises(ValueError, match=r"got a dict: a model is fitted to many rows"):
        StumpClassifier().fit(row, [1])


def test_a_column_of_nothing_is_no_training_column() -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": pa.nulls(4)})
    with pytest.raises(ValueError, match=r"got none in column 'b': all its values are missing"):
        StumpClassifier().fit(table, [0, 0, 1, 1])


def test_labels_of_other_classes_are_told_which_were_expected(classifier: Any) -> None:
    with pytest.raises(ValueError, match=r"must hold labels among \[0, 1\], got '[YN]'"):
        classifier.score(X, np.where(Y, "Y", "N"))
    assert classifier.score(X, Y) == (classifier.predict(X) == Y).mean()
