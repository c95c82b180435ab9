"""What the user gives is checked, encoded and certified once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier, Threat
from derand.report import Report
from derand.report._inputs import read_inputs, read_subject
from derand.tables import TableEncoding
from tests.report.samples import report_on_codes


@pytest.mark.parametrize(
    ("kind", "message", "rows", "options"),
    [
        (ValueError, "`noise` must be left out", slice(None), {"noise": "gaussian:1"}),
        (ValueError, "`y` must hold one label per row", slice(5), {}),
        (ValueError, "`feature_names` must hold 3 names", slice(None), {"feature_names": ["a"]}),
        (ValueError, "`l0` must be", slice(None), {"l0": -1}),
        (ValueError, "Give `l0` or `threat`, got both", slice(None), {"l0": 1, "threat": Threat()}),
        (TypeError, "`threat` must be a Threat", slice(None), {"threat": "linf"}),
        (ValueError, "`rule` must be one of", slice(None), {"rule": "median"}),
        (ValueError, "`proof` must be 'best' under the rule 'mean'", slice(None), {"rule": "mean", "proof": "paper"}),
        (ValueError, "names the column 'agge'", slice(None), {"threat": Threat(frozen=["agge"])}),
        (ValueError, "must not be None or 'none' under the rule 'vote'", slice(None), {"noise": "none"}),
    ],
)
def test_wrong_input_is_refused_with_a_hint(
    numbers: Any, kind: type[Exception], message: str, rows: slice, options: dict[str, Any]
) -> None:
    """Errors name the parameter and what to do."""
    clf, X, y = numbers
    with pytest.raises(kind, match=message):
        Report(clf, X, y[rows], **options)


def test_what_is_no_fitted_classifier_is_refused_with_a_hint(numbers: Any) -> None:
    """Other objects, an unfitted classifier, and a bare model without a noise."""
    clf, X, y = numbers
    for kind, message, subject in (
        (TypeError, "`model` must be a fitted classifier", object()),
        (ValueError, "call `fit` first", StumpClassifier()),
        (ValueError, "`noise` must be given with a bare", clf.ensemble_),
    ):
        with pytest.raises(kind, match=message):
            Report(subject, X, y)


def test_labels_of_no_class_are_refused(numbers: Any) -> None:
    """A label that the classifier never gives is named."""
    clf, X, _ = numbers
    with pytest.raises(ValueError, match="`y` must hold labels among"):
        Report(clf, X, ["maybe"] * len(X))


def test_the_certificates_are_the_classifier_s(mixed: Any) -> None:
    """Labels, masses and radii for each number of changed categories, to the last bit."""
    clf, X, y = mixed
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    for one, expected in zip(inputs.certificates, clf.certify(X, l0=[0, 1, 2]), strict=True):
        for name in ("label", "failure", "log_failure", "radius", "classes"):
            assert np.array_equal(getattr(one, name), getattr(expected, name))
        assert one.l0 == expected.l0
    assert np.array_equal(inputs.matrix, clf.encoding_.encode(X), equal_nan=True)


def test_a_table_is_encoded_once(mixed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the table to all four outputs, its columns are read one time."""
    clf, X, y = mixed
    tables: list[Any] = []
    encode = TableEncoding.encode
    monkeypatch.setattr(TableEncoding, "encode", lambda self, table: tables.append(table) or encode(self, table))
    report = Report(clf, X, y, subgroups="job")
    for write in (report.to_html, report.to_markdown, report.to_latex, report.to_json):
        write()
    assert len(tables) == 1


def test_tables_are_checked_as_the_classifier_checks_them(mixed: Any) -> None:
    """Missing columns, gaps in numbers and empty tables are refused by name."""
    clf, X, y = mixed
    gap = X.assign(age=X["age"].where(X.index > 3))
    for message, table in (
        (r"column 'age' \(4 rows\)", gap),
        ("Feature names must be in the same order", X[["job", "age", "town"]]),
        ("Feature names seen at fit time, yet now missing", X[["age", "job"]]),
        ("Found array with 0 sample", X[:0]),
    ):
        with pytest.raises(ValueError, match=message):
            Report(clf, table, y)


def test_lists_that_mix_text_and_numbers_are_read() -> None:
    """Numbers beside text in plain lists stay numbers."""
    rows = [[0.0, "a"], [1.0, "b"], [4.0, "a"], [5.0, "b"]]
    clf = StumpClassifier(noise="gaussian:0.5").fit(pd.DataFrame(rows).to_numpy(dtype=object), [0, 0, 1, 1])
    inputs = read_inputs(read_subject(clf, None, None), rows, None, None)
    assert inputs.matrix[:, 0].tolist() == [0.0, 1.0, 4.0, 5.0]


def test_codes_of_a_bare_model_stand_for_themselves() -> None:
    """Without an encoding a category is shown by its code, and a gap is named."""
    subject = report_on_codes()._inputs.subject
    assert [subject.describe_value(0, value) for value in (0.0, 5.0, 7.0, np.nan)] == [
        "0",
        "5",
        "7",
        "(missing or new)",
    ]
    assert subject.describe_value(1, 0.25) == "0.25"
