"""The drawn cases at scales from 1e-300 to 1e300: all of a case by one power of two, or its parts by different ones.

Powers of two scale without rounding, so that radii scale to the last bit wherever nothing underflows or overflows; at
the extremes those of the paper's proof may only become smaller. Owns scaled cases of every kind of model, and what
counts as a fault: a claim that exact arithmetic contradicts, a result that does not scale, a crash. A refusal in one
line is none.
"""

from __future__ import annotations

import math
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from derand import (
    AdditiveEnsemble,
    Attacks,
    Noise,
    Threat,
    UnsoundError,
    WeightedVote,
    attack,
    attack_interval,
    certify_interval,
    certify_radius,
)
from derand.certificates import find_labels
from derand.model import TERMS, Argmax, LinearTerm, Model, Term, Value
from derand.perturbation import resolve
from tests.fuzz.attacking import Attack
from tests.fuzz.checking import Tally, check_case, is_coarse
from tests.fuzz.classes import list_labels
from tests.fuzz.drawing import CODES, Case, Column, draw_any_case, draw_case, draw_noise, draw_rows, draw_threat
from tests.fuzz.exact import expect_score, find_law, find_unit, is_allowed
from tests.oracle import MP

POWERS = (-996, -830, -664, -545, -540, -538, -520, -512, -500, -332, -40, -3, 0, 7, 60, 332, 500, 512, 600, 900, 990)
_SEARCHED = 2.0**-20
"""How far a search for a distance may end from that at another scale, relatively."""
_SMALL = range(-40, 41)
"""Powers by which nothing that is drawn underflows or overflows, nor passes any of the limits of a search."""


@dataclass
class Count:
    """What was tried and found."""

    tries: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    equal: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scales:
    """Powers of two: of the numbers of each column, of the noise's magnitude, of units, and of limits beside."""

    columns: tuple[int, ...]
    magnitude: int = 0
    noise_units: tuple[int, ...] | None = None
    threat_units: tuple[int, ...] | None = None
    limits: int = 0


def scale_case(case: Case, by: Scales) -> Case:
    """The same case with its parts scaled; a ValueError where the package refuses such numbers."""
    rows = case.rows.copy()
    for at in range(rows.shape[1]):
        if at not in case.model.categorical_features:
            rows[:, at] = np.ldexp(rows[:, at], by.columns[at])
    noise = None if case.noise is None else scale_noise(case.noise, by)
    return replace(
        case, model=scale_model(case.model, by), rows=rows, noise=noise, threat=scale_threat(case.threat, by)
    )


def scale_noise(noise: Noise, by: Scales) -> Noise:
    units = noise.units
    if by.noise_units is not None:
        units = tuple(
            math.ldexp(1.0 if units is None else units[at], by.noise_units[at]) for at in range(len(by.columns))
        )
    kind: Any = type(noise)
    scaled: Noise = kind(math.ldexp(noise.magnitude, by.magnitude), units)
    return scaled


