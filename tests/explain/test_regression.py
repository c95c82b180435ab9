"""Rows whose answers are numbers, explained: what is told adds up, is proven, and lies between what was found."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from derand import AdditiveRegressor, StumpRegressor, Threat

mpl.use("agg")

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.integers(18, 80, 120), HOSTILE: rng.normal(size=120), "job": rng.choice(["a", "b"], 120)}
    )
    X.loc[:10, HOSTILE] = np.nan
    y = X["age"] + 10 * X[HOSTILE].fillna(0.5) + 20 * (X["job"] == "b")
    return AdditiveRegressor(radius=0.2, regularization=1.0).fit(X, y), X


def test_an_explanation_adds_up_and_is_what_was_certified(fitted: Any) -> None:
    """Pushes add up to the answer, the ends are those of `certify_interval`, and what was found lies inside."""
    reg, X = fitted
    row = X.iloc[50]
    told, (found,) = reg.explain(row), [reg.certify_interval(X[50:51])]
    assert told.value == found.value[0]
    assert told.base + sum(push.size for push in told.pushes) + told.rest == pytest.approx(told.value, abs=1e-9)
    assert abs(told.rest) < 1e-9
    assert (told.joint.low, told.joint.high) == (found.low[0], found.high[0])
    assert told.joint.low <= told.lowest.value <= told.value <= told.highest.value <= told.joint.high
    for end in (told.lowest, told.highest):
        assert end.row[0] == round(end.row[0])
        assert reg.predict(reg.decode_rows(end.row[None]))[0] == pytest.approx(end.value, abs=1e-9)
    for one in told.columns:
        alone = Threat(
            norm=2, frozen=tuple(name for at, name in enumerate(X) if at != one.feature), l0=int(one.feature == 2)
        )
        ends = reg.certify_interval(X[50:51], 0.2, threat=alone)
        assert (one.low, one.high) == (ends.low[0], ends.high[0])
    text = str(told)
    assert f"The answer is {told.value:.6g}" in text
    assert "Whatever 'job' is" in text
    assert HOSTILE not in told._repr_html_()
    assert "&lt;script&gt;" in told._repr_html_()
    left, right = told.plot()
    assert next(label.get_text() for label in right.get_yticklabels()) == "all numbers together"
    assert len(left.get_yticklabels()) == 3


def test_limits_gaps_medians_and_several_rows(fitted: Any) -> None:
    """Limits name columns, a missing number stays out, a median has a rest, and several rows come as a tuple."""
    reg, X = fitted
    within = reg.explain(X.iloc[0], threat=Threat(norm=None, limits={"age": 2}, l0=1))
    assert {one.feature for one in within.columns} == {0, 2}
    assert "within the limits" in within.headline
    several = reg.explain(X[:2])
    assert len(several) == 2
    assert "Row 1" in str(several)
    stumps = StumpRegressor(regularization=1.0).fit(X, X["age"])
    told = stumps.explain(X.iloc[20], 0.1)
    assert told.base + sum(push.size for push in told.pushes) + told.rest == pytest.approx(told.value, abs=1e-9)
    assert told.joint.low <= told.value <= told.joint.high
