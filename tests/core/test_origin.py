"""Results as tables that join back: the index of the frame that was certified, and the library that it came in."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from derand import (
    AdditiveRegressor,
    Gaussian,
    StumpClassifier,
    Threat,
    average_certified_radius,
    certified_accuracy,
    summarize_radii,
)

INCOME = [10.0, 20.0, 30.0, 60.0, 70.0, 80.0]
JOB = ["cook", "cook", "clerk", "clerk", "clerk", "clerk"]
Y = [0, 0, 0, 1, 1, 1]
INDEXES = [
    pd.Index(list("uvwxyz"), name="client"),
    pd.Index([7, 7, 7, 8, 8, 9]),
    pd.MultiIndex.from_product([["north", "south"], [1, 2, 3]], names=["branch", "number"]),
    pd.DatetimeIndex([f"2026-01-0{day}" for day in (1, 2, 4, 5, 7, 9)]),
    pd.RangeIndex(6),
]
LIMITS = Threat(norm=None, limits={"income": 40}, l0=1)


def make_frame(index: Any = None) -> pd.DataFrame:
    return pd.DataFrame({"income": INCOME, "job": JOB}, index=index)


@pytest.fixture(scope="module")
def classifier() -> StumpClassifier:
    return StumpClassifier(noise=Gaussian(5)).fit(make_frame(), Y)


@pytest.fixture(scope="module")
def regressor() -> AdditiveRegressor:
    return AdditiveRegressor(noise=Gaussian(5)).fit(make_frame(), INCOME)


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: type(index).__name__)
def test_certificates_keep_the_index_of_their_frame(classifier: StumpClassifier, index: pd.Index) -> None:
    frame = make_frame(index)
    found = classifier.certify(frame)
    pd.testing.assert_index_equal(found.to_pandas().index, index)
    pd.testing.assert_index_equal(found.to_frame().index, index)
    np.testing.assert_array_equal(pd.concat([frame, found.to_pandas()], axis=1)["radius"], found.radius)
    for rows in (found[[4, 1]], pickle.loads(pickle.dumps(found[[4, 1]]))):
        pd.testing.assert_index_equal(rows.to_pandas().index, index[[4, 1]])
    pd.testing.assert_index_equal(found[found.label == 1].to_pandas().index, index[found.label == 1])
    pd.testing.assert_index_equal(found[2].to_pandas().index, index[[2]])


def test_several_budgets_keep_the_index_each(classifier: StumpClassifier) -> None:
    found = classifier.certify(make_frame(INDEXES[0]), l0=[0, 1])
    assert [one.to_pandas().index.tolist() for one in found] == [list("uvwxyz")] * 2


def test_numbers_keep_the_index_of_their_frame(regressor: AdditiveRegressor) -> None:
    frame = make_frame(INDEXES[2])
    for found in (
        regressor.certify_interval(frame, 0.5),
        regressor.certify_radius(frame, 10.0),
        regressor.attack_interval(frame, 0.5),
    ):
        pd.testing.assert_index_equal(found.to_pandas().index, INDEXES[2])
        pd.testing.assert_index_equal(found[1:3].to_pandas().index, INDEXES[2][1:3])
    attacks = regressor.attack_interval(frame, 0.5)
    for rows in (attacks.low_rows, attacks[1:3].high_rows):
        pd.testing.assert_index_equal(rows.index, INDEXES[2] if len(rows) == 6 else INDEXES[2][1:3])


def test_attacks_keep_the_index_in_their_rows_too(classifier: StumpClassifier) -> None:
    found = classifier.attack(make_frame(INDEXES[1]))
    pd.testing.assert_index_equal(found.to_pandas().index, INDEXES[1])
    pd.testing.assert_index_equal(found.rows.index, INDEXES[1])
    pd.testing.assert_index_equal(found[3:].rows.index, INDEXES[1][3:])
    np.testing.assert_array_equal(classifier.predict(found.rows), found.flipped)


def test_what_is_decoded_looks_like_what_was_certified(classifier: StumpClassifier) -> None:
    frame = make_frame(INDEXES[0])
    found = classifier.certify(frame, threat=LIMITS)
    assert found.witness is not None
    assert found.flips is not None
    assert found.flips.any()
    changed = classifier.decode_rows(found.witness, like=found)
    pd.testing.assert_index_equal(changed.index, INDEXES[0])
    pd.testing.assert_frame_equal(changed, classifier.decode_rows(found.witness, like=frame))
    assert (classifier.predict(changed[found.flips]) != found.label[found.flips]).all()
    assert classifier.decode_rows(found.witness).index.tolist() == list(range(6))


def test_polars_gets_polars(classifier: StumpClassifier) -> None:
    frame = pl.DataFrame({"income": INCOME, "job": JOB})
    found = classifier.certify(frame)
    table = found.to_frame()
    assert isinstance(table, pl.DataFrame)
    assert table.equals(found.to_polars())
    assert table.columns == ["label", "failure", "log_failure", "radius", "proof"]
    assert frame.hstack(table)["label"].to_list() == found.label.tolist()
    attacks = classifier.attack(frame)
    assert isinstance(attacks.rows, pl.DataFrame)
    assert isinstance(attacks.to_frame(), pl.DataFrame)
    np.testing.assert_array_equal(classifier.predict(attacks.rows), attacks.flipped)
    assert attacks[1:3].rows.equals(attacks.rows[1:3])
    within = classifier.certify(frame, threat=LIMITS)
    assert within.witness is not None
    assert isinstance(classifier.decode_rows(within.witness, like=frame), pl.DataFrame)
    assert isinstance(found.to_pandas(), pd.DataFrame)


def test_arrow_gets_arrow(classifier: StumpClassifier) -> None:
    table = pa.table({"income": INCOME, "job": JOB})
    found = classifier.certify(table)
    assert isinstance(found.to_frame(), pa.Table)
    assert found.to_frame().column("label").to_pylist() == found.label.tolist()
    attacks = classifier.attack(table)
    assert isinstance(attacks.rows, pa.Table)
    np.testing.assert_array_equal(classifier.predict(attacks.rows), attacks.flipped)
    assert attacks[:2].rows.num_rows == 2


def test_arrays_get_pandas_without_an_index() -> None:
    X = np.array(INCOME)[:, None]
    found = StumpClassifier(noise=Gaussian(5)).fit(X, Y).certify(X)
    assert found.index is None
    assert found[3:].to_frame().index.tolist() == [0, 1, 2]
    assert isinstance(found.to_polars(), pl.DataFrame)


def test_what_is_not_there_is_null_in_polars_and_arrow(regressor: AdditiveRegressor) -> None:
    clf = StumpClassifier(noise=Gaussian(5), rule="mean").fit(make_frame(), ["no"] * 3 + ["yes"] * 3)
    found = clf.certify(pl.DataFrame({"income": INCOME, "job": JOB}))
    assert found.to_frame().columns == ["label", "radius", "proof"]
    assert found.to_frame()["label"].to_list() == found.label.tolist()
    assert clf.certify(pa.table({"income": INCOME, "job": JOB})).to_frame().column_names == ["label", "radius", "proof"]
    intervals = regressor.certify_interval(pl.DataFrame({"income": INCOME, "job": JOB}), 0.5)
    assert intervals.to_frame().columns == ["value", "low", "high", "width"]


@pytest.mark.parametrize("index", [pd.Index(list("uvwxyz")), pd.RangeIndex(6), INDEXES[2]])
def test_labels_and_rows_in_another_order_are_refused(
    classifier: StumpClassifier, regressor: AdditiveRegressor, index: pd.Index
) -> None:
    """By their index: shares of rows that do not belong together are no shares."""
    frame, y = make_frame(index), pd.Series(Y, index)
    c = classifier.certify(frame)
    right, backwards = certified_accuracy(y, c, [0.1]).tolist(), y[::-1]
    for measure in (average_certified_radius, summarize_radii, lambda labels, c: certified_accuracy(labels, c, [0.1])):
        with pytest.raises(ValueError, match=r"same rows in another order by its index: give `y\.loc\[c\.index\]`"):
            measure(backwards, c)
    assert certified_accuracy(backwards.loc[c.index], c, [0.1]).tolist() == right
    with pytest.raises(ValueError, match=r"`X` must hold .* another order"):
        classifier.audit(frame[::-1], c)
    with pytest.raises(ValueError, match=r"`X` must hold .* another order"):
        regressor.audit(frame[::-1], regressor.certify_interval(frame, 1.0))


def test_an_index_that_was_lost_is_no_other_order(classifier: StumpClassifier) -> None:
    """Arrays, the plain numbers of pandas, names that occur twice: nothing is known of the order then."""
    named = pd.Index(list("uvwxyz"))
    c = classifier.certify(make_frame(named))
    for y in (Y, pd.Series(Y), pd.Series(Y, named), pd.Series(Y, INDEXES[1])):
        certified_accuracy(y, c, [0.1])
    certified_accuracy(pd.Series(Y, named), classifier.certify(make_frame()), [0.1])
    with pytest.raises(ValueError, match="got other rows by its index"):
        certified_accuracy(pd.Series(Y, list("abcdef")), c, [0.1])
