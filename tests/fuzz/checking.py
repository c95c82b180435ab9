"""Checks every claim about a case against exact arithmetic, and counts.

A claim is a radius above 0 or a verdict. Its failing mass must be no less than the exact one, a radius that the paper's
proof gives no larger than what follows from the exact mass, and no row that the threat allows may get another label. Of
several classes this is asked of every duel of a label, and labels are those of exact laws.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random

import numpy as np

from derand import Certificates, Threat
from derand.certificates import PROOFS
from derand.certificates.bounds.packing import choose_support
from tests.fuzz.attacking import Attack
from tests.fuzz.classes import list_labels, take_duel
from tests.fuzz.drawing import Case, draw_case
from tests.fuzz.exact import can_flip, expect_score, find_unit, is_allowed, measure_failure
from tests.oracle import MP, Number, true_radius

SUSPICIOUS = 1e-9
"""Margins below this, in doubles, are decided exactly."""
MOST_SUSPECTS = 4
_COARSE = 2**23  # levels; beyond it a vote is that of a coarser grid
_ROUNDED = MP.mpf(10) ** -50


@dataclass
class Tally:
    """What was checked: numbers of things, how near claims came to what is true, and what was found."""

    ensembles: int = 0
    members: int = 0
    votes: int = 0
    several: int = 0
    duels: int = 0
    rows: int = 0
    masses: int = 0
    witnesses: int = 0
    n_claims: int = 0
    claims: dict[str, Counter[str]] = field(default_factory=dict)
    attacks: int = 0
    decided_exactly: int = 0
    slack: dict[str, float] = field(default_factory=dict)
    unsound: list[str] = field(default_factory=list)

    def count_claim(self, **kinds: str | list[str]) -> None:
        """Count a claim, under each kind by its name or names."""
        self.n_claims += 1
        for kind, names in kinds.items():
            self.claims.setdefault(kind, Counter()).update([names] if isinstance(names, str) else names)

    def note(self, name: str, slack: float) -> None:
        """Remember the least slack of a kind of claim."""
        self.slack[name] = min(self.slack.get(name, math.inf), slack)


def check_case(case: Case, tally: Tally, random: Random) -> None:
    """Certify a case and check all that is claimed about its rows."""
    claimed = case.certify()
    tally.ensembles += len(case.model.members)
    if case.model.weights is not None:
        tally.members += len(case.model.members)
        tally.votes += 1
    tally.rows += len(case.rows)
    find_faults = _check_two(case, claimed, tally, random)
    if case.model.n_classes > 2:
        tally.several += 1
        find_faults = _check_several(case, claimed, tally, random)
    for at, fault in find_faults:
        tally.unsound.append(f"row {at}: {fault}\n{case!r}")


def _check_two(case: Case, claimed: Certificates, tally: Tally, random: Random) -> Iterator[tuple[int, str]]:
    """Faults of two classes, with the rows that they are about."""
    attack = Attack(case, random)
    for at, row in enumerate(case.rows):
        _count_claim(case, claimed, at, tally)
        if claimed.flips is not None and claimed.flips[at]:
            tally.witnesses += 1
            assert claimed.witness is not None
            yield from (
                (at, fault) for fault in _check_witness(attack, row, claimed.witness[at], int(claimed.label[at]))
            )
        yield from ((at, fault) for fault in _find_faults(attack, claimed, at, row, tally))


def _check_several(case: Case, claimed: Certificates, tally: Tally, random: Random) -> Iterator[tuple[int, str]]:
    """Faults of several classes: of labels, witnesses, and of the duels of each label with all of its rivals."""
    assert claimed.runner_up is not None
    attacks: dict[tuple[int, int], Attack] = {}
    for at, row in enumerate(case.rows):
        _count_claim(case, claimed, at, tally)
        label, runner_up = int(claimed.label[at]), int(claimed.runner_up[at])
        if not is_coarse(case) and label not in list_labels(case, row):
            yield at, f"label {label} is none of {sorted(list_labels(case, row))}"
        if runner_up == label or not 0 <= runner_up < case.model.n_classes:
            yield at, f"the runner-up {runner_up} is no rival of {label}"
        if claimed.flips is not None and claimed.flips[at]:
            tally.witnesses += 1
            assert claimed.witness is not None
            yield from ((at, fault) for fault in _check_class_witness(case, row, claimed.witness[at], label))
        for rival in (one for one in range(case.model.n_classes) if one != label):
            pair = min(label, rival), max(label, rival)
            if pair not in attacks:
                attacks[pair] = Attack(take_duel(case, *pair), random)
            tally.duels += 1
            side = _take_side(claimed, at, rival)
            yield from ((at, f"{fault}, against {rival}") for fault in _find_faults(attacks[pair], side, 0, row, tally))


def _take_side(claimed: Certificates, at: int, rival: int) -> Certificates:
    """What is claimed about a row as a claim about its duel with a rival; the proof is that of the runner-up alone."""
    one = claimed[[at]]
    assert one.runner_up is not None
    proof = str(one.proof[0]) if one.runner_up[0] == rival else "none"
    return replace(
        one,
        label=(one.label > rival).astype(np.int64),
        classes=np.array([0, 1]),
        runner_up=None,
        _proof=np.array([PROOFS.index(proof)], dtype=np.uint8),
    )


def is_coarse(case: Case) -> bool:
    """Whether scores are so fine that the labels of a vote are those of a coarser grid (docs/theory.md, section 8)."""
    spans = [sum(term.score_range()[1] - term.score_range()[0] for term in one.terms) for one in case.model.members]
    n_outputs = case.model.members[0].n_outputs
    return case.rule == "vote" and max(spans) * min(n_outputs, 2) >= _COARSE


def _count_claim(case: Case, claimed: Certificates, at: int, tally: Tally) -> None:
    """Count what is claimed about a row, if anything."""
    if claimed.radius[at] > 0:
        tally.count_claim(
            rule=case.rule,
            noise="none" if case.noise is None else case.noise.name,
            norm=str(case.norm),
            proof=str(claimed.proof[at]),
            threat=_list_fields(case),
            classes=str(case.model.n_classes),
        )


def check_many(
    count: int, seed: int, tally: Tally, *, most_faults: int = 20, draw: Callable[[Random], Case] = draw_case
) -> Iterator[int]:
    """Check as many cases as it takes for that many ensembles; yields now and then how many are done."""
    number = 0
    while tally.ensembles < count and len(tally.unsound) < most_faults:
        random = Random(f"{seed}:{number}")  # every case by itself: a fault is reproduced without those before it
        before = len(tally.unsound)
        check_case(draw(random), tally, random)
        tally.unsound[before:] = [f"case {seed}:{number}, {fault}" for fault in tally.unsound[before:]]
        number += 1
        if number % 500 == 0:
            yield tally.ensembles


def _find_faults(attack: Attack, claimed: Certificates, at: int, row: np.ndarray, tally: Tally) -> Iterator[str]:
    case, radius, label = attack.case, float(claimed.radius[at]), int(claimed.label[at])
    single, proof = case.model.weights is None, str(claimed.proof[at])
    noise = "none" if case.noise is None else case.noise.name
    rows, n_still = attack.list_rows(row, label, radius)
    margins = attack.find_margins(rows, label)
    if case.rule == "vote" and single:
        worst = rows[:n_still][margins[:n_still].argmin()]
        yield from _check_failure(case, claimed, at, worst, tally)
    if claimed.worst is not None and single:
        yield from _check_worst(case, float(claimed.worst[at]), row, rows, margins, label)
    if not radius > 0:
        return
    tally.attacks += len(rows)
    distances = measure_distances(case, row, rows)
    flipped = margins < SUSPICIOUS if case.noise is not None else (margins <= 0 if label else margins < 0)
    if case.noise is None and single and case.norm not in (None, 0) and flipped.any() and math.isfinite(radius):
        tally.note(f"radius, noise none, norm {case.norm}", float(distances[flipped].min()) / radius - 1)
    inside = distances <= radius * (1 + 1e-12)
    if case.noise is not None:
        tally.note(f"margin left, rule {case.rule}, noise {noise}", max(float(margins[inside].min()), 0.0))
    suspects = np.flatnonzero(flipped & inside)
    for one in rows[suspects[np.argsort(margins[suspects], kind="stable")][:MOST_SUSPECTS]]:
        tally.decided_exactly += 1
        if is_allowed(case, row, one, radius) and can_flip(case, one, label):
            yield f"label {label} within {radius!r} ({proof}) flips at {one.tolist()}"
            return


def _list_fields(case: Case) -> list[str]:
    """The fields of a threat that restrict its ball or add to it."""
    named = ("frozen", "limits", "domain", "steps", "may_become", "missing_budget", "l0")
    return [name for name in named if getattr(case.threat, name)] or ["ball alone"]


def measure_distances(case: Case, row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How far numbers moved, in the threat's norm and units, in doubles; numbers that came or went do not count."""
    numbers = [at for at in range(row.size) if at not in case.model.categorical_features]
    units = np.array([find_unit(case, at) for at in numbers])
    shifts = np.nan_to_num(np.abs(rows[:, numbers] - row[numbers])) / units
    if case.norm is None or not numbers:
        return np.zeros(len(rows))
    return np.asarray((shifts > 0).sum(axis=1) if case.norm == 0 else np.linalg.norm(shifts, ord=case.norm, axis=1))


