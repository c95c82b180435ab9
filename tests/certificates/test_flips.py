"""Flips in short: what is counted of witnesses is what pandas counts, and witnesses prefer what training saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from derand import AdditiveClassifier, AdditiveEnsemble, CategoryTable, StepFunction, Threat, certify
from derand.certificates import Verifier, refine_changes
from derand.certificates.results.flips import DIRECTIONS, code_changes
from derand.perturbation import resolve

N = 20_000
RNG = np.random.default_rng(3)
X = pd.DataFrame(
    {
        "income": RNG.normal(50_000, 12_000, N).round(2),
        "age": RNG.integers(20, 70, N),
        "debt": np.where(RNG.random(N) < 0.1, np.nan, RNG.gamma(2, 4_000, N).round(2)),
        "job": RNG.choice(["clerk", "cook", "self", "nurse"], N, p=[0.5, 0.3, 0.1, 0.1]),
    }
)
Y = np.where(
    (X["income"] - 50_000) / 12_000
    - (X["debt"].fillna(9_000) - 8_000) / 6_000
    + (X["job"] == "nurse")
    - (X["job"] == "self")
    + RNG.normal(0, 0.7, N)
    > 0,
    "approved",
    "refused",
)
THREAT = Threat(norm=None, limits={"income": "4%", "debt": "4%", "age": 2}, l0=1, missing=1)


@pytest.fixture(scope="module")
def classifier() -> AdditiveClassifier:
    clf = AdditiveClassifier(noise="none", rule="mean", radius=0.05, norm=2, regularization=1.0)
    return clf.fit(X.iloc[:2_000], Y[:2_000])


def list_directions(clf: Any, witness: np.ndarray) -> pd.DataFrame:
    """For each row and column how it changes, by pandas alone."""
    after, found = clf.decode_rows(witness), pd.DataFrame("", index=X.index, columns=X.columns)
    for name in ("income", "age", "debt"):
        before, now = X[name], after[name]
        found[name] = np.select(
            [before.isna() & now.notna(), before.notna() & now.isna(), now > before, now < before],
            ["appears", "goes missing", "up", "down"],
            "",
        )
    known = after["job"].isin(["clerk", "cook", "self", "nurse"])
    found["job"] = np.where(after["job"] == X["job"], "", np.where(known, "to a seen value", "to a new value"))
    return found


@pytest.mark.parametrize("with_truth", [False, True])
def test_counts_are_those_of_pandas(classifier: AdditiveClassifier, with_truth: bool) -> None:
    """Twenty thousand rows: every figure of every line, recomputed from the witnesses."""
    c = classifier.certify(X, threat=THREAT)
    assert c.witness is not None
    summary = c.summary(Y if with_truth else None)
    moved = list_directions(classifier, c.witness)
    is_moved = moved != ""
    assert (is_moved.any(axis=1) == c.flips).all()
    after = classifier.predict(classifier.decode_rows(c.witness))
    frame = pd.DataFrame({"label": c.label, "true": Y if with_truth else None, "flipped": after})
    assert (frame["flipped"] == c.flipped).all()
    lines = summary.columns
    assert len(lines) > 8
    for one in lines:
        asked = (frame["label"] == one.label) & (moved[one.column] == one.direction)
        same = frame["label"] == one.label
        if with_truth:
            asked, same = asked & (one.true == Y), same & (one.true == Y)
        assert one.n_rows == same.sum()
        asked &= frame["flipped"] == one.flipped
        alone = is_moved.sum(axis=1) == 1
        assert (one.n_alone, one.n_together) == ((asked & alone).sum(), (asked & ~alone).sum())
        beside = is_moved[asked].drop(columns=one.column).sum()
        assert one.others == beside[beside > 0].to_dict()
    answers = {(one.label, one.true): one for one in summary.answers}
    for found in answers.values():
        rows = frame.index[c.flips & (frame["label"] == found.label) & (not with_truth or found.true == Y)]
        new = (moved.loc[rows] == "to a new value").any(axis=1).sum()
        assert (found.n_flips, found.n_alone, found.n_new) == (
            len(rows),
            (is_moved.loc[rows].sum(axis=1) == 1).sum(),
            new,
        )
    assert summary.n_flips == c.flips.sum() == sum(one.n_flips for one in answers.values())
    table = summary.to_pandas()
    assert (table["n_alone"].tolist(), "true" in table) == ([one.n_alone for one in lines], with_truth)


def test_parts_add_up_and_results_are_shown(classifier: AdditiveClassifier) -> None:
    part = X.iloc[:600]
    c = classifier.certify(part, threat=THREAT)
    whole, sum_of_parts = c.summary(Y[:600]), c[:250].summary(Y[:250]) + c[250:].summary(Y[250:600])
    assert sum_of_parts.to_dict() == whole.to_dict()
    assert whole.merge_truth().to_dict() == c.summary().to_dict()
    flips = (c.label == "approved") & c.flips
    told = f"Of {(c.label == 'approved').sum()} rows with the answer 'approved', {flips.sum()} can become 'refused'"
    assert any(sentence.startswith(told) for sentence in c.summary().list_sentences())
    assert c.summary().list_sentences({"approved": "yes"})[0].count("'yes'") == 1
    assert str(flips.sum()) in c.summary()._repr_html_()
    assert repr(whole) == f"<FlipSummary: {c.flips.sum()} of 600 rows flip, by {len(whole.columns)} kinds of change>"
    with pytest.raises(ValueError, match=r"certify with `threat=Threat\(norm=None"):
        classifier.certify(part).summary()
    with pytest.raises(ValueError, match=r"`y` must hold one label per row, 600 in all"):
        c.summary(Y)
    assert classifier.certify(pl.from_pandas(part), threat=THREAT).summary().to_dict() == c.summary().to_dict()


def test_witnesses_prefer_categories_that_training_saw() -> None:
    """A new value would flip as well, and by more: it is taken where no other flips."""
    table = CategoryTable(1, [0, 1, 2], [3, 0, -2], -9)
    model = AdditiveEnsemble([StepFunction(0, [0.5], [-1, 1]), table], 0, 2)
    rows = [[0.0, 0.0], [9.0, 0.0], [0.0, 1.0]]
    threat = Threat(norm=None, limits={0: 0.1}, l0=1)
    c = certify(model, rows, None, rule="mean", threat=threat)
    assert c.label.tolist() == [1, 1, 0]
    assert c.witness is not None
    assert c.witness[:, 1].tolist() == [2.0, 2.0, 0.0]
    assert [one.direction for one in c.summary().columns] == ["to a seen value", "to a seen value"]
    rare = AdditiveEnsemble([StepFunction(0, [0.5], [-1, 1]), CategoryTable(1, [0, 1], [3, 2], -9)], 0, 2)
    c = certify(rare, rows[:1], None, rule="mean", threat=threat)
    assert [(one.direction, one.n_alone) for one in c.summary().columns] == [("to a new value", 1)]
    assert c.summary().answers[0].n_new == 1
    seen = certify(rare, rows[:1], None, rule="mean", threat=Threat(norm=None, limits={0: 0.1}, l0=1, unseen=False))
    assert (seen.verdict, seen.summary().n_flips, seen.summary().unseen) == (["holds"], 0, False)


def test_each_kind_of_change_has_a_direction() -> None:
    before = np.array([[1.0, 1.0, 1.0, np.nan, np.nan, 0.0, np.nan, 0.0, -1.0]])
    after = np.array([[1.0, 0.0, np.nan, 2.0, np.nan, 1.0, 1.0, np.nan, 0.0]])
    codes = code_changes(before, after, [5, 6, 7, 8])[0]
    assert [DIRECTIONS[code] for code in codes] == [
        "",
        "down",
        "goes missing",
        "appears",
        "",
        *["to a seen value"] * 2,
        "to a new value",
        "to a seen value",
    ]


def test_witnesses_are_written_as_their_column_is(classifier: AdditiveClassifier) -> None:
    """Whatever is rounded flips and lies within the limits; numbers move no farther than before."""
    part = X.iloc[:1_500]
    c = classifier.certify(part, threat=THREAT)
    assert c.witness is not None
    at = np.flatnonzero(c.flips)
    own = classifier.encoding_.encode(part)[at]
    model = classifier.ensemble_
    codes = np.searchsorted(c.classes, c.label[at])
    verifier = Verifier(model, None, "mean", resolve(c.threat, model, None), own, codes, with_error=True)
    decimals = {0: 2, 1: 0, 2: 2}
    refined = refine_changes(verifier, c.witness[at], decimals=decimals)
    every = np.arange(at.size)
    assert verifier.flips(refined, every).all()
    assert verifier.allows(refined, every).all()
    assert (np.abs(refined - own)[:, :3] <= np.abs(c.witness[at] - own)[:, :3] + 1).sum() > 0.9 * at.size
    moved = refined != own
    for column, places in decimals.items():
        values = refined[:, column][moved[:, column] & ~np.isnan(refined[:, column])]
        assert values.size
        assert (np.round(values, places) == values).mean() > 0.99
