"""Linked columns: what holds holds for every row that keeps to the links, and every witness keeps to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, StepFunction, Threat, WeightedVote, attack, audit, certify
from derand._core.arrays import FloatArray, IntArray
from derand.certificates import explain
from derand.certificates.labels import find_labels
from derand.model import Argmax
from derand.perturbation import resolve
from tests.certificates.trees import draw_trees

LEFT, RIGHT, LINKED, CODE = range(4)


def draw_model(rng: np.random.Generator, kind: str) -> Any:
    """A small model over two numbers, one that follows from them, and a category."""
    if kind == "vote":
        return WeightedVote([draw_model(rng, "sum") for _ in range(3)], [3, 2, 2])
    n_outputs = 3 if kind == "classes" else 1
    terms: list[Any] = [draw_trees(rng)] if kind == "trees" else []
    for column in (LEFT, RIGHT, LINKED) if kind != "trees" else ():
        edges = np.unique(rng.integers(-8, 17, rng.integers(1, 5)) / 4)
        scores = rng.integers(-6, 7, (edges.size + 1, n_outputs))
        terms.append(StepFunction(column, edges, scores if n_outputs > 1 else scores[:, 0]))
    if kind == "sum":
        terms.append(CategoryTable(CODE, [0, 1, 2], rng.integers(-3, 4, 3), other=int(rng.integers(-3, 4))))
    decision = Argmax((0, 0, 0)) if kind == "classes" else int(rng.integers(-4, 5))
    return AdditiveEnsemble(terms, decision, 4)


def draw_rows(rng: np.random.Generator, sign: str, n_rows: int = 4) -> FloatArray:
    rows = np.empty((n_rows, 4))
    rows[:, LEFT], rows[:, RIGHT] = rng.uniform(-2, 4, n_rows).round(2), rng.uniform(0.6, 4, n_rows).round(2)
    rows[:, LINKED], rows[:, CODE] = follow(rows, sign), rng.integers(0, 3, n_rows)
    return rows


def draw_threat(rng: np.random.Generator, sign: str) -> Threat:
    limits = {LEFT: ["20%", 1.0, (0.2, 1.5)][rng.integers(3)], RIGHT: ["15%", 0.5, (0.1, 2.0)][rng.integers(3)]}
    steps = {LEFT: 0.25} if rng.random() < 0.3 else {}
    return Threat(norm=None, limits=limits, steps=steps, l0=int(rng.integers(2)), linked={LINKED: (LEFT, sign, RIGHT)})


def follow(rows: FloatArray, sign: str) -> FloatArray:
    return rows[:, LEFT] / rows[:, RIGHT] if sign == "/" else rows[:, LEFT] - rows[:, RIGHT]


def label(model: Any, points: FloatArray) -> IntArray:
    return find_labels(model, points, None, rule="mean")


def list_points(model: Any, row: FloatArray, threat: Threat, sign: str) -> FloatArray:
    """Rows that keep to the link: both columns at ends, beside edges, where the linked one crosses its own, between."""
    low, high = (end[0] for end in resolve(threat, model, None).box(row[None]))
    edges: dict[int, list[float]] = {at: [] for at in (LEFT, RIGHT, LINKED)}
    for axis in (axis for member in model.members for term in member.terms for axis in term.axes):
        edges[axis.feature] += axis.edges.tolist()
    values = {}
    for at in (LEFT, RIGHT):
        near = np.array([low[at], row[at], high[at], *edges[at]])
        near = np.unique(np.concatenate([near, np.nextafter(near, -np.inf)]))
        near = near[(near >= low[at]) & (near <= high[at])]
        values[at] = np.concatenate([near, (near[1:] + near[:-1]) / 2])
    crossings: dict[int, list[float]] = {LEFT: [], RIGHT: []}
    for edge in edges[LINKED]:
        crossings[LEFT] += (edge * values[RIGHT] if sign == "/" else edge + values[RIGHT]).tolist()
        crossings[RIGHT] += (values[LEFT] / edge if sign == "/" and edge else values[LEFT] - edge).tolist()
    for at, more in crossings.items():
        beside = np.outer(more, [1, 1 + 1e-15, 1 - 1e-15, 1 + 1e-9, 1 - 1e-9]).ravel()
        values[at] = np.unique(np.concatenate([values[at], beside]))
        values[at] = values[at][(values[at] >= low[at]) & (values[at] <= high[at])]
    if threat.steps:
        stepped = row[LEFT] + np.arange(-40, 41) * threat.steps[LEFT]
        values[LEFT] = stepped[(stepped >= low[LEFT]) & (stepped <= high[LEFT])]
    codes = [row[CODE], *([-1.0, 0.0, 1.0, 2.0] if threat.l0 else [])]
    grid = np.stack([one.ravel() for one in np.meshgrid(values[LEFT], values[RIGHT], [0.0], codes)], axis=1)
    grid[:, LINKED] = follow(grid, sign)
    return grid


def check_model(rng: np.random.Generator, kind: str) -> Counter[tuple[str, bool]]:
    """Of one model's rows the verdicts, and whether a flip is on the grid of points: none is where a row holds."""
    sign = str(rng.choice(["/", "-"]))
    model, rows, threat = draw_model(rng, kind), draw_rows(rng, sign), draw_threat(rng, sign)
    found = certify(model, rows, None, rule="mean", threat=threat)
    assert found.verdict is not None
    assert found.witness is not None
    low, high = resolve(threat, model, None).box(rows)
    counts: Counter[tuple[str, bool]] = Counter()
    for at, verdict in enumerate(found.verdict.tolist()):
        if verdict == "flips":
            require_flip(model, rows[at], found.witness[at], (low[at], high[at]), threat, sign)
        flips = bool((label(model, list_points(model, rows[at], threat, sign)) != found.label[at]).any())
        assert not (verdict == "holds" and flips)
        counts[verdict, flips] += 1
    if rng.random() < 0.1:
        assert (audit(model, rows, found).verdict == "proven").all()
    return counts