def _check_failure(case: Case, claimed: Certificates, at: int, worst: np.ndarray, tally: Tally) -> Iterator[str]:
    """The failing mass after the worst change of categories and of what is missing, and the paper's radius of it."""
    label, failure, radius = int(claimed.label[at]), float(claimed.failure[at]), float(claimed.radius[at])
    truth = min(measure_failure(case, case.model.members[0], worst, label), 1)  # 60 digits may add up to a trifle more
    tally.masses += 1
    logarithm = MP.log(MP.mpf(truth.numerator) / truth.denominator if isinstance(truth, Fraction) else truth)
    if truth > failure or logarithm > float(claimed.log_failure[at]) + _ROUNDED * abs(logarithm):
        yield f"failing mass {failure!r} is less than the exact one, of logarithm {MP.nstr(logarithm, 20)}"
    if truth and failure < 0.5:
        tally.note("failing mass", float(failure / float(truth) - 1) if float(truth) > 1e-300 else math.inf)
    if claimed.proof[at] != "paper" or not 0 < radius < math.inf or case.norm in (None, 0):
        return
    assert case.noise is not None
    largest, stretch = true_radius(case.noise, truth) if truth else MP.inf, _stretch(case)
    if not stretch:
        return
    largest = MP.mpf(largest.numerator) / largest.denominator if isinstance(largest, Fraction) else MP.mpf(largest)
    largest /= stretch
    tally.note("radius, paper", float(largest / radius - 1))
    if radius > largest * (1 + 1e-12):
        yield f"radius {radius!r} by the paper's proof exceeds {float(largest)!r}, which follows from the exact mass"


