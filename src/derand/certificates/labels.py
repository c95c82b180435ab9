"""Predictions alone: what a rule answers, without anything proven about it. Must not know how rules find them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray
from derand.certificates.kinds import kind_of
from derand.certificates.rules.base import make_query
from derand.certificates.rules.registry import RULES, find_rule
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise


def find_labels(
    model: Model, rows: NDArray[np.generic], noise: Noise | None, *, rule: str = "vote", n_jobs: int | None = None
) -> IntArray:
    """Label of each row by a rule, 0, 1, ..., that of `certify`, for rows that were checked already."""
    return kind_of(model).label(rows, make_query(model, rows.shape[0], noise, find_rule(rule), n_jobs=n_jobs))


def measure_margins(model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Distance of the expected score from the threshold, divided by the levels: positive exactly for label 1.

    Quick rather than exact: under noise it is off by some 1e-4 of a term's range.
    """
    is_one = find_labels(model, rows, noise, rule="mean") == 1
    margin = kind_of(model).subtract_threshold(rows, noise) / model.levels
    return np.where(is_one, np.maximum(margin, TINY), np.minimum(margin, 0.0))


def expect_margins(model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Expected score of each class of an Argmax, divided by the levels, (n_rows, n_classes).

    The label by the mean has the largest one.
    """
    return kind_of(model).expect(rows, noise) / model.levels


def weigh_votes(model: AdditiveEnsemble, rows: FloatArray, noise: Noise, n_jobs: int | None = None) -> FloatArray:
    """Logarithm of the odds with which each of several classes beats its strongest rival, (n_rows, n_classes).

    The label has the largest.
    """
    return kind_of(model).weigh(rows, make_query(model, rows.shape[0], noise, RULES["vote"], n_jobs=n_jobs))


def place_scores(model: Model, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Where the expected score stands between the least possible one, -1, the threshold, 0, and the largest one, 1.

    For a vote the weight of the members ahead, as a share; of a linear model, which has no extremes, the score itself
    over its size and 1. Positive exactly for label 1 of the rule "mean".
    """
    is_one = find_labels(model, rows, noise, rule="mean") == 1
    position = kind_of(model).relate_to_range(rows, noise, is_one)
    return np.where(is_one, np.clip(position, 4 * EPSILON, 1.0), np.clip(position, -1.0, 0.0))
