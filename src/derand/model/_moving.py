"""A model of two classes that cuts elsewhere: the same sum, another level.

Owns where the new level lies on the grid. Must not know what a score means (a logarithm of odds, a share), noise or
certificates: whoever moves a threshold says by how much of the score.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON
from derand.model._additive import AdditiveEnsemble
from derand.model._coarsen import map_scores
from derand.model._decision import Threshold
from derand.model._quantize import move_level
from derand.model._terms import MAX_SCORE, TERMS, Term

_FINE = 2**26
"""What all scores of a refined model reach together at most: a thousandth of a whole score of a trained model."""


def move_threshold(model: AdditiveEnsemble, lead: float, *, refine: bool = False) -> AdditiveEnsemble:
    """The same sum, class 1 iff it is ahead of the model's threshold by more than `lead`.

    `model`: of two classes. `lead`: in units of the score divided by `levels`, such as logarithms of odds; negative for
    a lower threshold. `refine`: whether scores are put on a finer grid first, so that the level also lies close to the
    place that is asked for where it is compared with expected scores, which are no whole numbers. The functions stay
    the same. The result: a model that is defined on its grid is so again: of whole scores exactly those are above the
    level that are ahead by more. One that stands for another model (`score_error`) covers what the level is rounded by.

    Examples
    --------
    >>> from derand import AdditiveEnsemble, StepFunction
    >>> model = AdditiveEnsemble([StepFunction(0, [0.5], [-150, 150])], threshold=0, n_features=1, levels=100)
    >>> move_threshold(model, -1.6094).threshold, move_threshold(model, 0.0) is model
    (-161, True)
    >>> finer = move_threshold(model, -1.6094, refine=True)
    >>> round(finer.threshold / finer.levels, 5)
    -1.6094
    """
    if model.threshold is None:
        raise ValueError("`model` must have a threshold to be moved: give AdditiveEnsemble the decision `Threshold`.")
    if not math.isfinite(lead):
        raise ValueError(f"`lead` must be finite, got {lead!r}.")
    if lead == 0:
        return model
    stands_for_another = bool(model.score_error) or model.is_linear
    if model.is_linear:
        model = _make_room(model, lead)
    elif refine and not (stands_for_another or model.has_trees):  # expected scores of trees are whole
        model = _refine(model, lead)
    assert model.threshold is not None  # as before
    level = move_level(model.threshold, model.levels, lead)
    if not model.is_linear:  # no score of a model with cells is beyond
        level = max(-MAX_SCORE, min(MAX_SCORE, level))
    error = (model.score_error + 1.0) * (1 + 4 * EPSILON) if stands_for_another else 0.0
    return AdditiveEnsemble(model.terms, level, model.n_features, model.levels, min(error, MAX_SCORE))


def _refine(model: AdditiveEnsemble, lead: float) -> AdditiveEnsemble:
    """The same model on a grid that is finer by a power of two: whole scores times that."""
    sizes = [max(abs(score) for score in term.score_range()) for term in model.terms]
    level = model.threshold or 0
    largest = max(sum(sizes), abs(level), abs(move_level(level, model.levels, lead)), 1)
    factor = 2 ** max(0, math.floor(math.log2(_FINE / largest)))
    terms = [map_scores(term, lambda scores: scores * factor) for term in model.terms]
    return AdditiveEnsemble(terms, level * factor, model.n_features, model.levels * factor)


def _make_room(model: AdditiveEnsemble, lead: float) -> AdditiveEnsemble:
    """A linear model on a grid coarse enough for the level: slopes divided by a power of two, which loses nothing."""
    level = model.threshold or 0
    farthest = max(abs(move_level(level, model.levels, lead)), 1)
    power = min(max(0, math.ceil(math.log2(farthest)) - 51), int(math.log2(model.levels)))
    if not power or model.levels % 2**power:
        return model
    grid = 2**power
    tables = sum(term.slope is None for term in model.terms)
    error = (model.score_error / grid + 0.5 * tables + 1.0) * (1 + 4 * EPSILON)
    terms = [_divide(term, grid) for term in model.terms]
    return AdditiveEnsemble(terms, Threshold(level // grid), model.n_features, model.levels // grid, error)


def _divide(term: Term, grid: int) -> Term:
    def divide(scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.rint(scores / grid).astype(np.int64)

    if term.slope is None:
        return map_scores(term, divide)
    described = term.describe()
    return TERMS[term.kind](
        **{name: one if name == "feature" else (np.asarray(one) / grid).tolist() for name, one in described.items()}
    )
