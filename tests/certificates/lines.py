"""Linear models drawn at random, and the least change that flips them by enumeration in exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, CategoryTable, LinearTerm, Threat
from derand.model import Argmax, Decision, Value
from derand.perturbation import Perturbation

NORMS = (0, 1, 2, np.inf, None)


def draw_model(
    rng: np.random.Generator, n_outputs: int, *, error: float = 0.0, number: bool = False, gaps: bool = False
) -> Any:
    """A linear model of one to four numbers and a category; slopes are off by a share of themselves.

    With `gaps` missing numbers have scores, off by the same share.
    """
    n = int(rng.integers(1, 5))
    slopes = rng.normal(size=(n, n_outputs)) * 10.0 ** rng.uniform(-2, 2, size=(n, 1))
    terms: list[Any] = [LinearTerm(at, own, error * np.abs(own)) for at, own in enumerate(slopes)]
    if gaps:
        scores = rng.normal(size=slopes.shape) * 10.0 ** rng.uniform(-1, 2, size=(n, 1))
        off = error * np.abs(scores)
        terms = [LinearTerm(at, line.slopes, line.errors, scores[at], off[at]) for at, line in enumerate(terms)]
    other: Any = tuple(rng.integers(-50, 50, size=n_outputs).tolist())
    terms.append(
        CategoryTable(n, [0, 1, 2], rng.integers(-50, 50, size=(3, n_outputs)), other if n_outputs > 1 else other[0])
    )
    decision: Decision | int = int(rng.integers(-20, 20))
    if number:
        decision = Value(decision)
    elif n_outputs > 1:
        decision = Argmax(rng.integers(-20, 20, size=n_outputs).tolist())
    return AdditiveEnsemble(terms, decision, n + 1, score_error=0.5 if error else 0.0)


def draw_rows(rng: np.random.Generator, model: AdditiveEnsemble, n_rows: int) -> np.ndarray:
    """Numbers of a like size, a third of them missing where the model takes that, and a category that may be new or
    missing."""
    numbers = rng.normal(size=(n_rows, model.n_features - 1)) * 10.0 ** rng.uniform(-1, 2)
    if model.missing_features:
        numbers[rng.random(numbers.shape) < 1 / 3] = np.nan
    codes = rng.choice([-1.0, 0.0, 1.0, 2.0, np.nan], size=(n_rows, 1))
    return np.concatenate([numbers, codes], axis=1)


def draw_threat(rng: np.random.Generator, model: AdditiveEnsemble, norm: float | None, **more: Any) -> Threat:
    """Units, and limits of some numbers."""
    n = model.n_features - 1
    wide = norm is not None and rng.random() < 0.4
    limits: Any = {} if wide else {at: float(10.0 ** rng.uniform(-1, 3)) for at in range(n) if rng.random() < 0.7}
    if limits and rng.random() < 0.5:
        at = next(iter(limits))
        limits[at] = (0.0, limits[at])
    units = tuple(10.0 ** rng.uniform(-2, 2, size=n + 1))
    return Threat(norm=norm, limits=limits, units=units, **more)


def find_least(
    margin: Fraction, prices: list[Fraction], caps: list[Fraction | None], norm: float | None
) -> Fraction | None:
    """The least distance at which a sum falls by its margin, for norm 2 its square; None where there is none.

    Every choice of columns that are at their caps is tried. Without a norm 0 where all caps together do it.
    """
    if margin <= 0:
        return Fraction(0)
    columns = [k for k, price in enumerate(prices) if price > 0 and caps[k] != 0]
    best: Fraction | None = None
    for count in range(len(columns) + 1):
        for at_caps in itertools.combinations(columns, count):
            found = _try_caps(margin, prices, caps, norm, list(at_caps), columns)
            if found is not None and (best is None or found < best):
                best = found
    return best


def _try_caps(
    margin: Fraction,
    prices: list[Fraction],
    caps: list[Fraction | None],
    norm: float | None,
    at_caps: list[int],
    columns: list[int],
) -> Fraction | None:
    unlimited = [k for k in at_caps if caps[k] is None]
    if norm in (0, None):  # columns go as far as they may
        reached = bool(unlimited) or sum((prices[k] * (caps[k] or 0) for k in at_caps), Fraction(0)) >= margin
        return (Fraction(len(at_caps)) if norm == 0 else Fraction(0)) if reached else None
    if unlimited:
        return None
    own = [caps[k] or Fraction(0) for k in at_caps]
    left = margin - sum((prices[k] * cap for k, cap in zip(at_caps, own, strict=True)), Fraction(0))
    rest = [k for k in columns if k not in at_caps]
    if left <= 0 or not rest:
        return None if left > 0 else {1: sum(own), 2: sum(c * c for c in own)}.get(norm, max(own, default=Fraction(0)))
    return _move_rest(left, [(prices[k], caps[k]) for k in rest], own, norm)


def _move_rest(
    left: Fraction, rest: list[tuple[Fraction, Fraction | None]], own: list[Fraction], norm: float | None
) -> Fraction | None:
    """The distance where columns at their caps leave some of the margin to all others; None where these cannot."""

    def fits(moves: list[Fraction]) -> bool:
        return all(cap is None or move <= cap for move, (_, cap) in zip(moves, rest, strict=True))

    if norm == 1:  # one more column moves
        alone = [left / price for price, cap in rest if cap is None or left / price <= cap]
        return sum(own, Fraction(0)) + min(alone) if alone else None
    if norm == 2:
        pace = left / sum((price**2 for price, _ in rest), Fraction(0))
        fit = fits([pace * price for price, _ in rest])
        return sum((c * c for c in own), Fraction(0)) + pace * left if fit else None
    far = left / sum((price for price, _ in rest), Fraction(0))
    return max([far, *own]) if fits([far] * len(rest)) else None


def find_exact(model: AdditiveEnsemble, row: np.ndarray, threat: Threat) -> tuple[int, Fraction | None]:
    """The label of a row and the least distance (norm 2: its square) at which a rival may win; of exact models."""
    scores = _score_exactly(model, row)
    label = scores.index(max(scores)) if model.offsets else int(scores[0] > 0)
    if not model.offsets:
        scores = [Fraction(0), scores[0]]
    least: Fraction | None = None
    for rival in range(len(scores)):
        if rival == label:
            continue
        slopes, table = _subtract(model, label, rival)
        margin = scores[label] - scores[rival] - _fall_of_category(table, row[-1], threat)
        low, high = Perturbation.of(threat, row.size, model.numerical_features).box(row[None])
        prices, caps = [], list[Fraction | None]()
        for at, slope in enumerate(slopes):
            unit = Fraction(1) if threat.norm in (0, None) else Fraction((threat.units or ())[at])
            end = low[0, at] if slope > 0 else high[0, at]
            prices.append(abs(slope) * unit)
            if np.isnan(row[at]):  # it stays missing
                caps.append(Fraction(0))
                continue
            caps.append(None if np.isinf(end) else abs(Fraction(float(end)) - Fraction(float(row[at]))) / unit)
        found = find_least(margin, prices, caps, threat.norm)  # type: ignore[arg-type]
        if found is not None and (least is None or found < least):
            least = found
    return label, least


def _score_exactly(model: AdditiveEnsemble, row: np.ndarray) -> list[Fraction]:
    totals = [Fraction(one) for one in model.offsets] or [Fraction(-(model.threshold or 0))]
    for term in model.terms:
        if term.slope is None:
            own = np.ravel(term.score_rows(row[None])).tolist()
        elif np.isnan(row[term.features[0]]):
            own = [Fraction(one) for one in np.ravel(np.array(term.missing)).tolist()]
        else:
            own = [Fraction(float(slope)) * Fraction(float(row[term.features[0]])) for slope in term.slope.values]
        totals = [total + one for total, one in zip(totals, own, strict=True)]
    return totals


def _subtract(model: AdditiveEnsemble, label: int, rival: int) -> tuple[list[Fraction], dict[Any, int]]:
    """Exact slopes of a difference, and the differences of categories by code (None for another one)."""
    lines, table = [one.values.tolist() for one in model.slopes], model.category_tables[0]
    scores, other = table.scores, np.ravel(table.other)
    if not model.offsets:
        sign = 1 if label else -1
        known = {code: sign * int(score) for code, score in zip(table.categories.tolist(), scores[:, 0], strict=True)}
        return [sign * Fraction(one[0]) for one in lines], {**known, None: sign * int(other[0])}
    differences = (scores[:, label] - scores[:, rival]).tolist()
    known = dict(zip(table.categories.tolist(), differences, strict=True))
    slopes = [Fraction(one[label]) - Fraction(one[rival]) for one in lines]
    return slopes, {**known, None: int(other[label] - other[rival])}


def _fall_of_category(table: dict[Any, int], code: float, threat: Threat) -> int:
    if not threat.l0:
        return 0
    own = table.get(code, table[None])
    reachable = [value for key, value in table.items() if key is not None or threat.unseen]
    return max(own - min(reachable), 0)