def scale_threat(threat: Threat, by: Scales) -> Threat:
    def scale(column: Any, value: Any) -> Any:
        power = by.limits + (by.columns[0] if column == "*" else by.columns[column])
        if isinstance(value, tuple):
            return tuple(scale(column, one) for one in value)
        return value if isinstance(value, str) else math.ldexp(value, power)

    def scale_all(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {column: scale(column, value) for column, value in values.items()}

    units = threat.units
    if by.threat_units is not None:
        units = tuple(
            math.ldexp(1.0 if units is None else units[at], by.threat_units[at]) for at in range(len(by.columns))
        )
    domain = {
        at: tuple(math.ldexp(end, by.columns[at]) for end in ends) for at, ends in threat.domain.items()
    }  # which holds all rows
    return replace(threat, units=units, limits=scale_all(threat.limits), domain=domain, steps=scale_all(threat.steps))


def scale_model(model: Model, by: Scales) -> Model:
    """The same model with its edges scaled, and its slopes by the inverse."""
    if isinstance(model, WeightedVote):
        return WeightedVote(tuple(_scale_sum(member, by) for member in model.members), model.weights)
    assert isinstance(model, AdditiveEnsemble)
    return _scale_sum(model, by)


def _scale_sum(model: AdditiveEnsemble, by: Scales) -> AdditiveEnsemble:
    terms = [_scale_term(term, by) for term in model.terms]
    return AdditiveEnsemble(terms, model.decision, model.n_features, model.levels, model.score_error)


def _scale_term(term: Term, by: Scales) -> Term:
    told = term.describe()
    if term.kind == "grid_term":
        told["edges"] = [
            np.ldexp(edges, by.columns[at]).tolist() for at, edges in zip(term.features, told["edges"], strict=True)
        ]
    elif term.slope is not None:
        told["slopes"] = np.ldexp(told["slopes"], -by.columns[term.features[0]]).tolist()
    elif term.axes:
        told["edges"] = np.ldexp(told["edges"], by.columns[told["feature"]]).tolist()
    return TERMS[term.kind](**told)


def list_numbers(case: Case) -> list[float]:
    """All numbers of a case that scaling multiplies."""
    numbers = [at for at in range(case.rows.shape[1]) if at not in case.model.categorical_features]
    found = case.rows[:, numbers].ravel().tolist()
    for term in case.model.member_terms:
        found += [edge for axis in term.axes for edge in axis.edges.tolist()]
        found += [] if term.slope is None else term.slope.values.tolist()
    for value in (*case.threat.limits.values(), *case.threat.domain.values(), *case.threat.steps.values()):
        found += [] if isinstance(value, str) else list(value) if isinstance(value, tuple) else [value]
    return [one for one in found if one and math.isfinite(one)]


def is_exact(case: Case, scaled: Case) -> bool:
    """Whether no number was rounded, or became infinite, and differences of them are normal numbers, too."""
    before, after = list_numbers(case), list_numbers(scaled)
    normal = all(2.0**-960 < abs(one) < 2.0**1000 for one in after)
    return len(before) == len(after) and normal and all(2.0**-200 < abs(one) < 2.0**200 for one in before)


def draw_together(random: Random, case: Case) -> tuple[Scales, int]:
    """One power for all of a case, and that by which radii scale: units take it, or the noise's magnitude does."""
    power, count = random.choice(POWERS) if random.random() < 0.6 else random.randint(-1000, 996), case.rows.shape[1]
    every = (power,) * count
    if case.noise is None or case.noise.units is not None:
        return Scales(every, noise_units=every, threat_units=every if case.threat.units or not case.noise else None), 0
    return Scales(every, magnitude=power), power


def draw_apart(random: Random, case: Case) -> Scales:
    """Powers that have nothing to do with one another; some parts stay as they are."""
    count = case.rows.shape[1]

    def draw() -> int:
        return 0 if random.random() < 0.3 else random.choice(POWERS)

    every = draw()
    columns = (every,) * count if random.random() < 0.5 else tuple(draw() for _ in range(count))
    near = every + random.randint(-30, 30) if random.random() < 0.6 else draw()
    units = [None if random.random() < 0.5 else tuple(draw() for _ in range(count)) for _ in range(2)]
    return Scales(columns, near, units[0], units[1], random.choice((0, 0, 0, draw())))


def check_scaled(case: Case, random: Random, count: Count) -> Iterator[str]:
    """Faults of a case that is scaled as a whole, against itself as it was and against exact arithmetic."""
    by, radii = draw_together(random, case)
    scaled = make(case, by, count)
    if scaled is None:
        return
    if is_exact(case, scaled):
        yield from (f"{fault}\n{by}" for fault in _compare(case, scaled, by, radii, count))
    yield from check_claims(scaled, random, count)


def make(case: Case, by: Scales, count: Count) -> Case | None:
    """The scaled case, or None where it is refused."""
    try:
        scaled = scale_case(case, by)
        if not np.isfinite(scaled.rows[~np.isnan(case.rows)]).all():
            return None
        resolve(scaled.threat, scaled.model, scaled.noise).check_rows(scaled.rows)
    except (ValueError, OverflowError) as error:
        require_one_line(error)
        count.refused[type(error).__name__] += 1
        return None
    return scaled


def require_one_line(error: Exception) -> None:
    assert "\n" not in str(error), error


def _compare(case: Case, scaled: Case, by: Scales, power: int, count: Count) -> Iterator[str]:
    """Whether labels, masses and radii are those at scale 1."""
    before, after = case.certify(), scaled.certify()
    power = 0 if case.norm in (None, 0) else power
    if not np.array_equal(before.label, after.label):
        yield f"labels {before.label} become {after.label}"
        return
    for at in range(len(before)):
        own, now = float(before.radius[at]), float(after.radius[at])
        expected = own if math.isinf(own) else Fraction(own) * Fraction(2) ** power
        searched = "dual" in (before.proof[at], after.proof[at]) or case.rule == "mean"
        slack = Fraction(_SEARCHED) if searched else Fraction(0)
        count.equal += now == expected
        small = all(one in _SMALL for one in by.columns)
        larger = not math.isinf(expected) and now > expected * (1 + slack)
        # far away a search takes other ways, of which only exact arithmetic says whether they are right
        if math.isnan(now) or (larger and (small or not searched)):
            yield f"radius {own!r} ({before.proof[at]}) becomes {now!r} ({after.proof[at]})"
        if small and not math.isinf(expected) and now < expected * (1 - slack):
            yield f"radius {own!r} ({before.proof[at]}) shrinks to {now!r} ({after.proof[at]})"
        if case.rule == "vote" and case.model.weights is None and before.log_failure[at] != after.log_failure[at]:
            yield f"log failure {before.log_failure[at]!r} becomes {after.log_failure[at]!r}"


def check_claims(case: Case, random: Random, count: Count) -> Iterator[str]:
    """Faults of what is claimed about a case, whatever its scale, and of attacks on it."""
    tally = Tally()
    check_case(case, tally, random)
    count.claims += tally.n_claims
    yield from tally.unsound
    if random.random() < 0.25:
        yield from check_attack(case)


def check_attack(case: Case) -> Iterator[str]:
    """Whether flips are allowed, and flip, and lie outside of what is certified."""
    claimed = case.certify()
    found: Attacks = attack(case.model, case.rows, case.noise, rule=case.rule, threat=case.threat, n_jobs=1)
    try:
        found.require_outside(claimed)
    except UnsoundError as error:
        yield f"attack: {error}\n{case!r}"
    for at in np.flatnonzero(found.found).tolist():
        flip, size = np.asarray(found.rows[at], dtype=np.float64), float(found.distance[at])
        if not is_allowed(case, case.rows[at], flip, math.nextafter(size, math.inf) * (1 + 1e-11)):
            yield f"attack: row {at} becomes {flip.tolist()} at {size!r}, which is not allowed\n{case!r}"
        if find_labels(case.model, flip[None], case.noise, rule=case.rule)[0] == claimed.label[at]:
            yield f"attack: row {at} does not flip at {flip.tolist()}\n{case!r}"
        several = case.model.n_classes > 2 and not case.model.is_linear and not is_coarse(case)
        if several and int(found.flipped[at]) not in list_labels(case, flip):
            yield f"attack: row {at} is not {found.flipped[at]} at {flip.tolist()}\n{case!r}"


def check_apart(case: Case, random: Random, count: Count) -> Iterator[str]:
    """Faults of a case whose parts are scaled by themselves."""
    scaled = make(case, draw_apart(random, case), count)
    if scaled is not None:
        yield from check_claims(scaled, random, count)


@dataclass(frozen=True)
class NumberClaim:
    """A sum as the answer, and between which answers a row stays within a radius."""

    case: Case
    offset: int
    levels: int

    def find_faults(self, at: int, low: Fraction, high: Fraction, radius: float, random: Random) -> Iterator[str]:
        """What contradicts that answers stay between two ends, by exact arithmetic."""
        for label, end in ((1, low), (0, high)):
            bar = end * self.levels - self.offset
            if self.case.rule == "vote" or self.case.noise is None:  # whole, before it was rounded to a double
                bar = Fraction(round(bar))
            level = math.ceil(bar) - 1 if label else math.floor(bar)
            member = self.case.model.members[0]
            case = replace(self.case, model=AdditiveEnsemble(member.terms, _clip(level), member.n_features))
            search = Attack(case, random)
            rows, _ = search.list_rows(case.rows[at], label, radius)
            margins = search.find_margins(rows, label)
            for one in rows[np.argsort(margins, kind="stable")[:4]]:
                if is_allowed(case, case.rows[at], one, radius) and self._is_beyond(case, one, bar, label):
                    where = f"at {one.tolist()}, radius {radius!r}"
                    yield f"row {at}: answers reach beyond {float(end)!r} {where}\n{case!r}"
                    break

    def _is_beyond(self, case: Case, row: np.ndarray, bar: Fraction, label: int) -> bool:
        """Whether the exact answer lies beyond an end, by more than 60 digits may be off."""
        (member,) = case.model.members
        if case.rule == "vote":
            law = find_law(case, member, row)
            assert member.threshold is not None
            above = sum(mass for score, mass in law.items() if score > member.threshold)
            return bool(2 * above < 1 - 1e-40 if label else 2 * above > 1 + 1e-40)
        mean = expect_score(case, member, row)
        size = max(abs(score) for score in find_law(case, member, row)) + abs(self.offset) + 1
        beyond = float((bar if isinstance(mean, Fraction | int) else _as_number(bar)) - mean)
        return (beyond if label else -beyond) > 2.0**-50 * size  # answers are rounded


def _as_number(value: Fraction) -> Any:
    return MP.mpf(value.numerator) / value.denominator


def _clip(level: int) -> int:
    return max(-(2**53), min(2**53, level))


def check_numbers(case: Case, random: Random, count: Count) -> Iterator[str]:
    """Faults of intervals and tolerance radii of a sum as the answer, and of attacks on them."""
    member = case.model.members[0]
    if case.threat.missing_budget and not member.missing_features:
        return
    offset, levels = random.randint(-1000, 1000), member.levels
    model = AdditiveEnsemble(member.terms, Value(offset), member.n_features, levels)
    own = replace(case, model=AdditiveEnsemble(member.terms, 0, member.n_features, levels))
    if is_coarse(own):
        return
    claim = NumberClaim(own, offset, levels)
    asked: dict[str, Any] = {"rule": case.rule, "threat": case.threat, "n_jobs": 1}
    size = _draw_size(random, case)
    found = certify_interval(model, case.rows, case.noise, size, **asked)
    searched = attack_interval(model, case.rows, case.noise, size, **asked)
    for at in np.flatnonzero(searched.find_outside(found) | ~(found.low <= found.value) | ~(found.value <= found.high)):
        yield f"interval of row {at}: {found.low[at]!r}, {found.value[at]!r}, {found.high[at]!r}\n{own!r}"
    tolerance = random.choice((0.0, 0.01, 0.05, 1.0))
    kept = certify_radius(model, case.rows, case.noise, tolerance, **asked)
    for at in range(len(case.rows)):
        count.claims += 2
        yield from claim.find_faults(
            at, Fraction(found.low[at]), Fraction(found.high[at]), math.inf if size is None else size, random
        )
        if kept.radius[at] > 0:
            value, room = Fraction(kept.value[at]), Fraction(tolerance)
            if case.rule == "vote" or case.noise is None:
                room = Fraction(math.floor(room * levels), levels)
            else:
                room += Fraction(2.0**-40) * (abs(value) + 1)  # its answer is rounded
            yield from claim.find_faults(at, value - room, value + room, float(kept.radius[at]), random)


def _draw_size(random: Random, case: Case) -> float | None:
    """A radius to ask for: of the size of what a row is moved by to the nearest edges."""
    if case.norm is None:
        return None
    if case.norm == 0:
        return float(random.randint(0, 3))
    sizes = [1.0 if case.noise is None else case.noise.magnitude]
    sizes += [abs(one) for one in list_numbers(case)]
    return min(random.choice(sizes) * random.choice((0.0, 1e-3, 0.1, 0.5, 1.0, 4.0)), 1e308)


def draw_line_case(random: Random) -> Case:
    """A linear model of two to four columns, two classes or three, perhaps with categories."""
    count, n_classes = random.randint(1, 4), random.choice((2, 2, 3))
    noise = draw_noise(random, count + 1) if random.random() < 0.6 else None
    columns = [Column(False, 0.0, 1.0)] * count + [Column(True, 0.0, 1.0)]
    n_outputs = 1 if n_classes == 2 else 3
    terms: list[Term] = [
        LinearTerm(at, [random.choice((0.0, 1.0, -1.0, random.gauss(0, 3), 1e-3)) for _ in range(n_outputs)])
        for at in range(count)
    ]
    scores = [[random.randint(-3, 3) for _ in range(n_outputs)] for _ in CODES[:2]]
    terms.append(
        TERMS["category_table"](
            feature=count, categories=list(CODES[:2]), scores=scores, other=0 if n_outputs == 1 else (0,) * 3
        )
    )
    decision: Any = random.randint(-3, 3) if n_classes == 2 else Argmax([random.randint(-3, 3) for _ in range(3)])
    model = AdditiveEnsemble(terms, decision, count + 1)
    rows = draw_rows(random, model, columns, random.choice((1, 2, 3)))
    threat = replace(draw_threat(random, model, rows, columns, noise), missing="fixed")
    rule = "mean" if noise is None else random.choice(("vote", "mean"))
    proof = random.choice(("best", "best", "paper")) if rule == "vote" else "best"
    return Case(model, rows, noise, threat, rule, proof)


def check_lines(case: Case, random: Random, count: Count) -> Iterator[str]:
    """Faults of a linear model: points of the ball, exactly inside it, whose label by fractions is another."""
    claimed = case.certify()
    (model,) = case.model.members
    for at, row in enumerate(case.rows):
        label, radius = int(claimed.label[at]), float(claimed.radius[at])
        if label_exactly(model, row) != label:
            yield f"label {label} of row {at} is wrong\n{case!r}"
        if math.isnan(radius):
            yield f"radius of row {at} is not a number\n{case!r}"
        if not radius > 0:
            continue
        count.claims += 1
        for point in list_line_points(case, row, label, radius):
            if is_allowed(case, row, point, radius) and label_exactly(model, point) != label:
                what = f"label {label} of row {at} within {radius!r} ({claimed.proof[at]})"
                yield f"{what} flips at {point.tolist()}\n{case!r}"
                break
    if random.random() < 0.3:
        yield from check_attack(case)


def label_exactly(model: AdditiveEnsemble, row: np.ndarray) -> int:
    """The label by fractions."""
    totals = score_exactly(model, row)
    if isinstance(model.decision, Argmax):
        totals = [one + offset for one, offset in zip(totals, model.decision.offsets, strict=True)]
        return totals.index(max(totals))
    assert model.threshold is not None
    return int(totals[0] > model.threshold)


def score_exactly(model: AdditiveEnsemble, row: np.ndarray) -> list[Fraction]:
    totals = [Fraction(0)] * model.n_outputs
    for term in model.terms:
        told = term.describe()
        value = float(row[told["feature"]])
        if "slopes" in told:
            own = [Fraction(slope) * Fraction(value) for slope in told["slopes"]]
        else:
            known = [s for code, s in zip(told["categories"], told["scores"], strict=True) if code == value]
            other = told["other"] if isinstance(told["other"], list | tuple) else [told["other"]]
            chosen = known[0] if known else other
            own = [Fraction(score) for score in (chosen if isinstance(chosen, list | tuple) else [chosen])]
        totals = [total + one for total, one in zip(totals, own, strict=True)]
    return totals


def list_line_points(case: Case, row: np.ndarray, label: int, radius: float) -> Iterator[np.ndarray]:
    """The worst points of a ball and its limits for each rival, with categories as they are and at others."""
    (model,) = case.model.members
    lines = [term.describe() for term in model.terms if term.slope is not None]
    units = np.array([find_unit(case, one["feature"]) for one in lines])
    codes = [row[-1]] if not case.threat.l0 else [row[-1], *(set(CODES) | {77.0, math.nan})]
    low, high = resolve(case.threat, case.model, case.noise).box(row[None])
    rivals = [one for one in range(3) if one != label] if model.n_outputs > 1 else [1 - label]
    for rival in rivals:
        slopes = [
            Fraction(one["slopes"][rival]) - Fraction(one["slopes"][label])
            if model.n_outputs > 1
            else Fraction(one["slopes"][0]) * (1 if rival else -1)
            for one in lines
        ]
        for shift in _list_line_moves(
            [slope * Fraction(unit) for slope, unit in zip(slopes, units, strict=True)], case, radius
        ):
            point = row.copy()
            for one, move, unit, slope in zip(lines, shift, units, slopes, strict=True):
                at = one["feature"]
                end = high[0, at] if slope > 0 else low[0, at]
                wanted = float(end) if move is None else _add(float(row[at]), move * Fraction(unit))
                wanted = min(max(wanted, float(low[0, at])), float(high[0, at]))
                step = case.threat.steps.get(at)
                if step is not None and math.isfinite(wanted):
                    wanted = float(row[at]) + np.trunc((wanted - float(row[at])) / step) * step
                    wanted = float(row[at]) if math.isnan(wanted) else wanted
                point[at] = wanted if math.isfinite(wanted) else math.copysign(1.7e308, wanted)
            for code in codes:
                point[-1] = code
                yield point.copy()


def _add(value: float, move: Fraction) -> float:
    exact = Fraction(value) + move
    return float(exact) if abs(exact) < Fraction(1.79e308) else math.inf if exact > 0 else -math.inf


def _list_line_moves(prices: list[Fraction], case: Case, radius: float) -> Iterator[list[Fraction | None]]:
    """Moves in units, None for as far as limits allow."""
    count = len(prices)
    if case.norm is None or math.isinf(radius):
        yield [None if price else Fraction(0) for price in prices]
        return
    if case.norm == 0:
        best = sorted(range(count), key=lambda at: -abs(prices[at]))[: int(radius)]
        yield [None if at in best and prices[at] else Fraction(0) for at in range(count)]
        return
    for share in (1 - 1e-12, 1 - 1e-6, 0.5):
        size = Fraction(radius) * Fraction(share)
        signs = [(price > 0) - (price < 0) for price in prices]
        top = max((abs(price) for price in prices), default=Fraction(0))
        if not top:
            return
        if case.norm == 1:
            for at in range(count):
                yield [size * signs[at] if other == at else Fraction(0) for other in range(count)]
        elif case.norm == 2:
            shares = [float(price / top) for price in prices]
            length = math.hypot(*shares)
            yield [size * Fraction(one / length) * Fraction(1 - 1e-15) for one in shares]
        else:
            yield [size * sign for sign in signs]


def check_line_numbers(case: Case, random: Random, count: Count) -> Iterator[str]:
    """Faults of intervals and tolerance radii of a linear sum as the answer."""
    (member,) = case.model.members
    if member.n_outputs > 1:
        return
    model = AdditiveEnsemble(member.terms, Value(random.randint(-3, 3)), member.n_features, 1)
    assert model.offset is not None
    asked: dict[str, Any] = {"rule": case.rule, "threat": case.threat, "n_jobs": 1}
    size, tolerance = _draw_size(random, case), random.choice((0.0, 0.5, 3.0))
    found = certify_interval(model, case.rows, case.noise, size, **asked)
    kept = certify_radius(model, case.rows, case.noise, tolerance, **asked)
    reach = math.inf if size is None else size
    for at, row in enumerate(case.rows):
        value = score_exactly(member, row)[0] + model.offset
        if not math.isfinite(found.value[at]):
            continue  # of a sum beyond doubles nothing is claimed
        count.claims += 2
        for label in (0, 1):
            for point in list_line_points(case, row, label, reach):
                answer = score_exactly(member, point)[0] + model.offset
                low, high = float(found.low[at]), float(found.high[at])
                inside = (low == -math.inf or Fraction(low) <= answer) and (
                    high == math.inf or answer <= Fraction(high)
                )
                if is_allowed(case, row, point, reach) and not inside:
                    what = f"interval {low!r}, {high!r} of row {at}, radius {reach!r}"
                    yield f"{what}: left at {point.tolist()}\n{case!r}"
            if not kept.radius[at] > 0:
                continue
            for point in list_line_points(case, row, label, float(kept.radius[at])):
                answer = score_exactly(member, point)[0] + model.offset
                if is_allowed(case, row, point, float(kept.radius[at])) and abs(answer - value) > Fraction(tolerance):
                    yield f"radius {kept.radius[at]!r} of tolerance {tolerance} of row {at}: {point.tolist()}\n{case!r}"
    searched = attack_interval(model, case.rows, case.noise, size, **asked)
    if searched.find_outside(found).any():
        yield f"attack leaves the interval\n{case!r}"


def check_many(number: int, seed: int, count: Count, *, most_faults: int = 20) -> None:
    """So many cases of every kind, each by itself: a fault is reproduced without those before it."""
    for k in range(number):
        if len(count.faults) >= most_faults:
            return
        random = Random(f"{seed}:{k}")
        kind = random.choice(("together", "apart", "apart", "numbers", "lines", "line numbers"))
        count.tries += 1
        count.kinds[kind] += 1
        try:
            with np.errstate(all="ignore"):
                count.faults += [f"{kind} {seed}:{k}, {fault}" for fault in _check_one(kind, random, count)]
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            count.faults.append(f"{kind} {seed}:{k}, crash at {where.filename}:{where.lineno}: {error!r}")


def _check_one(kind: str, random: Random, count: Count) -> Iterator[str]:
    if kind == "together":
        yield from check_scaled(draw_any_case(random), random, count)
    elif kind == "apart":
        yield from check_apart(draw_any_case(random), random, count)
    else:
        case = draw_line_case(random) if "line" in kind else draw_any_case(random)
        if kind == "numbers" and case.model.n_classes > 2:
            case = draw_case(random, classes=(2,))
        by = draw_apart(random, case) if random.random() < 0.5 else draw_together(random, case)[0]
        scaled = make(case, by, count)
        if scaled is not None:
            checks = {"numbers": check_numbers, "lines": check_lines, "line numbers": check_line_numbers}
            yield from checks[kind](scaled, random, count)
