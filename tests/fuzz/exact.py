"""What is true of a changed row, without rounding: whether a threat allows it, and which label it gets.

Fractions throughout where nothing or uniform noise acts; cells of other noises have 60 digits (`tests.oracle`). Reads
only public fields of models, noises and threats, and shares no code with what it checks.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, Threat
from derand.model import Axis, Term
from tests.fuzz.drawing import Case
from tests.oracle import MP, Number, cell_probabilities

_NEAR = MP.mpf(10) ** -50  # nearer to a tie than this, 60 digits do not say on which side


def find_box(threat: Threat, column: int, own: float) -> tuple[float, float]:
    """Between which doubles a number may lie, whatever the ball: closed."""
    if column in threat.frozen:
        return own, own
    limit = threat.limits.get(column, threat.limits.get("*"))
    if limit is None and column not in threat.domain and threat.norm is None:
        return own, own
    low, high = -math.inf, math.inf
    if limit is not None:
        if isinstance(limit, str):
            limit = float(limit.rstrip("%")) / 100 * abs(own)
        down, up = limit if isinstance(limit, tuple) else (limit, limit)
        low, high = own - down, own + up
    least, most = threat.domain.get(column, (-math.inf, math.inf))
    return max(low, least), min(high, most)


def find_codes(case: Case, column: int) -> set[float]:
    """To which codes a category may change; NaN is among them as itself, and 77 stands for all that nobody knows."""
    if column in case.threat.frozen:
        return set()
    if column in case.threat.may_become:
        return {float(code) for code in case.threat.may_become[column]}
    known = {float(c) for term in case.model.member_terms if column in term.features for c in term.codes}
    # a table without categories has nothing to change to but what nobody knows
    return known | {77.0, math.nan} if case.threat.unseen or not known else known


def _may_become(case: Case, column: int, code: float) -> bool:
    codes = find_codes(case, column)
    return any(_is_same(code, other) for other in codes) or (77.0 in codes and column not in case.threat.may_become)


def is_allowed(case: Case, row: np.ndarray, moved: np.ndarray, radius: float) -> bool:
    """Whether the threat allows this change: of the ball the open inside."""
    threat, categorical = case.threat, set(case.model.categorical_features)
    changed = [at for at in range(row.size) if not _is_same(row[at], moved[at])]
    codes = [at for at in changed if at in categorical]
    if len(codes) > threat.l0 or not all(_may_become(case, at, moved[at]) for at in codes):
        return False
    numbers = [at for at in changed if at not in categorical]
    gone = [at for at in numbers if math.isnan(row[at]) or math.isnan(moved[at])]
    may_go = set(case.model.missing_features) - set(threat.frozen)
    if len(gone) > threat.missing_budget or not may_go.issuperset(gone):
        return False
    shifts = []
    for at in (at for at in numbers if at not in gone):
        own, now = float(row[at]), float(moved[at])
        low, high = find_box(threat, at, own)
        if not (math.isfinite(now) and low <= now <= high and _is_on_steps(own, now, threat.steps.get(at))):
            return False
        shifts.append(abs(Fraction(now) - Fraction(own)) / Fraction(find_unit(case, at)))
    return _is_in_ball(shifts, case.norm, radius)


def _is_same(one: float, other: float) -> bool:
    return bool(one == other or (math.isnan(one) and math.isnan(other)))


def _is_on_steps(own: float, now: float, step: float | None) -> bool:
    if step is None:
        return True
    count = round((Fraction(now) - Fraction(own)) / Fraction(step))
    if abs(count) > 2**1000:  # steps that nobody can take in doubles
        return False
    return any(own + near * step == now for near in (count - 1, count, count + 1))


def _is_in_ball(shifts: list[Fraction], norm: float | None, radius: float) -> bool:
    if norm is None or math.isinf(radius) or not shifts:
        return True
    if norm == 0:
        return len(shifts) <= radius
    if math.isinf(norm):
        return max(shifts) < Fraction(radius)
    return sum(shift ** int(norm) for shift in shifts) < Fraction(radius) ** int(norm)


def find_unit(case: Case, column: int) -> float:
    """What counts as a change of 1 of a column."""
    units = case.threat.units or (None if case.noise is None else case.noise.units)
    return 1.0 if units is None else units[column]


def find_law(case: Case, member: AdditiveEnsemble, row: np.ndarray) -> dict[int, Number]:
    """Probability of each score of an ensemble at a row; without noise one score of probability 1."""
    law: dict[int, Number] = {0: 1}
    for term in member.terms:
        grown: dict[int, Number] = {}
        for (score, mass), ((step,), cell) in itertools.product(law.items(), list_cells(case, term, row)):
            grown[score + step] = grown.get(score + step, 0) + mass * cell
        law = grown
    return law


def list_cells(case: Case, term: Term, row: np.ndarray) -> list[tuple[tuple[int, ...], Number]]:
    """Scores of a term at a row, one per output, with their probabilities."""
    scores = [tuple(cell) for cell in term.scores.tolist()]
    value = float(row[term.features[0]])
    if not term.axes:
        known = [score for code, score in zip(term.codes.tolist(), scores, strict=True) if code == value]
        other = term.missing if math.isnan(value) and term.missing is not None else term.describe()["other"]
        return [(known[0] if known else _as_tuple(other), 1)]
    if len(term.axes) > 1:
        return [(scores[at], mass) for at, mass in _list_boxes(case, term, row)]
    if math.isnan(value):
        return [(_as_tuple(term.missing), 1)]
    return [(scores[cell], mass) for cell, mass in _list_side(case, term.axes[0], value)]


def _list_boxes(case: Case, term: Term, row: np.ndarray) -> list[tuple[int, Number]]:
    """Boxes of a term of several columns that noise can reach, with the products of their sides' masses."""
    boxes: list[tuple[int, Number]] = [(0, 1)]
    for axis in term.axes:
        n_cells, gap = axis.edges.size + 1, axis.feature in term.missing_features
        value = float(row[axis.feature])
        side = [(n_cells, 1)] if math.isnan(value) else _list_side(case, axis, value)
        boxes = [(at * (n_cells + gap) + cell, mass * one) for at, mass in boxes for cell, one in side]
    return boxes


