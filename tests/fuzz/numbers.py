"""The drawn cases with numbers as answers: intervals of every rule, noise and threat, attacked.

Owns the way from a case of labels to one of numbers, and what counts as a fault: an answer outside its interval, or one
of the interval's own row. Must not know how cases are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from derand import AdditiveEnsemble, Intervals, attack_interval, certify_interval
from derand.model import Value
from tests.fuzz.drawing import Case, draw_case


@dataclass(frozen=True)
class NumberCase:
    """What `certify_interval` takes."""

    case: Case
    model: AdditiveEnsemble
    radius: float | None

    def certify(self) -> Intervals:
        """What is claimed."""
        case = self.case
        asked = {"rule": case.rule, "proof": case.proof, "threat": case.threat, "n_jobs": 1}
        return certify_interval(self.model, case.rows, case.noise, self.radius, **asked)

    def find_faults(self, claimed: Intervals) -> list[int]:
        """The rows of which an attack finds an answer outside of what is claimed."""
        case = self.case
        found = attack_interval(
            self.model, case.rows, case.noise, self.radius, rule=case.rule, threat=case.threat, n_jobs=1
        )
        own = (claimed.low <= claimed.value) & (claimed.value <= claimed.high)
        return np.flatnonzero(found.find_outside(claimed) | ~own).tolist()


def draw_number_case(random: Random, draw: Callable[[Random], Case] = draw_case) -> NumberCase:
    """A case of two classes whose first member answers with its sum."""
    case = draw(random)
    while case.model.n_classes > 2:
        case = draw(random)
    member = case.model.members[0]
    model = AdditiveEnsemble(
        member.terms, Value(random.randint(-1000, 1000)), member.n_features, member.levels, member.score_error
    )
    if case.norm is None:
        return NumberCase(case, model, None)
    if case.norm == 0:
        return NumberCase(case, model, float(random.randint(0, 3)))
    size = 1.0 if case.noise is None else case.noise.magnitude
    return NumberCase(case, model, random.choice([0.0, 1e-3, 0.1, 0.5, 1.0, 4.0, math.inf]) * size)


def check_numbers(count: int, seed: int, draw: Callable[[Random], Case] = draw_case) -> Iterator[str]:
    """What is wrong with the intervals of many cases."""
    for number in range(count):
        drawn = draw_number_case(Random(f"{seed}:{number}"), draw)
        missing = drawn.case.threat.missing_budget and not drawn.model.missing_features
        if not missing:
            claimed = drawn.certify()
            yield from (f"case {seed}:{number}, row {at}: {drawn!r}" for at in drawn.find_faults(claimed))
