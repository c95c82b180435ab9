"""Several classes without the package's own duels: the exact law of all scores at once, and any two classes as a case.

A class has a row's label for sure where it wins all of its duels, by shares of noisy copies or by expected scores; ties
go to the lower class. Within its radius a label wins all of its duels, so that each of them is a claim of two classes.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, CategoryTable, StepFunction
from derand.model import Argmax, Term
from tests.fuzz.drawing import Case
from tests.fuzz.exact import list_cells
from tests.oracle import Number

_NEAR = 1e-11  # of a tie, where labels that are computed may differ


def take_duel(case: Case, low: int, high: int) -> Case:
    """The same with the two classes alone: class 1 is the higher one."""
    (model,) = case.model.members
    offsets = find_offsets(model)
    terms = [_subtract(term, high, low) for term in model.terms]
    duel = AdditiveEnsemble(terms, offsets[low] - offsets[high], model.n_features, score_error=2 * model.score_error)
    return replace(case, model=duel)


def find_offsets(model: AdditiveEnsemble) -> tuple[int, ...]:
    """What is added to the score of each class."""
    assert isinstance(model.decision, Argmax)
    return model.decision.offsets


def _subtract(term: Term, plus: int, minus: int) -> Term:
    told = term.describe()

    def take(scores: Any) -> Any:
        return None if scores is None else int(scores[plus]) - int(scores[minus])

    scores = [take(cell) for cell in told["scores"]]
    if term.axes:
        return StepFunction(told["feature"], told["edges"], scores, take(told.get("missing")))
    return CategoryTable(told["feature"], told["categories"], scores, take(told["other"]), take(told.get("missing")))


def find_joint_law(case: Case, row: np.ndarray) -> dict[tuple[int, ...], Number]:
    """Probability of each choice of scores of all classes, offsets included; without noise one of probability 1."""
    (model,) = case.model.members
    law: dict[tuple[int, ...], Number] = {find_offsets(model): 1}
    for term in model.terms:
        grown: dict[tuple[int, ...], Number] = {}
        for (scores, mass), (steps, cell) in itertools.product(law.items(), list_cells(case, term, row)):
            total = tuple(map(sum, zip(scores, steps, strict=True)))
            grown[total] = grown.get(total, 0) + mass * cell
        law = grown
    return law


def list_labels(case: Case, row: np.ndarray) -> set[int]:
    """The labels that a row may get: one, or several where it is too near a tie for doubles to tell."""
    law, classes = find_joint_law(case, row), range(case.model.n_classes)
    if case.noise is None:
        (scores,) = law
        return {scores.index(max(scores))}
    if case.rule == "mean":
        means = [sum(scores[one] * mass for scores, mass in law.items()) for one in classes]
        size = max(abs(score) for scores in law for score in scores) + 1
        return {one for one in classes if means[one] >= max(means) - _NEAR * size}
    worst = [min(_share(law, one, rival) for rival in classes if rival != one) for one in classes]
    winners = {one for one in classes if worst[one] >= 0.5 - _NEAR}
    if max(worst) > 0.5 + _NEAR:
        return winners
    least = max(worst) - 4 * _NEAR  # nobody wins: the class that is beaten least
    blurred = bool(case.model.members[0].score_error)  # which counts as a tie what another model might turn
    return winners | {one for one in classes if blurred or worst[one] >= least}


def _share(law: dict[tuple[int, ...], Number], one: int, rival: int) -> float:
    """With which share of copies a class is ahead of another."""
    ahead = [mass for scores, mass in law.items() if (scores[one], rival) > (scores[rival], one)]
    return math.fsum(map(float, ahead))
