"""Explaining a row: what is certified lies below what was found, which flips; exact where it can be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveEnsemble, CategoryTable, StepFunction, StumpClassifier, Threat, certify
from derand.certificates import explain


def draw_model(rng: np.random.Generator) -> AdditiveEnsemble:
    terms = [StepFunction(at, np.sort(rng.normal(size=3)), rng.integers(-9, 10, 4)) for at in range(3)]
    return AdditiveEnsemble([*terms, CategoryTable(3, [0, 1, 2], [-6, 0, 6], other=0)], 0, 4)


@pytest.mark.parametrize(("rule", "noise"), [("mean", None), ("mean", "gaussian:0.3"), ("vote", "laplace:0.3")])
def test_every_change_flips_and_none_lies_inside(rule: str, noise: str | None) -> None:
    """For each column alone and for all together; one column by the mean is exact."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(10):
        model, row = draw_model(rng), np.append(rng.normal(size=3), rng.integers(0, 3))
        explanation = explain(model, row, noise, rule=rule)
        assert {change.feature for change in explanation.columns} == {0, 1, 2, 3}
        for change in (*explanation.columns, explanation.joint):
            if change.row is None:
                continue
            found += 1
            assert certify(model, change.row[None], noise, rule=rule).label[0] != explanation.label
            differs = np.flatnonzero(change.row != row)
            if change.feature is not None:
                assert differs.tolist() == [change.feature]
            if change.feature != 3:
                assert change.certified <= change.attacked
            if rule == "mean" and change.feature in (0, 1, 2):
                assert change.certified >= change.attacked * 0.99 - 0.01  # a knot's distance
        sizes = [change.attacked for change in explanation.columns]
        assert sizes == sorted(sizes)
    assert found > 15


def test_limits_and_frozen_columns_are_kept() -> None:
    """A frozen column is left out; a change stays within its limit and steps."""
    model = AdditiveEnsemble([StepFunction(0, [1.0], [0, 4]), StepFunction(1, [1.0], [0, 4])], 5, 2)
    free = explain(model, [2.5, 2.5], None, rule="mean")
    assert [round(change.attacked, 6) for change in free.columns] == [1.5, 1.5]
    held = explain(model, [2.5, 2.5], None, rule="mean", threat=Threat(frozen=[0], limits={1: 1.0}))
    assert [(change.feature, change.certified, change.attacked) for change in held.columns] == [(1, np.inf, np.inf)]
    only = explain(model, [2.5, 2.5], None, rule="mean", threat=Threat(norm=None, limits={1: 2.0}))
    assert [change.feature for change in only.columns] == [1]
    assert only.joint.row is not None
    assert only.joint.row[0] == 2.5
    stepped = explain(model, [2.5, 2.5], None, rule="mean", threat=Threat(steps={0: 1.0}))
    assert {change.feature: round(change.attacked, 6) for change in stepped.columns} == {0: 2.0, 1: 1.5}


def test_classifiers_explain_rows_of_a_frame() -> None:
    """Names in the threat, labels of the classes, one row at a time."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 300), "job": rng.choice(["cook", "clerk"], 300)})
    y = np.where(frame.age + 9 * (frame.job == "cook") + rng.normal(0, 3, 300) > 44, "yes", "no")
    clf = StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean").fit(frame, y)
    found = clf.explain(frame.iloc[[0]], threat=Threat(frozen=["job"]))
    assert found.label == clf.predict(frame.iloc[[0]])[0]
    assert [change.feature for change in found.columns] == [0]
    assert clf.predict(clf.decode_rows(found.columns[0].row[None]))[0] != found.label  # type: ignore[index]
    assert [one.label for one in clf.explain(frame.iloc[:2])] == clf.predict(frame.iloc[:2]).tolist()
    with pytest.raises(ValueError, match="`row` must hold the 2 numbers of one row"):
        explain(clf.ensemble_, [1.0], "gaussian:1")
