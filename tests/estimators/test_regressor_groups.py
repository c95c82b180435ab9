"""Regressors whose columns interact: what groups explain, what holds of their intervals, files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveRegressor, Report, Threat, load, save
from tests.storage.models import as_bytes, drop_field, write_changed

NAMES = ["width", "age", "height", "depth"]


def draw_areas(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A product of two columns, of which neither says anything by itself."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 4))
    return pd.DataFrame(X, columns=NAMES), 20 + 10 * X[:, 0] * X[:, 2] + 0.3 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def joint() -> AdditiveRegressor:
    return AdditiveRegressor(radius=0.1, regularization=1.0, groups=[["width", "height"]]).fit(*draw_areas(500, 0))


@pytest.mark.parametrize("groups", [[["width", "height"]], "auto"])
def test_what_single_columns_cannot_tell_groups_do(groups: Any) -> None:
    """On rows that were not seen, with and without a radius; columns are told by name."""
    train, test = draw_areas(500, 0), draw_areas(300, 1)
    assert AdditiveRegressor(radius=0.0).fit(*train).score(*test) < 0.1
    for radius in (0.0, 0.1):
        reg = AdditiveRegressor(radius=radius, groups=groups).fit(*train)
        assert reg.groups_ == (("width", "height"),)
        assert reg.score(*test) > 0.8
        assert reg.feature_importances_[[0, 2]].sum() > 0.8


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("rule", ["mean", "vote"])
def test_no_attack_leaves_an_interval_and_it_is_proven_twice(rule: str, norm: float) -> None:
    """In every norm that is trained for, by both rules; trained for the radius, intervals are narrower."""
    X, y = draw_areas(300, 0)
    options: dict[str, Any] = {"norm": norm, "rule": rule, "noise": "gaussian:0.1", "groups": [["width", "height"]]}
    plain, robust = (AdditiveRegressor(radius=r, regularization=1.0, **options).fit(X, y) for r in (0.0, 0.3))
    rows = X[:3]
    found = robust.certify_interval(rows, 0.3)
    robust.attack_interval(rows, 0.3).require_inside(found)
    assert robust.audit(rows, found, rows=2).passed
    assert found.width.mean() < plain.certify_interval(rows, 0.3).width.mean()


def test_one_column_per_group_is_the_model_without_groups() -> None:
    X, y = draw_areas(150, 0)
    plain, grouped = (
        AdditiveRegressor(radius=0.1, regularization=0.3, groups=groups).fit(X, y + 3 * X["age"])
        for groups in (None, [["width"], ["age"], [2], [3]])
    )
    assert as_bytes(plain.ensemble_) == as_bytes(grouped.ensemble_)
    assert plain.groups_ == grouped.groups_ == ()


def test_a_file_holds_groups_or_none(joint: AdditiveRegressor, tmp_path: Path) -> None:
    """Both come back; a file that lacks a parameter is refused."""
    X, y = draw_areas(100, 0)
    save(joint, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.groups, again.groups_) == ([["width", "height"]], (("width", "height"),))
    assert again.predict(X).tolist() == joint.predict(X).tolist()
    plain = AdditiveRegressor(radius=0.1, regularization=1.0).fit(X, y)
    save(plain, tmp_path / "plain.json")
    plain_again = load(tmp_path / "plain.json")
    assert (plain_again.groups, plain_again.groups_) == (None, ())
    write_changed(tmp_path / "bad.json", plain, drop_field("model", "parameters", "rule"))
    with pytest.raises(ValueError, match="rule"):
        load(tmp_path / "bad.json")


def test_a_report_and_limits(joint: AdditiveRegressor) -> None:
    """What comes after training takes models with groups."""
    X, y = draw_areas(6, 2)
    assert "width" in Report(joint, X, y, radius=0.1).to_markdown()
    limits = Threat(norm=None, limits={"width": 0.2})
    within = joint.certify_interval(X, None, threat=limits)
    moved = joint.predict(X.assign(width=X["width"] - 0.2))
    assert ((within.low <= moved) & (moved <= within.high)).all()
    assert (moved != within.value).any()


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([["width", "width"]], "each column once, got 'width' twice"),
        ([["width", "hight"]], "'hight', which does not exist"),
        ([["width", "place"]], "numerical columns, got 'place', which is categorical"),
        ([["width", "age"]], "without missing values, got 'age'"),
        ("pairs", "`groups` must be None, 'auto', 'patches:3'"),
    ],
)
def test_bad_groups_are_refused(groups: Any, words: str) -> None:
    X, y = draw_areas(30, 0)
    X["place"] = ["town", "land"] * 15
    X.loc[3, "age"] = np.nan
    reg = AdditiveRegressor(groups=groups, regularization=1.0)
    with pytest.raises(ValueError, match=words):
        reg.fit(X, y)
    assert not hasattr(reg, "groups_")


def test_automatic_groups_say_which_columns_they_leave_out() -> None:
    X, y = draw_areas(200, 0)
    X.loc[3, "height"] = np.nan
    with pytest.warns(UserWarning, match="without missing values, and so not at 'height': fill the missing"):
        reg = AdditiveRegressor(radius=0.0, groups="auto", regularization=1.0).fit(X, y)
    assert reg.groups_ == ()