def require_flip(
    model: Any, row: FloatArray, new: FloatArray, ends: tuple[FloatArray, FloatArray], threat: Threat, sign: str
) -> None:
    """A witness is a row of the threat, to the last bit, and has another label."""
    assert label(model, new[None])[0] != label(model, row[None])[0]
    assert new[LINKED] == follow(new[None], sign)[0]
    assert (ends[0][:CODE] <= new[:CODE]).all()
    assert (new[:CODE] <= ends[1][:CODE]).all()
    if threat.steps:
        assert new[LEFT] == row[LEFT] + round((new[LEFT] - row[LEFT]) / threat.steps[LEFT]) * threat.steps[LEFT]
    assert int(new[CODE] != row[CODE]) <= threat.l0


@pytest.mark.parametrize("kind", ["sum", "classes", "trees", "vote"])
@pytest.mark.parametrize("count", [pytest.param(15, id="few"), pytest.param(500, id="many", marks=pytest.mark.long)])
def test_verdicts_against_brute_force(kind: str, count: int) -> None:
    rng = np.random.default_rng(7)
    counts: Counter[tuple[str, bool]] = Counter()
    for _ in range(count):
        counts += check_model(rng, kind)
    undecided = counts["undecided", True] + counts["undecided", False]
    assert undecided <= 0.1 * counts.total()
    assert counts["undecided", True] <= 0.02 * counts.total()  # a flip that the search misses
    assert counts["flips", True] > counts.total() / 10


def make_ratio_model() -> AdditiveEnsemble:
    return AdditiveEnsemble([StepFunction(LINKED, [0.5], [0, 1])], 0, 4)


def test_a_parent_that_the_model_does_not_read_moves_what_follows() -> None:
    threat = Threat(norm=None, limits={LEFT: "10%"}, linked={LINKED: (LEFT, "/", RIGHT)})
    rows = np.array([[0.94, 2.0, 0.47, 0.0], [0.9, 2.0, 0.45, 0.0]])
    found = certify(make_ratio_model(), rows, None, rule="mean", threat=threat)
    assert found.verdict is not None
    assert found.verdict.tolist() == ["flips", "holds"]
    assert found.summary().columns[0].column == LEFT
    assert found.summary().columns[0].n_alone == 1  # what follows does not count
    attacked = attack(make_ratio_model(), rows, None, rule="mean", threat=threat)
    assert attacked.found.tolist() == [True, False]


def test_ends_are_what_doubles_give_to_the_last_bit() -> None:
    rng = np.random.default_rng(3)
    threat = Threat(norm=None, limits={LEFT: 1.0, RIGHT: "20%"}, linked={LINKED: (LEFT, "/", RIGHT, 0.005)})
    rows = draw_rows(rng, "/", 50)
    low, high = resolve(threat, make_ratio_model(), None).box(rows)
    for one, least, most in zip(rows, low, high, strict=True):
        corners = [
            float(Fraction(float(a)) / Fraction(float(b)))
            for a in (least[LEFT], most[LEFT])
            for b in (least[RIGHT], most[RIGHT])
        ]
        assert (least[LINKED], most[LINKED]) == (min(corners) - 0.005, max(corners) + 0.005)
        assert least[LINKED] <= one[LINKED] <= most[LINKED]


