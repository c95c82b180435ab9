"""Certificates of an additive ensemble without noise: the cheapest change that flips the label, for any lp norm.

Wang et al. (2020) bound it by a dynamic programme over the change of the score; scores are integers here, so that the
programme finds the cheapest change itself. For linf and l0 sorting is enough. Must not know noise or training.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import count_threads, run_blocks
from derand.certificates import Certificates
from derand.kernels.compiling import compile_loop
from derand.model import AdditiveEnsemble, StepFunction
from derand.threat import Threat

_BLOCK_ROWS = 64


def certify_without_noise(
    model: AdditiveEnsemble, X: ArrayLike, p: float = 2.0, *, n_jobs: int | None = None
) -> Certificates:
    """Label of each row without noise, and the radius within which no change of its numbers can flip it.

    Parameters
    ----------
    model : AdditiveEnsemble
        With a threshold. Categorical features are taken as they are.
    X : array-like of shape (n_rows, n_features)
    p : float
        The norm of the ball: 1 or larger, `inf`, or 0. For 0 the radius is the least number of numerical features
        that must change.
    n_jobs : int or None
        Threads; None is all cores.

    Returns
    -------
    Certificates
        The ball is open, and the radius the largest one but for rounding downward. `failure` is NaN.

    Notes
    -----
    Cost per row: cells times the distance of the score from the threshold, for p other than 0 and inf.

    Examples
    --------
    >>> from derand import AdditiveEnsemble
    >>> model = AdditiveEnsemble.from_stumps([0, 1], [0.5, 0.5], [0.1, 0.1], [0.9, 0.9], n_features=2)
    >>> certify_without_noise(model, [[3.5, 4.5]], p=2).radius.round(6).tolist()
    [3.0]
    >>> certify_without_noise(model, [[-2.5, -3.5]], p=2).radius.round(6).tolist()
    [5.0]
    """
    if not (p == 0 or p >= 1):
        raise ValueError(f"`p` must be 1 or larger, infinity, or 0, got {p!r}.")
    if model.threshold is None:
        raise ValueError("`model` must have a threshold: without one it makes no decision.")
    rows = np.asarray(X, dtype=np.float64)
    score = model.score(rows)
    label = (score > model.threshold).astype(np.int64)
    needed = np.where(label == 1, score - model.threshold, model.threshold - score + 1)
    direction = np.where(label == 1, -1, 1)
    terms = [term for term in model.step_functions if term.edges.size]
    starts = np.cumsum([0, *(term.edges.size + 1 for term in terms)], dtype=np.int64)
    radius = np.empty(rows.shape[0])

    def work(block: slice) -> None:
        costs, gains = _list_moves(terms, rows[block], direction[block])
        radius[block] = _find_radii(costs, gains, starts, needed[block], p)

    run_blocks(work, rows.shape[0], _BLOCK_ROWS, count_threads(n_jobs))
    unknown = np.full(rows.shape[0], np.nan)
    return Certificates(label, unknown, unknown, radius, Threat(norm=p), rule="unsmoothed")


def _list_moves(terms: list[StepFunction], rows: FloatArray, direction: IntArray) -> tuple[FloatArray, IntArray]:
    """For each row and cell: how far away it is, and by how much moving there helps to flip the label."""
    costs: list[FloatArray] = [np.empty((rows.shape[0], 0))]
    gains: list[IntArray] = [np.empty((rows.shape[0], 0), dtype=np.int64)]
    for term in terms:
        x = rows[:, term.feature, None]
        low, high = np.append(-np.inf, term.edges), np.append(term.edges, np.inf)
        distance = np.maximum(np.maximum(low - x, x - high), 0.0)
        costs.append(distance * (1 - 2.0**-52))  # the difference was rounded to nearest
        gains.append((term.cell_scores - term.evaluate(x[:, 0])[:, None]) * direction[:, None])
    return np.concatenate(costs, axis=1), np.concatenate(gains, axis=1)


def _find_radii(costs: FloatArray, gains: IntArray, starts: IntArray, needed: IntArray, p: float) -> FloatArray:
    n_terms = starts.size - 1
    if not n_terms:
        return np.full(needed.size, np.inf)
    if p == 0:
        best = np.stack([gains[:, starts[k] : starts[k + 1]].max(axis=1) for k in range(n_terms)], axis=1)
        helped = np.cumsum(-np.sort(-np.maximum(best, 0), axis=1), axis=1) >= needed[:, None]
        return np.where(helped.any(axis=1), 1.0 + helped.argmax(axis=1), np.inf)
    if np.isinf(p):
        return _find_largest_moves(costs, gains, starts, needed)
    with np.errstate(over="ignore"):
        cheapest = _find_cheapest(costs**p, np.maximum(gains, 0), starts, needed)
        # p-th powers, their sum and the root are each right to a few units in the last place
        return np.asarray(cheapest ** (1 / p) * (1 - (n_terms + 16) * 2.0**-52))


def _find_largest_moves(costs: FloatArray, gains: IntArray, starts: IntArray, needed: IntArray) -> FloatArray:
    """linf: all features move at the same time, each to the best cell within reach."""
    radius = np.full(costs.shape[0], np.inf)
    terms = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    for row in range(costs.shape[0]):
        best = np.zeros(starts.size - 1, dtype=np.int64)
        total = 0
        for cell in np.argsort(costs[row], kind="stable"):
            more = gains[row, cell] - best[terms[cell]]
            if more > 0:
                best[terms[cell]] += more
                total += more
            if total >= needed[row]:
                radius[row] = costs[row, cell]
                break
    return radius


@compile_loop()
def _find_cheapest(costs: FloatArray, gains: IntArray, starts: IntArray, needed: IntArray) -> FloatArray:
    """Least sum of costs with which the gains reach what is needed, at most one cell per term; infinite if nothing."""
    result = np.empty(costs.shape[0])
    for row in range(costs.shape[0]):
        target = needed[row]
        least = np.full(target + 1, np.inf)  # least[g]: cheapest way to gain g, or at least the target
        least[0] = 0.0
        reached = 0
        for term in range(starts.size - 1):
            begin, end = starts[term], starts[term + 1]
            top = min(target, reached + gains[row, begin:end].max())
            for gain in range(top, 0, -1):
                best = least[gain]
                for cell in range(begin, end):
                    more = gains[row, cell]
                    if more > 0:
                        if gain < target:
                            if more <= gain:
                                best = min(best, least[gain - more] + costs[row, cell])
                        else:
                            for before in range(max(target - more, 0), target):
                                best = min(best, least[before] + costs[row, cell])
                least[gain] = best
            reached = top
        result[row] = least[target]
    return result