def _stretch(case: Case) -> Number:
    """By how much a ball of the threat may be longer in the noise's own norm and units (docs/theory.md, section 9)."""
    assert case.noise is not None
    assert case.norm is not None
    terms = [term for term in case.model.member_terms if term.axes and np.ptp(term.scores)]  # the others are constants
    spread = sum(int(np.ptp(term.scores)) for term in terms)
    if spread >= _COARSE:  # on the vote's own grid more may be constant: what that moves the sum widens the threshold
        levels = choose_support(case.model.member_terms)
        terms = [term for term in terms if np.ptp(np.rint(term.scores / -(-spread // levels)))]
    ratios = [
        MP.mpf(find_unit(case, at)) / (1.0 if case.noise.units is None else case.noise.units[at])
        for at in {axis.feature for term in terms for axis in term.axes if len(axis.edges)}  # others move no score
        if at not in case.threat.frozen
    ]
    power = 1 / case.noise.norm - 1 / case.norm
    largest = max(ratios, default=MP.mpf(0))
    return largest if power <= 0 else sum((one ** (1 / power) for one in ratios), start=MP.mpf(0)) ** power


def _check_witness(attack: Attack, row: np.ndarray, witness: np.ndarray, label: int) -> Iterator[str]:
    case = attack.case
    if not is_allowed(case, row, witness, math.inf):
        yield f"the witness {witness.tolist()} lies outside the limits"
    elif attack.find_margins(witness[None, :], label)[0] > SUSPICIOUS and not _flips_as_computed(case, witness, label):
        yield f"the witness {witness.tolist()} keeps the label {label}"


def _check_class_witness(case: Case, row: np.ndarray, witness: np.ndarray, label: int) -> Iterator[str]:
    if not is_allowed(case, row, witness, math.inf):
        yield f"the witness {witness.tolist()} lies outside the limits"
    elif list_labels(case, witness) == {label} and not _flips_as_computed(case, witness, label):
        yield f"the witness {witness.tolist()} keeps the label {label}"


def _flips_as_computed(case: Case, witness: np.ndarray, label: int) -> bool:
    """Whether scores are so fine that labels are those of a coarser grid, and flip there."""
    if not is_coarse(case):
        return False
    return int(replace(case, rows=witness[None, :], threat=Threat()).certify().label[0]) != label


def _check_worst(
    case: Case, worst: float, row: np.ndarray, rows: np.ndarray, margins: np.ndarray, label: int
) -> Iterator[str]:
    found = rows[margins.argmin()]
    score: Number = expect_score(case, case.model.members[0], found)
    beyond = worst - score if label else score - worst
    if beyond > 1e-9 * max(abs(worst), 1.0) and is_allowed(case, row, found, math.inf):
        yield f"the worst score {worst!r} is surpassed by {float(score)!r} at {found.tolist()}"
