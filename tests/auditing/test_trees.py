"""Claims about models with trees: what is true by trying every point is proven, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, Certificates, Intervals, Threat, ToleranceRadii, WeightedVote, audit
from derand.auditing import _row_claims
from derand.auditing.trees import proofs
from derand.model import TreeTerm, Value
from tests.auditing.forests import (
    DrawnForest,
    Point,
    answer,
    draw_forest,
    keeps,
    leaves,
    list_points,
    measure_radius,
    score_exactly,
)

MOST_POINTS = 2000
N_MODELS = 80


def claim(drawn: DrawnForest, label: int, radius: float, **claims: Any) -> Certificates:
    """A certificate of one row, as files hold it."""
    nothing = np.full(1, math.nan)
    proof = np.array([3 if radius > 0 else 0], dtype=np.uint8)
    classes = np.arange(drawn.model.n_classes)
    return Certificates(
        np.array([label]), nothing, nothing, np.array([radius]), drawn.threat, classes, "mean", _proof=proof, **claims
    )


def judge(drawn: DrawnForest, claimed: Certificates | Intervals | ToleranceRadii) -> str:
    """Which claim is not proven; empty where all are."""
    return str(audit(drawn.model, drawn.row[None], claimed).claim[0])


def draw_known(kind: str, first: int, count: int) -> list[tuple[int, DrawnForest, list[Point]]]:
    """Models of which every point is known, with their seeds."""
    every = ((seed, draw_forest(seed, kind)) for seed in range(first, first + count))
    found = [(seed, drawn, list_points(drawn, MOST_POINTS)) for seed, drawn in every]
    return [one for one in found if one[2]]


def label_of(drawn: DrawnForest) -> int:
    return answer(drawn.model, score_exactly(drawn.model, tuple(drawn.row.tolist()))[0])


def check_radii(kind: str, first: int, count: int) -> Counter[tuple[bool, float | None]]:
    seen: Counter[tuple[bool, float | None]] = Counter()
    for seed, drawn, points in draw_known(kind, first, count):
        label, norm = label_of(drawn), drawn.threat.norm
        true, false = measure_radius(points, norm, [keeps(drawn.model, point, label) for point in points])
        assert judge(drawn, claim(drawn, label, true)) == "", (seed, true, drawn.threat)
        seen[true > 0, norm] += 1
        if false > 0:  # the next double, or one column more; NaN where there is none
            assert judge(drawn, claim(drawn, label, false)) == "radius", (seed, false, drawn.threat)
        wrong = (label + 1) % drawn.model.n_classes
        assert judge(drawn, claim(drawn, wrong, 0.0)) == "label"
        assert judge(drawn, claim(drawn, wrong, true)) in ("label", "radius") or not true
    return seen


@pytest.mark.parametrize("kind", ["two", "pair", "classes"])
def test_the_largest_true_radius_is_proven_and_the_next_double_is_not(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers, categories, unseen and missing ones, steps, budgets and all norms, alone and together."""
    monkeypatch.setattr(_row_claims, "_HALVINGS", 1)  # which smaller radius holds is asked elsewhere
    seen = check_radii(kind, 0, N_MODELS)
    assert {norm for is_certified, norm in seen if is_certified} == {None, 0, 1, 2, math.inf}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["two", "classes"])
def test_the_same_of_many_models(kind: str) -> None:
    """With smaller radii instead."""
    check_radii(kind, 10**6, 600)


