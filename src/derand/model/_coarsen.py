"""A model on a coarser grid: quicker to ask, with other answers near ties. Must not know noise or certificates.

Nothing is proven of such a surrogate: it leads searches, whose finds the model itself checks, and shows pictures.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from derand._core.arrays import IntArray
from derand.model._additive import AdditiveEnsemble, Model
from derand.model._terms import TERMS, Term
from derand.model._vote import WeightedVote


def coarsen(model: Model, levels: int) -> Model:
    """The model with scores on a grid of about so many levels from its lowest to its highest sum; itself if it is.

    Examples
    --------
    >>> from derand import AdditiveEnsemble, StepFunction
    >>> fine = AdditiveEnsemble([StepFunction(0, [0.0], [-1000, 1003])], 499, 1)
    >>> coarse = coarsen(fine, 20)
    >>> coarse.terms[0].cell_scores.tolist(), coarse.threshold
    ([-10, 10], 4)
    """
    members = [_coarsen_sum(member, levels) for member in model.members]
    if all(one is other for one, other in zip(members, model.members, strict=True)):
        return model
    return members[0] if model.weights is None else WeightedVote(tuple(members), model.weights)


def find_coarse_step(member: AdditiveEnsemble, levels: int) -> int:
    """How many grid units of a sum are one of its surrogate on a grid of so many levels; 0 or 1 where it is its own.

    `member`: of one output.
    """
    moved = [term for term in member.terms if term.axes or term.is_tree]
    span = sum(int(np.ptp(term.score_range() if term.is_tree else term.cell_scores)) for term in moved)
    return -(-span // levels)


def _coarsen_sum(member: AdditiveEnsemble, levels: int) -> AdditiveEnsemble:
    grid = find_coarse_step(member, levels)
    if grid < 2 or member.threshold is None:
        return member
    threshold = math.floor(member.threshold / grid)
    terms = [map_scores(term, lambda scores: np.rint(scores / grid).astype(np.int64)) for term in member.terms]
    return AdditiveEnsemble(terms, threshold, member.n_features)


def map_scores(term: Term, change: Callable[[IntArray], IntArray]) -> Term:
    """The same term with other scores, those of unseen and missing values included.

    `term`: with cells, or of trees.
    """
    described = term.describe()
    if "scores" not in described:
        raise TypeError(f"A term needs its scores among what it describes, to be put on another grid: {term.kind!r}.")
    for name in ("scores", "other", "missing") if len(term.axes) < 2 else ("scores",):  # of several it names axes
        if described.get(name) is not None:
            described[name] = change(np.asarray(described[name])).tolist()
    return TERMS[term.kind](**described)
