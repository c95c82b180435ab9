"""The dict has the keys and types that it declares."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from derand import RobAdaBoostClassifier
from derand.report import Report, ReportSummary
from tests.report.samples import CASES


def list_faults(value: Any, kind: Any, place: str = "report") -> list[str]:
    """Where a value is not what its type says."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        faults = list_key_faults(value, kind, place)
    elif origin in (Union, UnionType):
        faults = min((list_faults(value, one, place) for one in arguments), key=len)
    elif origin is Literal:
        faults = [] if value in arguments else [f"{place} is {value!r}"]
    elif origin in (list, dict) and isinstance(value, origin):
        parts = value.items() if origin is dict else enumerate(value)
        faults = [fault for at, one in parts for fault in list_faults(one, arguments[-1], f"{place}[{at!r}]")]
    else:
        allowed = (float, int) if kind is float else (origin or kind,)
        is_right = isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))
        faults = [] if is_right else [f"{place} is {value!r}, no {kind.__name__}"]
    return faults


def list_key_faults(value: Any, kind: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place} is no dict"]
    hints, plain = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    needed = {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}
    return [
        *(f"{place} has no {key}" for key in needed - value.keys()),
        *(f"{place} has {key}, which is not declared" for key in value.keys() - hints.keys()),
        *(fault for key in value.keys() & hints for fault in list_faults(value[key], plain[key], f"{place}.{key}")),
    ]


@pytest.mark.parametrize("case", CASES)
def test_unusual_reports_have_the_declared_types(case: str) -> None:
    """Keys, and the types of all values, also where parts are left out."""
    make, _ = CASES[case]
    assert list_faults(make().to_dict(), ReportSummary) == []


def test_full_reports_have_the_declared_types(mixed: Any, numbers: Any) -> None:
    """With labels, training rows and groups; for a sum and for a vote."""
    clf, X, y = mixed
    assert list_faults(Report(clf, X, y, X_train=X, y_train=y, subgroups="job").to_dict(), ReportSummary) == []
    _, rows, labels = numbers
    vote = RobAdaBoostClassifier(noise="gaussian:0.5", n_estimators=3).fit(rows, labels)
    assert list_faults(Report(vote, rows, labels).to_dict(), ReportSummary) == []


def test_faults_are_found(numbers: Any) -> None:
    """The check itself: a missing key, a strange key and a wrong type are told by their places."""
    clf, X, y = numbers
    summary: Any = Report(clf, X, y).to_dict()
    wrong = {**summary, "scale": {**summary["scale"], "quoted": "0.5"}, "extra": 1}
    del wrong["title"]
    assert sorted(list_faults(wrong, ReportSummary)) == [
        "report has extra, which is not declared",
        "report has no title",
        "report.scale.quoted is '0.5', no float",
    ]
