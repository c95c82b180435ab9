"""Finiteness: found once, counted by column, and named by whoever knows the names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveEnsemble, StepFunction, StumpClassifier, certify
from derand.finite import MissingNumbersError, name_gaps, require_finite


def test_gaps_are_counted_by_column() -> None:
    """NaN and both infinities count; columns that are not asked for do not."""
    rows = np.array([[np.nan, 1.0, np.inf], [0.0, np.nan, -np.inf]])
    with pytest.raises(MissingNumbersError, match=r"column 0 \(1 rows\), column 2 \(2 rows\): drop") as error:
        require_finite(rows, [0, 2])
    assert error.value.counts == {0: 1, 2: 2}
    require_finite(np.array([[1, 2]]), [0, 1])
    with name_gaps(lambda column: "abc"[column]), pytest.raises(MissingNumbersError):
        require_finite(rows, [0])


def test_names_are_added_on_the_way_up() -> None:
    """The same counts, with the names of the outer level."""
    with pytest.raises(MissingNumbersError, match=r"column 'b' \(1 rows\)"), name_gaps(lambda column: "ab"[column]):
        require_finite(np.array([[0.0, np.nan]]), [0, 1])


def test_a_row_of_a_frame_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a frame to its certificate every number passes one check, and so from an array."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0], "b": ["x", "y", "x", "y"]})
    clf = StumpClassifier(noise="gaussian:0.5").fit(frame, [0, 0, 1, 1])
    calls = []

    def count(rows: np.ndarray, columns: object) -> None:
        calls.append(rows.shape)
        require_finite(rows, columns)  # type: ignore[arg-type]

    monkeypatch.setattr("derand.frames._encoding.require_finite", count)
    monkeypatch.setattr("derand.certificates._run.require_finite", count)
    clf.certify(frame)
    assert calls == [(4, 2)]
    certify(AdditiveEnsemble([StepFunction(0, [0.5], [0, 1])], 0, 1), [[0.0]], "gaussian:1")
    assert calls == [(4, 2), (1, 1)]


def test_a_new_value_in_a_column_of_one_category_is_no_gap() -> None:
    """The model does not read such a column: what it holds later cannot be missing."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0], "k": ["x"] * 4})
    clf = StumpClassifier(noise="gaussian:0.5").fit(frame, [0, 0, 1, 1])
    assert clf.predict(pd.DataFrame({"a": [0.5, 6.0], "k": ["new", None]})).tolist() == [0, 1]
