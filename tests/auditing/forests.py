"""Small random models with trees, and what is true of them by trying every point."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, CategoryTable, GridTerm, StepFunction, Threat
from derand.model import Argmax, TreeTerm, Value

N_CODES = 3


@dataclass(frozen=True)
class DrawnForest:
    """What is claimed about: a model, a row and a threat."""

    model: AdditiveEnsemble
    row: np.ndarray
    threat: Threat


def draw_trees(
    rng: np.random.Generator, numbers: list[int], codes: list[int], refused: list[int], n_outputs: int
) -> TreeTerm:
    """A few trees over some columns."""
    roots: list[int] = []
    splits: list[list[Any]] = []
    leaves: list[list[int]] = []
    named: list[int] = []
    left_codes: list[list[int]] = []

    def grow(depth: int) -> int:
        if depth and (depth > 3 or rng.random() < 0.25):
            leaves.append(rng.integers(-9, 10, n_outputs).tolist())
            return -len(leaves)
        at, column = len(splits), int(rng.choice(numbers + codes))
        splits.append([column, float(rng.integers(-3, 4)) / 2, bool(rng.random() < 0.5)])
        if column in codes:
            named.append(at)
            left_codes.append([code for code in range(-1, N_CODES) if rng.random() < 0.5])
        splits[at] += [grow(depth + 1), grow(depth + 1)]
        return at

    for _ in range(int(rng.integers(1, 6))):
        roots.append(len(splits))
        grow(0)
    asked = {split[0] for split in splits}
    columns, edges, missing_left, left, right = zip(*splits, strict=True)
    rounding = float(rng.choice([0, 0, 1 / 16, 0.01]))
    magnitudes = np.abs(leaves) + rng.integers(0, 2, np.shape(leaves)) if rounding else ()
    return TreeTerm(
        roots,
        columns,
        edges,
        left,
        right,
        leaves,
        missing_left,
        named,
        left_codes,
        [(code, N_CODES) for code in codes if code in asked],
        [one for one in refused if one in asked],
        rounding,
        magnitudes,
    )


def draw_model(rng: np.random.Generator, kind: str) -> tuple[AdditiveEnsemble, list[int], list[int], list[int]]:
    """A model, its numbers, its categories and the numbers that must not be missing."""
    n_outputs = {"pair": 2, "classes": 3}.get(kind, 1)
    numbers, codes = list(range(int(rng.integers(1, 4)))), []
    n_features = len(numbers)
    for _ in range(int(rng.integers(0, 3))):
        codes.append(n_features)
        n_features += 1
    refused = [one for one in numbers if rng.random() < 0.3]
    terms: list[Any] = [draw_trees(rng, numbers, codes, refused, n_outputs)]
    if rng.random() < 0.3:
        scores = rng.integers(-9, 10, (3, n_outputs))
        missing = tuple(rng.integers(-9, 10, n_outputs).tolist())
        terms.append(StepFunction(n_features, [-0.5, 1.0], scores, missing if n_outputs > 1 else missing[0]))
        numbers.append(n_features)
        n_features += 1
    elif rng.random() < 0.3:
        other = tuple(rng.integers(-9, 10, n_outputs).tolist())
        scores = rng.integers(-9, 10, (2, n_outputs))
        terms.append(CategoryTable(n_features, [0, 2], scores, other if n_outputs > 1 else other[0]))
        codes.append(n_features)
        n_features += 1
    elif rng.random() < 0.3:
        scores = rng.integers(-9, 10, (3, 2, n_outputs))
        columns = (n_features, n_features + 1)
        terms.append(GridTerm(columns, ([0.5], [0.0]), scores, missing=(True, False)))
        numbers += columns
        refused.append(columns[1])
        n_features += 2
    error = float(rng.choice([0, 0, 0.5, 1.25]))
    decision: Any = int(rng.integers(-5, 6))
    if n_outputs > 1:
        decision = Argmax(rng.integers(-4, 5, n_outputs).tolist())
    elif kind == "number":
        decision = Value(int(rng.integers(-5, 6)))
    return AdditiveEnsemble(terms, decision, n_features, levels=8, score_error=error), numbers, codes, refused


def draw_forest(seed: int, kind: str = "two") -> DrawnForest:
    """A model, a row, and what may change of it.

    The model tells two classes apart, two with an output each ("pair"), or three ("classes"), or answers a number
    ("number").
    """
    rng = np.random.default_rng((seed, len(kind)))
    model, numbers, codes, refused = draw_model(rng, kind)
    row = np.zeros(model.n_features)
    for at in numbers:
        row[at] = rng.choice([rng.integers(-4, 5) / 2, np.nextafter(0.5, -1), round(float(rng.normal()), 2)])
        if at not in refused and rng.random() < 0.15:
            row[at] = math.nan
    for at in codes:
        row[at] = rng.choice([*range(N_CODES), -1.0, math.nan])
    norm = [None, 0, 1, 2, math.inf][rng.integers(5)]
    asked: dict[str, Any] = {"l0": int(rng.integers(0, 3)), "unseen": bool(rng.random() < 0.5)}
    asked["missing"] = int(rng.integers(0, 3)) if rng.random() < 0.5 and model.missing_features else 0
    if norm is None or rng.random() < 0.4:
        draw_limit = [lambda: (float(rng.uniform(0, 1)), float(rng.uniform(0, 2))), lambda: "50%", lambda: 0.75]
        asked["limits"] = {at: draw_limit[rng.integers(3)]() for at in numbers if rng.random() < 0.8}
    if rng.random() < 0.3:
        asked["steps"] = {at: float(rng.choice([0.1, 0.5, 1, 0.3])) for at in numbers if rng.random() < 0.5}
    if rng.random() < 0.3:
        named = {*asked.get("limits", {}), *asked.get("steps", {})}
        asked["frozen"] = tuple(at for at in numbers + codes if rng.random() < 0.3 and at not in named)
    if rng.random() < 0.3:
        asked["units"] = tuple(rng.uniform(0.3, 3, model.n_features).tolist())
    if codes and rng.random() < 0.3 and codes[0] not in asked.get("frozen", ()):
        asked["may_become"] = {codes[0]: (1.0, math.nan)[: int(rng.integers(1, 3))]}
    return DrawnForest(model, row, Threat(norm=norm, **asked))


@dataclass(frozen=True)
class Point:
    """A row that the threat allows: its distance (to the power of the norm; for norm 0 a count), and its scores with
    what each may be off by."""

    row: tuple[float, ...]
    distance: Fraction
    scores: list[int]
    errors: list[Fraction]


def list_points(drawn: DrawnForest, most: int) -> list[Point]:
    """A point of every cell that the row may reach, and at every least distance; none where they are too many."""
    model, threat = drawn.model, drawn.threat
    columns = [_list_values(drawn, at) for at in range(model.n_features)]
    points: list[Point] = []
    if math.prod(map(len, columns)) > most:
        return points
    for chosen in itertools.product(*columns):
        if sum(one[1] for one in chosen) > threat.l0 or sum(one[2] for one in chosen) > threat.missing:
            continue
        away = [one[3] for one in chosen]
        if threat.norm in (1, 2):
            distance = sum((one ** int(threat.norm) for one in away), Fraction(0))
        else:
            distance = Fraction(sum(one > 0 for one in away)) if threat.norm == 0 else max(away)
        row = tuple(one[0] for one in chosen)
        points.append(Point(row, distance, *score_exactly(model, row)))
    return points


def _list_values(drawn: DrawnForest, at: int) -> list[tuple[float, int, int, Fraction]]:
    """What a column may become: the value, whether that is a changed category, a gap, and how far away it is."""
    model, threat, own = drawn.model, drawn.threat, float(drawn.row[at])
    still = [(own, 0, 0, Fraction(0))]
    if at in threat.frozen:
        return still
    if at in model.categorical_features:
        (term,) = [term for term in model.terms if at in term.features]
        known = term.category_codes[at].tolist()
        others = threat.may_become.get(at, [*known, *([math.nan, 77.0] if threat.unseen else [])])
        return still + [(one, 1, 0, Fraction(0)) for one in others if not _is_same(one, own)]
    edges = sorted({edge for term in model.terms for axis in term.axes if axis.feature == at for edge in axis.edges})
    if not edges:
        return still
    ends = [value for edge in edges for value in (float(edge), float(np.nextafter(edge, -np.inf)))]
    may_miss = threat.missing > 0 and at in model.missing_features
    if math.isnan(own):
        return still + ([(one, 0, 1, Fraction(0)) for one in ends] if may_miss else [])
    gap = [(math.nan, 0, 1, Fraction(0))] if may_miss else []
    if threat.norm is None and at not in threat.limits:
        return still + gap
    limit, low, high = threat.limits.get(at), -math.inf, math.inf
    if isinstance(limit, str):
        low, high = own - 0.5 * abs(own), own + 0.5 * abs(own)
    elif limit is not None:
        down, up = limit if isinstance(limit, tuple) else (limit, limit)
        low, high = own - down, own + up
    step = threat.steps.get(at)
    if step:
        ends = [own + count * step for count in range(-60, 61)]
        cells: dict[tuple[int, bool], float] = {}
        for value in sorted(ends, key=lambda one: abs(Fraction(one) - Fraction(own))):  # the nearest of each cell
            cells.setdefault((int(np.searchsorted(edges, value, side="right")), value > own), value)
        ends = list(cells.values())
    unit = Fraction(1) if threat.units is None else Fraction(threat.units[at])
    inside = {value for value in ends if low <= value <= high and value != own}
    return still + gap + [(one, 0, 0, abs(Fraction(one) - Fraction(own)) / unit) for one in sorted(inside)]


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def score_exactly(model: AdditiveEnsemble, row: tuple[float, ...]) -> tuple[list[int], list[Fraction]]:
    """The score of each output, and what it may be off by, leaf by leaf."""
    scores = [0] * model.n_outputs
    errors = [Fraction(model.score_error)] * model.n_outputs
    for term in model.terms:
        if not isinstance(term, TreeTerm):
            own = np.ravel(term.score_rows(np.array([row])))
            scores = [a + int(b) for a, b in zip(scores, own, strict=True)]
            continue
        codes = dict(zip(term.category_splits.tolist(), term.left_codes, strict=True))
        for root in term.roots.tolist():
            node = root
            while node >= 0:
                x = row[int(term.columns[node])]
                if math.isnan(x):
                    goes_left = bool(term.missing_left[node])
                elif node in codes:
                    goes_left = (int(x) if x in range(N_CODES) else -1) in codes[node].tolist()
                else:
                    goes_left = x < float(term.edges[node])
                node = int(term.left[node] if goes_left else term.right[node])
            for output in range(model.n_outputs):
                scores[output] += int(term.scores[~node, output])
                errors[output] += Fraction(term.rounding) * Fraction(float(term.magnitudes[~node, output]))
    return scores, errors


def answer(model: AdditiveEnsemble, scores: list[int]) -> int:
    """The class that scores stand for."""
    if model.threshold is not None:
        return int(scores[0] > model.threshold)
    return int(np.argmax(np.array(scores) + np.array(model.offsets)))


def keeps(model: AdditiveEnsemble, point: Point, label: int) -> bool:
    """Whether the model that is meant surely answers the label at a point."""
    return all(_is_ahead(model, point, label, other, 1) for other in range(model.n_classes) if other != label)


def leaves(model: AdditiveEnsemble, point: Point, label: int) -> bool:
    """Whether it surely answers another one."""
    return any(not _is_ahead(model, point, label, other, -1) for other in range(model.n_classes) if other != label)


def _is_ahead(model: AdditiveEnsemble, point: Point, label: int, other: int, sign: int) -> bool:
    """Whether a class is ahead of another one with errors at their worst, or (-1) at their best."""
    if model.threshold is not None:
        ahead = Fraction(point.scores[0] - model.threshold) * (1 if label else -1)
        error = point.errors[0]
    else:
        totals = [score + offset for score, offset in zip(point.scores, model.offsets, strict=True)]
        ahead, error = Fraction(totals[label] - totals[other]), point.errors[label] + point.errors[other]
    return ahead - sign * error > 0 if label > other else ahead - sign * error >= 0


def measure_radius(points: list[Point], norm: float | None, is_kept: list[bool]) -> tuple[float, float]:
    """The largest double that is a true radius, and a double that is none: 0 and infinite where there is none."""
    broken = [point.distance for point, kept in zip(points, is_kept, strict=True) if not kept]
    if not broken:
        return math.inf, math.nan
    least = min(broken)
    if norm is None:
        return 0.0, math.inf
    if norm == 0:
        return float(max(least - 1, 0)), float(least)
    power = int(norm) if norm in (1, 2) else 1
    radius = float(least) if power == 1 else math.sqrt(float(least))
    while Fraction(radius) ** power > least:
        radius = math.nextafter(radius, 0)
    while Fraction(math.nextafter(radius, math.inf)) ** power <= least:
        radius = math.nextafter(radius, math.inf)
    return radius, math.nextafter(radius, math.inf)
