"""Labels alone: what a rule answers, without anything proven about it. Must not know how rules find them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray
from derand.certificates.bounds.class_scores import expect_classes
from derand.certificates.bounds.linear import label_lines, weigh_lines
from derand.certificates.bounds.majority import decide_votes, vote_share
from derand.certificates.bounds.packing import find_problems
from derand.certificates.bounds.pairwise import label_classes, weigh_classes
from derand.certificates.rules.base import make_engine
from derand.certificates.rules.mean import expect_scores, sketch_scores
from derand.certificates.rules.registry import find_rule
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise


def find_labels(
    model: Model, rows: NDArray[Any], noise: Noise | None, *, rule: str = "vote", n_jobs: int | None = None
) -> IntArray:
    """Label of each row by a rule, 0, 1, ..., that of `certify`, for rows that were checked already."""
    found, engine = find_rule(rule), make_engine(model, rows.shape[0], n_jobs)
    if model.is_linear:
        (ensemble,) = model.members
        return label_lines(ensemble, rows)
    if model.n_classes > 2:
        (ensemble,) = model.members
        return label_classes(ensemble, rows, noise, found, engine)
    labels = [
        found.find_labels(problem, rows, noise, engine) for member in model.members for problem in find_problems(member)
    ]
    return labels[0] if model.weights is None else decide_votes(np.stack(labels), model.weights)


def measure_margins(model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Distance of the expected score from the threshold, divided by the levels: positive exactly for label 1.

    Quick rather than exact: under noise it is off by some 1e-4 of a term's range.

    Parameters
    ----------
    model : AdditiveEnsemble
    rows : array of shape (n_rows, n_features)
        Checked already.
    noise : Noise or None
        None for the score itself.

    Returns
    -------
    array of shape (n_rows,)
    """
    is_one = find_labels(model, rows, noise, rule="mean") == 1
    margin = _measure_lead(model, rows, noise) / model.levels
    return np.where(is_one, np.maximum(margin, TINY), np.minimum(margin, 0.0))


def _measure_lead(model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """How far the expected score lies above the threshold, quickly."""
    if model.is_linear:
        difference = model.duel(0, 1)
        return np.asarray(difference.score(rows) - (difference.threshold or 0))
    (problem,) = find_problems(model)
    score = sketch_scores(problem.terms, rows, noise) + problem.terms.fixed_scores(rows)
    return np.asarray(score - problem.threshold)


def expect_margins(model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Expected score of each of several classes, divided by the levels: the label by the mean has the largest.

    Parameters
    ----------
    model : AdditiveEnsemble
        With the decision Argmax.
    rows : array of shape (n_rows, n_features)
        Checked already.
    noise : Noise or None
        None for the scores themselves.

    Returns
    -------
    array of shape (n_rows, n_classes)
    """
    return expect_classes(model, rows, noise) / model.levels


def weigh_votes(model: AdditiveEnsemble, rows: FloatArray, noise: Noise, n_jobs: int | None = None) -> FloatArray:
    """Logarithm of the odds with which each of several classes wins its worst duel: the label has the largest.

    Parameters
    ----------
    model, rows, noise
        As for `expect_margins`.
    n_jobs : int or None

    Returns
    -------
    array of shape (n_rows, n_classes)
    """
    engine = make_engine(model, rows.shape[0], n_jobs)
    if model.is_linear:
        return weigh_lines(model, rows, noise)
    return weigh_classes(model, rows, noise, find_rule("vote"), engine)


def place_scores(model: Model, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Where the expected score stands between the least possible one, -1, the threshold, 0, and the largest one, 1.

    For a vote the weight of the members ahead, as a share; of a linear model, which has no extremes, the score itself
    over its size and 1. Positive exactly for label 1 of the rule "mean".
    """
    is_one = find_labels(model, rows, noise, rule="mean") == 1
    if model.weights is not None:
        votes = [find_labels(member, rows, noise, rule="mean") for member in model.members]
        place = 2 * vote_share(np.stack(votes) ^ (model.weights < 0)[:, None], np.abs(model.weights)) - 1
    elif model.is_linear:
        (ensemble,) = model.members
        lead = _measure_lead(ensemble, rows, noise) / ensemble.levels
        place = lead / (1 + np.abs(lead))
    else:
        (ensemble,) = model.members
        (problem,) = find_problems(ensemble)
        score = expect_scores(problem.terms, rows, noise) + problem.terms.fixed_scores(rows)
        lowest, highest = (sum(one.score_range()[end] for one in ensemble.terms) for end in (0, 1))
        above, below = max(highest - problem.threshold, 1), max(problem.threshold - lowest, 1)
        place = (score - problem.threshold) / np.where(is_one, above, below)
    return np.where(is_one, np.clip(place, 4 * EPSILON, 1.0), np.clip(place, -1.0, 0.0))