def test_flips_are_proven_by_their_witness() -> None:
    """It must change the answer by more than the model that is meant may be off."""
    seen: Counter[str] = Counter()
    for _, drawn, points in draw_known("two", 2000, 100):
        if drawn.threat.norm is not None:
            continue
        label = label_of(drawn)
        for point in points[:: max(1, len(points) // 20)]:
            claimed = claim(drawn, label, 0.0, flips=np.ones(1, dtype=bool), witness=np.array([point.row]))
            expected = "" if leaves(drawn.model, point, label) else "witness"
            assert judge(drawn, claimed) == expected, (drawn, point)
            seen[expected] += 1
    assert min(seen["witness"], seen[""]) > 20


def test_the_distance_of_a_flip_is_proven() -> None:
    """The witness lies no farther; a double less is refused."""
    n_refused = 0
    for seed, drawn, points in draw_known("classes", 3000, 60):
        label, norm = label_of(drawn), drawn.threat.norm
        flips = [point for point in points if leaves(drawn.model, point, label)]
        if norm is None or not flips:
            continue
        nearest = min(flips, key=lambda point: point.distance)
        inside, outside = measure_radius([nearest], norm, [False])
        is_rounded = norm == 0 or Fraction(inside) ** _power(norm) != nearest.distance
        distance = outside if is_rounded else inside
        told = {"witness": np.array([nearest.row]), "is_exact": np.zeros(1, dtype=bool)}
        assert judge(drawn, claim(drawn, label, 0.0, attacked=np.array([distance]), **told)) == "", seed
        if distance > 0:
            less = np.array([distance - 1 if norm == 0 else math.nextafter(distance, 0)])
            assert judge(drawn, claim(drawn, label, 0.0, attacked=less, **told)) == "attacked", seed
            n_refused += 1
    assert n_refused > 10


def _power(norm: float) -> int:
    return 2 if norm == 2 else 1


NUMBERS = TreeTerm(
    roots=[0],
    columns=[0, 1, 2],
    edges=[1.0, 0.0, 0.5],
    left=[1, -1, -3],
    right=[2, -2, -4],
    scores=[-3, 4, 5, -6],
    missing_left=[True, False, False],
    category_splits=[1],
    left_codes=[[0]],
    categories=[(1, 2)],
    refused=[2],
)
MODEL = AdditiveEnsemble([NUMBERS], 0, n_features=3)
"""`x0 < 1`: class 1 unless the category is 0. Else class 1 while `x2 < 0.5`."""
ROW = np.array([0.0, 1.0, 0.0])
WITHIN = Threat(norm=None, limits={0: 1.5, 2: 0.5}, l0=1)


@pytest.mark.parametrize(
    ("threat", "witness"),
    [
        (replace(WITHIN, limits={0: 1.0, 2: 0.25}, l0=0), [1.0, 1.0, 0.5]),
        (replace(WITHIN, limits={0: math.nextafter(1.0, 0), 2: 0.5}), [1.0, 1.0, 0.5]),
        (replace(WITHIN, steps={0: 0.3}), [1.0, 1.0, 0.5]),
        (replace(WITHIN, domain={0: (-1.0, 0.75)}), [1.0, 1.0, 0.5]),
        (replace(WITHIN, l0=0), [0.0, 0.0, 0.0]),
        (replace(WITHIN, may_become={1: (-1.0,)}), [0.0, 0.0, 0.0]),
        (replace(WITHIN, frozen=(1,)), [0.0, 0.0, 0.0]),
        (WITHIN, [0.0, 0.5, 0.0]),
        (WITHIN, [0.0, 1.0, 0.0]),
    ],
)
def test_a_witness_that_the_threat_does_not_allow_is_refused(threat: Threat, witness: list[float]) -> None:
    """Beyond an end by one double, between steps, outside the domain or the budget; or one that flips nothing."""
    drawn = DrawnForest(MODEL, ROW, threat)
    claimed = claim(drawn, 1, 0.0, flips=np.ones(1, dtype=bool), witness=np.array([witness]))
    assert judge(drawn, claimed) == "witness"
    allowed = DrawnForest(MODEL, ROW, WITHIN)
    flip = claim(allowed, 1, 0.0, flips=np.ones(1, dtype=bool), witness=np.array([[1.0, 1.0, 0.5]]))
    assert judge(allowed, flip) == ""
    assert judge(allowed, replace(flip, witness=None)) == "witness"


def test_a_flip_called_holds_is_refused() -> None:
    """And so is a claim about a model whose edge is one double farther away."""
    near = DrawnForest(MODEL, ROW, Threat(norm=None, limits={0: 1.0, 2: math.nextafter(0.5, 0)}))
    assert judge(near, claim(near, 1, math.inf)) == ""
    wide = replace_threat(near, limits={0: 1.0, 2: 0.5})
    assert judge(wide, claim(wide, 1, math.inf)) == "radius"
    moved = TreeTerm(**{**NUMBERS.describe(), "edges": [1.0, 0.0, math.nextafter(0.5, 1)]})
    other = replace(wide, model=AdditiveEnsemble([moved], 0, n_features=3))
    assert judge(other, claim(other, 1, math.inf)) == ""


def test_leaves_count_with_what_they_may_be_off_by() -> None:
    """Of every leaf that is reached, not of those of the row alone; exactly, and on both sides."""
    wide = {**NUMBERS.describe(), "rounding": 0.5}
    drawn = DrawnForest(MODEL, ROW, Threat(norm=None, limits={0: 0.5}))
    for magnitude, error, claims in ((7.0, 0.0, ""), (8.0, 0.0, "radius"), (7.0, 0.5, "radius")):
        term = TreeTerm(**{**wide, "magnitudes": [[1.0], [magnitude], [1.0], [1.0]]})
        one = replace(drawn, model=AdditiveEnsemble([term], 0, 3, score_error=error))
        assert judge(one, claim(one, 1, math.inf)) == claims
    for magnitude, claims in ((6.0, ""), (6.5, "radius")):  # class 0 holds at the threshold itself
        term = TreeTerm(**{**wide, "magnitudes": [[magnitude], [0.0], [0.0], [0.0]]})
        one = DrawnForest(AdditiveEnsemble([term], 0, 3), np.zeros(3), Threat(norm=None, limits={0: 0.5}))
        assert judge(one, claim(one, 0, math.inf)) == claims


def replace_threat(drawn: DrawnForest, **changed: Any) -> DrawnForest:
    return replace(drawn, threat=replace(drawn.threat, **changed))


def test_ends_of_intervals_and_tolerances_are_proven() -> None:
    """What the least and the largest score within a radius come to, and nothing narrower."""
    n_refused = 0
    for seed, drawn, points in draw_known("number", 4000, 60):
        model, norm = drawn.model, drawn.threat.norm
        radius = None if norm is None else 1.0 if norm == 0 else 0.75
        power = 1 if norm is None else _power(norm)
        inside = [
            point
            for point in points
            if radius is None or point.distance < Fraction(radius) ** power or (norm == 0 and point.distance <= 1)
        ]
        own = score_exactly(model, tuple(drawn.row.tolist()))[0][0]
        value = (own + model.offset) / model.levels
        least = min(point.scores[0] - point.errors[0] for point in inside) + model.offset
        most = max(point.scores[0] + point.errors[0] for point in inside) + model.offset
        low, high = (round_outward(end / model.levels, up=up) for end, up in ((least, False), (most, True)))

        def judge_ends(low: float, high: float, drawn: DrawnForest = drawn, value: float = value) -> str:
            ends = np.array([low]), np.array([high])
            return judge(drawn, Intervals(np.array([value]), *ends, radius, drawn.threat, "mean"))  # noqa: B023

        assert judge_ends(low, high) == "", seed
        assert judge_ends(low, high, value=math.nextafter(value, math.inf)) == "value"
        if low < value:
            assert judge_ends(math.nextafter(low, math.inf), high) == "low", seed
            n_refused += 1
        if high > value:
            assert judge_ends(low, math.nextafter(high, -math.inf)) == "high", seed
        tolerance = float(max(most - least, Fraction(1))) / 2 / model.levels
        room = Fraction(tolerance) * model.levels
        is_kept = [abs(point.scores[0] - own) + point.errors[0] <= room for point in points]
        true, false = measure_radius(points, norm, is_kept)
        for claimed, expected in ((true, ""), (false, "radius")):
            if claimed >= 0 and not (expected and claimed == 0):
                found = np.array([value]), tolerance, np.array([claimed])
                one = ToleranceRadii(*found, drawn.threat, "mean", None, np.zeros(1, dtype=np.uint8))
                assert judge(drawn, one) == expected, (seed, claimed)
    assert n_refused > 10


def round_outward(end: Fraction, *, up: bool) -> float:
    """The nearest double that is not inside."""
    found = float(end)
    while Fraction(found) < end if up else Fraction(found) > end:
        found = math.nextafter(found, math.inf if up else -math.inf)
    return found


def test_a_radius_of_0_moves_no_number() -> None:
    """Categories may change all the same."""
    model = AdditiveEnsemble([NUMBERS], Value(0), n_features=3, levels=1)
    for l0, low in ((0, 4.0), (1, -3.0)):
        drawn = DrawnForest(model, ROW, Threat(norm=2, l0=l0))
        for end, expected in ((low, ""), (math.nextafter(low, 9), "low" if l0 else "value")):
            ends = np.array([end]), np.array([4.0])
            assert judge(drawn, Intervals(np.array([4.0]), *ends, 0.0, drawn.threat, "mean")) == expected


def test_what_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that may be true is no false one."""
    for seed, drawn, points in draw_known("two", 0, 40):
        label = label_of(drawn)
        true, _ = measure_radius(points, drawn.threat.norm, [keeps(drawn.model, one, label) for one in points])
        claimed = claim(drawn, label, true)
        monkeypatch.setattr(proofs, "MOST_REGIONS", 1)
        found = audit(drawn.model, drawn.row[None], claimed)
        if found.verdict[0] == "proven":
            continue
        assert found.verdict.tolist() == ["not proven within 1 regions"], seed
        assert found.claim.tolist() == ["radius"]
        assert not found.passed
        monkeypatch.undo()
        assert audit(drawn.model, drawn.row[None], claimed).passed
        return
    raise AssertionError("every claim was proven in one region")


def test_edges_below_which_there_is_no_number() -> None:
    """Importers write them where a split parts missing values from all others."""
    lowest = -float(np.finfo(np.float64).max)
    term = TreeTerm([0], [0], [lowest], [-1], [-2], [-5, 5], [True])
    model = AdditiveEnsemble([term], 0, n_features=1)
    for norm in (None, 0, 2, math.inf):
        drawn = DrawnForest(model, np.zeros(1), Threat(norm=norm, limits={0: math.inf}))
        assert judge(drawn, claim(drawn, 1, math.inf)) == ""
        gap = replace_threat(drawn, missing=1)
        assert judge(gap, claim(gap, 1, math.inf)) == "radius"
    gone = DrawnForest(model, np.full(1, math.nan), Threat(norm=None, missing=1))
    assert judge(gone, claim(gone, 0, math.inf)) == "radius"
    moved = replace(gone, model=AdditiveEnsemble([term], 5, n_features=1))
    assert judge(moved, claim(moved, 0, math.inf)) == ""


def test_what_is_not_looked_at_is_named() -> None:
    """Ties, and whether a radius is the largest one."""
    drawn = DrawnForest(MODEL, ROW, Threat(norm=2))
    told = {"attacked": np.full(1, math.inf), "is_exact": np.ones(1, dtype=bool), "is_tie": np.zeros(1, dtype=bool)}
    found = audit(MODEL, ROW[None], claim(drawn, 1, 0.5, **told))
    assert found.passed
    assert found.checked == ("label", "radius", "attacked")
    assert {"is_exact", "is_tie", "proof", "failure"} <= set(found.not_checked)


def test_claims_that_trees_cannot_have_are_refused() -> None:
    """Noise, and votes of such models."""
    drawn = DrawnForest(MODEL, ROW, Threat(norm=2))
    with pytest.raises(ValueError, match="without noise and by the rule 'mean'"):
        judge(drawn, replace(claim(drawn, 1, 0.5), rule="vote"))
    vote = WeightedVote([MODEL], [1.0])
    with pytest.raises(ValueError, match="no certificates that could be audited"):
        audit(vote, ROW[None], claim(drawn, 1, 0.5))
