"""The paper's Algorithm 1 in plain NumPy, all rows at once: what the kernels' speed and results are compared with.

Probabilities are rounded to nearest and nothing bounds the errors, so these masses are no certificates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, IntArray
from derand.model import AdditiveEnsemble, StepFunction
from derand.noise import Noise, as_noise


def certify_plainly(model: AdditiveEnsemble, X: ArrayLike, noise: Noise | str) -> tuple[IntArray, FloatArray]:
    """Smoothed label and failure mass of each row, by the paper's dynamic programme.

    Parameters
    ----------
    model : AdditiveEnsemble
        Of step functions, with a threshold.
    X : array-like of shape (n_rows, n_features)
    noise : Noise or str

    Returns
    -------
    label : array of shape (n_rows,)
    failure : array of shape (n_rows,)

    Examples
    --------
    >>> from derand import AdditiveEnsemble
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> label, failure = certify_plainly(model, [[0.0], [1.0]], "uniform:1")
    >>> label.tolist(), failure.tolist()
    ([0, 1], [0.25, 0.25])
    """
    if model.category_tables or model.threshold is None:
        raise ValueError("`model` must have step functions only, and a threshold.")
    rows = np.asarray(X, dtype=np.float64)
    terms = model.step_functions
    base = sum(int(term.scores.min()) for term in terms)
    pmf = compute_pmf(terms, rows, as_noise(noise))
    support = base + np.arange(pmf.shape[1])
    mass_of_0 = pmf[:, support <= model.threshold].sum(axis=1)
    mass_of_1 = pmf[:, support > model.threshold].sum(axis=1)
    return (mass_of_1 > mass_of_0).astype(np.int64), np.minimum(mass_of_0, mass_of_1)


def compute_pmf(terms: tuple[StepFunction, ...], rows: FloatArray, noise: Noise) -> FloatArray:
    """P(score = lowest score + t) for each row and t = 0, 1, ...: the last line of the paper's table.

    As the paper notes, one line of the table is enough, and of it the range that has been reached.
    """
    spans = [int(term.scores.max() - term.scores.min()) for term in terms]
    pmf = np.zeros((rows.shape[0], sum(spans) + 1))
    pmf[:, 0] = 1.0
    reached = 1
    for term, span in zip(terms, spans, strict=True):
        before = pmf[:, :reached].copy()
        pmf[:, :reached] = 0.0
        for score, mass in zip(term.cell_scores - term.scores.min(), _cell_masses(term, rows, noise), strict=True):
            pmf[:, score : score + reached] += before * mass[:, None]
        reached += span
    return pmf


def _cell_masses(term: StepFunction, rows: FloatArray, noise: Noise) -> list[FloatArray]:
    """Probability of each cell of a term, for all rows; the outer cells without cancellation."""
    scale = noise.scales(np.array([term.feature]))
    if not term.edges.size:
        return [np.ones(rows.shape[0])]
    distances = (term.edges - rows[:, term.feature, None]) / scale
    below = noise.cdf(distances)
    middle = np.diff(below, axis=1)
    return [below[:, 0], *middle.T, noise.cdf(-distances[:, -1])]


def certify_jointly_plainly(
    model: AdditiveEnsemble, X: ArrayLike, noise: Noise | str, budgets: Sequence[int]
) -> FloatArray:
    """Failure mass of each row for each number of categorical changes: one row and one budget at a time.

    Parameters
    ----------
    model : AdditiveEnsemble
        With a threshold.
    X : array-like of shape (n_rows, n_features)
    noise : Noise or str
    budgets : sequence of int

    Returns
    -------
    array of shape (n_rows, n_budgets)
        Of the label of the unchanged row.
    """
    if model.threshold is None:
        raise ValueError("`model` must have a threshold.")
    return np.array(
        [[_joint_failure(model, row, as_noise(noise), budget) for budget in budgets] for row in np.asarray(X, float)]
    )


def _joint_failure(model: AdditiveEnsemble, row: FloatArray, noise: Noise, budget: int) -> float:
    """The paper's joint certification of one row: the law of the score, shifted by the worst categorical changes."""
    pmf = compute_pmf(model.step_functions, row[None], noise)[0]
    support = sum(int(term.scores.min()) for term in model.step_functions) + np.arange(pmf.size)
    scores = [int(table.evaluate([row[table.feature]])[0]) for table in model.category_tables]
    ranges = [table.score_range(unseen=True) for table in model.category_tables]
    falls = sorted((score - low for score, (low, _) in zip(scores, ranges, strict=True)), reverse=True)
    rises = sorted((high - score for score, (_, high) in zip(scores, ranges, strict=True)), reverse=True)
    shifted = support + sum(scores)
    is_one = pmf[shifted > model.threshold].sum() > 0.5
    worst = shifted - sum(falls[:budget]) if is_one else shifted + sum(rises[:budget])
    return float(pmf[(worst <= model.threshold) if is_one else (worst > model.threshold)].sum())