def test_links_of_links_follow_in_their_order() -> None:
    linked = {CODE: (LINKED, "-", LEFT), LINKED: (LEFT, "/", RIGHT)}
    model = AdditiveEnsemble([StepFunction(CODE, [-0.45], [0, 1])], 0, 4)
    rows = np.array([[1.0, 2.0, 0.5, -0.5]])
    found = certify(model, rows, None, rule="mean", threat=Threat(norm=None, limits={LEFT: 0.2}, linked=linked))
    assert found.flips is not None
    assert found.witness is not None
    assert found.flips.all()
    left, right, ratio, less = found.witness[0].tolist()
    assert ratio == left / right
    assert less == ratio - left


def test_a_missing_number_that_follows_stays_missing() -> None:
    model = AdditiveEnsemble([StepFunction(LINKED, [0.5], [0, 1], missing=1)], 0, 4)
    rows = np.array([[1.0, 2.0, np.nan, 0.0], [np.nan, 2.0, np.nan, 0.0]])
    threat = Threat(norm=None, limits={LEFT: "50%"}, linked={LINKED: (LEFT, "/", RIGHT)})
    found = certify(model, rows, None, rule="mean", threat=threat)
    assert found.verdict is not None
    assert found.verdict.tolist() == ["holds", "holds"]


def test_an_audit_refuses_a_witness_that_does_not_follow() -> None:
    threat = Threat(norm=None, limits={LEFT: "10%"}, linked={LINKED: (LEFT, "/", RIGHT)})
    rows = np.array([[0.94, 2.0, 0.47, 0.0]])
    found = certify(make_ratio_model(), rows, None, rule="mean", threat=threat)
    assert found.witness is not None
    assert audit(make_ratio_model(), rows, found).claim.tolist() == [""]
    wrong = replace(found, witness=np.array([[0.94, 2.0, 0.51, 0.0]]))
    assert audit(make_ratio_model(), rows, wrong).claim.tolist() == ["witness"]


RATIO = {LINKED: (LEFT, "/", RIGHT)}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Threat(linked={LINKED: (LEFT, "*", RIGHT)}), "ratio"),
        (lambda: Threat(linked={LINKED: (LEFT, "/")}), "must be such as"),
        (lambda: Threat(linked={LINKED: (LEFT, "/", LEFT)}), "two different columns"),
        (lambda: Threat(linked={LINKED: (LEFT, "/", LINKED)}), "lead back"),
        (lambda: Threat(linked={LINKED: (LEFT, "/", RIGHT), LEFT: (LINKED, "-", RIGHT)}), "lead back"),
        (lambda: Threat(linked={LINKED: (LEFT, "/", RIGHT, -1)}), "tolerance"),
        (lambda: Threat(linked=RATIO, limits={LINKED: 1}), "which is linked"),
        (lambda: Threat(linked=RATIO, frozen=[LINKED]), "which is linked"),
        (lambda: Threat(linked=RATIO, missing=1), "'fixed' beside `linked`"),
    ],
)
def test_links_that_make_no_sense_are_refused(make: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        make()


@pytest.mark.parametrize(
    ("row", "threat", "noise", "said"),
    [
        ([1.0, 2.0, 0.5, 0.0], Threat(norm=None, linked=RATIO), "gaussian:0.1", "without noise alone"),
        ([1.0, 2.0, 0.5, 0.0], Threat(linked=RATIO), None, "norm=None"),
        ([1.0, 2.0, 0.49, 0.0], Threat(norm=None, linked=RATIO), None, "hold in the rows themselves.*tolerance"),
        ([1.0, 2.0, 0.5, 0.0], Threat(norm=None, limits={RIGHT: 2}, linked=RATIO), None, "cannot be 0"),
        ([1.0, 2.0, 0.5, 0.0], Threat(norm=None, linked={LINKED: (LEFT, "/", 9)}), None, "from 0 to 3"),
    ],
)
def test_rows_and_requests_that_do_not_fit_are_refused(row: Any, threat: Threat, noise: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        certify(make_ratio_model(), [row], noise, rule="mean", threat=threat)


def test_a_rounded_column_needs_a_tolerance() -> None:
    threat = Threat(norm=None, limits={LEFT: "1%"}, linked={LINKED: (LEFT, "/", RIGHT, 0.00501)})
    rows = np.array([[0.7, 2.3, 0.30, 0.0], [1.13, 2.3, 0.49, 0.0]])
    found = certify(make_ratio_model(), rows, None, rule="mean", threat=threat)
    assert found.verdict is not None
    assert found.verdict.tolist() == ["holds", "undecided"]


def test_what_changes_columns_one_by_one_refuses_links() -> None:
    with pytest.raises(ValueError, match="is not for `explain`"):
        explain(make_ratio_model(), [1.0, 2.0, 0.5, 0.0], None, rule="mean", threat=Threat(norm=None, linked=RATIO))