def _list_side(case: Case, axis: Axis, value: float) -> list[tuple[int, Number]]:
    """The cells of a column that noise can reach, with their masses."""
    edges = axis.edges.tolist()
    if case.noise is None or not edges:
        return [(sum(edge <= value for edge in edges), 1)]
    masses = cell_probabilities(case.noise, value, edges, axis.feature)
    return [(cell, mass) for cell, mass in enumerate(masses) if mass]


def _as_tuple(score: Any) -> tuple[int, ...]:
    assert score is not None
    return tuple(map(int, score)) if isinstance(score, list | tuple) else (int(score),)


def measure_failure(case: Case, member: AdditiveEnsemble, row: np.ndarray, label: int) -> Number:
    """The mass on the other side of the threshold, for the worst model within the score error."""
    assert member.threshold is not None
    error = Fraction(member.score_error)
    return sum(
        (
            mass
            for score, mass in find_law(case, member, row).items()
            if (score - error <= member.threshold if label else score + error > member.threshold)
        ),
        start=Fraction(0) if case.noise is None or case.noise.name == "uniform" else MP.mpf(0),
    )


def expect_score(case: Case, member: AdditiveEnsemble, row: np.ndarray) -> Number:
    """The expected score of an ensemble."""
    law = find_law(case, member, row)
    return sum(score * mass for score, mass in law.items())


def can_answer(case: Case, member: AdditiveEnsemble, row: np.ndarray, label: int) -> bool:
    """Whether some model within the score error of an ensemble gives a row this label, for sure."""
    assert member.threshold is not None
    if case.rule == "vote":
        mass = measure_failure(case, member, row, 1 - label)  # the mass of this label: what fails is the other one
        if isinstance(mass, Fraction):
            return mass > Fraction(1, 2) if label else mass >= Fraction(1, 2)
        return bool(mass - MP.mpf("0.5") > _NEAR)
    mean, error = expect_score(case, member, row), member.score_error
    if isinstance(mean, Fraction | int):
        return bool(mean + Fraction(error) > member.threshold if label else mean - Fraction(error) <= member.threshold)
    size = max(abs(member.threshold), *(abs(score) for score in find_law(case, member, row)), 1)
    near, distance = _NEAR * size, mean - member.threshold
    return bool(distance + MP.mpf(error) > near if label else distance - MP.mpf(error) < -near)


def can_flip(case: Case, row: np.ndarray, label: int) -> bool:
    """Whether a row, as it is, can get another label than this one."""
    if case.model.weights is None:
        return can_answer(case, case.model.members[0], row, 1 - label)
    against = total = Fraction(0)
    for member, weight in zip(case.model.members, case.model.weights.tolist(), strict=True):
        wanted = (1 - label) ^ int(weight < 0)
        total += abs(Fraction(weight))
        if can_answer(case, member, row, wanted):
            against += abs(Fraction(weight))
    return 2 * against > total if label == 0 else 2 * (total - against) <= total
