"""The dict is plain, repeats, follows the data and says what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from derand.report import Report
from tests.report.pages import check_page
from tests.report.samples import CASES


@pytest.mark.parametrize("case", CASES)
def test_unusual_input_gives_a_whole_report_that_says_what_is_missing(case: str) -> None:
    """The page is whole, and what could not be shown is named."""
    make, note = CASES[case]
    report = make()
    check_page(report)
    assert any(note in one for one in report.to_dict()["left_out"])


def test_the_dict_is_computed_once_and_repeats(numbers: Any) -> None:
    """The same input gives the same report, but for the clock."""
    clf, X, y = numbers
    report = Report(clf, X, y)
    assert report.to_dict() is report.to_dict()
    first, second = ({**Report(clf, X, y).to_dict(), "computed": None} for _ in range(2))
    assert first == second


def test_the_checksum_follows_the_data(numbers: Any) -> None:
    """Another value, another label, another checksum."""
    clf, X, y = numbers
    moved = X.copy()
    moved[7, 1] += 1e-9
    swapped = y.copy()
    swapped[3] = "no" if y[3] == "yes" else "yes"
    sums = [Report(clf, *data).to_dict()["data"]["sha256"] for data in ((X, y), (moved, y), (X, swapped))]
    assert len(set(sums)) == 3
    assert sums[0] == Report(clf, X.tolist(), y.tolist()).to_dict()["data"]["sha256"]
