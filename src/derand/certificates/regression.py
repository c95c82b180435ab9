"""Certifying numbers: the border where input is checked, for regression models.

Owns `certify_interval`, `certify_radius` and the answers themselves. Must not know how a rule proves what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, Numbers, is_number
from derand.certificates.classification import check_request, read_request, resolve_rows
from derand.certificates.kinds import kind_of, stands_for_another
from derand.certificates.results.certificates import Intervals, ToleranceRadii
from derand.certificates.rules.base import DEFAULT_SEARCH, Query, Score, TreeSearch, make_query, read_budget
from derand.certificates.rules.registry import find_rule
from derand.model import AdditiveEnsemble, Model, as_model
from derand.noise import Noise
from derand.threat import Threat, as_threats


def certify_interval(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    radius: float | None,
    *,
    l0: int | None = None,
    unseen: bool | None = None,
    rule: str = "vote",
    proof: str = "best",
    threat: Threat | None = None,
    n_jobs: int | None = None,
    budget: int | None = None,
) -> Intervals:
    """The number that answers each row, and an interval that no change within the radius can take it out of.

    Parameters
    ----------
    model : AdditiveEnsemble
        With the decision `Value`.
    X : array-like of shape (n_rows, n_features)
        As for `certify`.
    noise : Noise, str or None
        As for `certify`; None, or "none", is the model as deployed, by the rule "mean".
    radius : float or None
        Changes smaller than this are covered, in the threat's norm and units; with 0 no number changes. For norm 0 so
        many columns may become anything. None where limits alone say what may change (`Threat(norm=None)`).
    l0, unseen, threat
        As for `certify`: categories that may change beside.
    rule : {"vote", "mean"}
        How the answer is found: "vote" is the median of noisy copies, the lower one of two; "mean" is the expected
        score.
    proof : {"best", "paper"}
        What may prove the ends of a median, as for `certify`.
    n_jobs : int or None
        Threads; None or -1 uses all cores.
    budget : int or None
        As for `certify`: nodes for each end of a row.

    Returns
    -------
    Intervals

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, StepFunction, certify_interval
    >>> from derand.model import Value
    >>> model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 100])], Value(500), n_features=1, levels=10)
    >>> found = certify_interval(model, [[-1.0], [0.5]], Gaussian(0.5), radius=0.6)
    >>> found.value.tolist(), found.low.tolist(), found.high.tolist()
    ([50.0, 60.0], [50.0, 50.0], [50.0, 60.0])
    >>> certify_interval(model, [[0.5]], Gaussian(0.5), radius=0.5, rule="mean").to_pandas().round(2).values.tolist()
    [[58.41, 55.0, 59.77, 4.77]]
    """
    asked = as_one_threat(l0, unseen, threat)
    chosen, rows = read_request(model, X, noise, [asked], rule, proof)
    search = TreeSearch(read_budget(budget))
    return certify_interval_checked(
        model, rows, chosen, asked, radius=radius, rule=rule, proof=proof, n_jobs=n_jobs, search=search
    )


def certify_radius(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    tolerance: float,
    *,
    l0: int | None = None,
    unseen: bool | None = None,
    rule: str = "vote",
    proof: str = "best",
    threat: Threat | None = None,
    n_jobs: int | None = None,
    budget: int | None = None,
) -> ToleranceRadii:
    """The number that answers each row, and the radius within which no change can move it by more than a tolerance.

    Parameters
    ----------
    model, X, noise, l0, unseen, rule, proof, threat, n_jobs, budget
        As for `certify_interval`.
    tolerance : float
        In units of the answer, 0 or larger. Answers of a median and of a model without noise are whole multiples of
        1 / levels: these are compared exactly, before they are rounded to doubles.

    Returns
    -------
    ToleranceRadii

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, StepFunction, certify_radius
    >>> from derand.model import Value
    >>> model = AdditiveEnsemble([StepFunction(0, [0.0, 2.0], [0, 100, 130])], Value(0), n_features=1, levels=10)
    >>> certify_radius(model, [[1.5]], Gaussian(0.5), tolerance=4.0).radius.round(6).tolist()
    [1.5]
    """
    asked = as_one_threat(l0, unseen, threat)
    chosen, rows = read_request(model, X, noise, [asked], rule, proof)
    search = TreeSearch(read_budget(budget))
    return certify_radius_checked(
        model, rows, chosen, asked, tolerance=tolerance, rule=rule, proof=proof, n_jobs=n_jobs, search=search
    )


def certify_interval_checked(
    model: Model,
    rows: Numbers,
    noise: Noise | None,
    threat: Threat,
    *,
    radius: float | None,
    rule: str = "vote",
    proof: str = "best",
    n_jobs: int | None = None,
    search: TreeSearch = DEFAULT_SEARCH,
) -> Intervals:
    """`certify_interval` for rows that were checked already."""
    ensemble = require_number(model)
    check_request(rule, proof, noise, [threat])
    asked = resolve_rows(threat, ensemble, noise, rows)
    size = check_radius(radius, asked.norm)
    query = make_query(
        ensemble, rows.shape[0], noise, find_rule(rule), asked, n_jobs=n_jobs, proof=proof, search=search
    )
    found = _ask_scores(ensemble, rows, query, lambda score, block: score.bound_interval(block, size))
    value, low, high = (_as_values(ensemble, one) for one in found)
    if stands_for_another(ensemble):  # the scores of the model that is meant need not lie on the grid
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return Intervals(value, low, high, None if asked.norm is None else size, asked.threat, rule, noise)


def certify_radius_checked(
    model: Model,
    rows: Numbers,
    noise: Noise | None,
    threat: Threat,
    *,
    tolerance: float,
    rule: str = "vote",
    proof: str = "best",
    n_jobs: int | None = None,
    search: TreeSearch = DEFAULT_SEARCH,
) -> ToleranceRadii:
    """`certify_radius` for rows that were checked already."""
    ensemble = require_number(model)
    check_request(rule, proof, noise, [threat])
    if not is_number(tolerance) or not 0 <= tolerance < math.inf:
        raise ValueError(f"`tolerance` must be a finite number, 0 or larger, got {tolerance!r}.")
    room = Fraction(float(tolerance)) * ensemble.levels
    asked = resolve_rows(threat, ensemble, noise, rows)
    query = make_query(
        ensemble, rows.shape[0], noise, find_rule(rule), asked, n_jobs=n_jobs, proof=proof, search=search
    )
    scores, radius, proofs = _ask_scores(ensemble, rows, query, lambda score, block: score.bound_radius(block, room))
    value, proofs = _as_values(ensemble, scores), proofs.astype(np.uint8)
    return ToleranceRadii(value, float(tolerance), radius, asked.threat, rule, noise, proofs)


def find_answers(
    model: Model, rows: NDArray[np.generic], noise: Noise | None, *, rule: str = "vote", n_jobs: int | None = None
) -> FloatArray:
    """The number that answers each row, for rows that were checked already: the `value` of `certify_interval`."""
    ensemble = require_number(model)
    check_request(rule, "best", noise, [Threat()])
    query = make_query(ensemble, rows.shape[0], noise, find_rule(rule), n_jobs=n_jobs)
    (scores,) = _ask_scores(ensemble, rows, query, lambda score, block: (score.compute(block),))
    return _as_values(ensemble, scores)


def _ask_scores(
    model: AdditiveEnsemble,
    rows: Numbers,
    query: Query,
    ask: Callable[[Score, FloatArray], tuple[Numbers, ...]],
) -> list[Numbers]:
    """What is asked of the scores of each block of rows, put together."""
    score = kind_of(model).score(query, rows.shape[0])
    return query.run(rows, score.block_rows, lambda block: ask(score, block))


def _as_values(model: AdditiveEnsemble, scores: Numbers) -> FloatArray:
    """Scores as predictions. For whole scores each step keeps their order, so that ends stay outside."""
    assert model.offset is not None  # see `require_number`
    return np.asarray((scores + model.offset) / model.levels)


def require_number(model: Model) -> AdditiveEnsemble:
    """The same as a model whose answer is a number, or an error."""
    (ensemble, *others) = as_model(model).members
    if others or model.weights is not None or ensemble.offset is None:
        raise ValueError(
            "`model` must have a number as its answer, got a classifier: use `certify`, or give "
            "AdditiveEnsemble the decision `Value`."
        )
    return ensemble


def as_one_threat(l0: int | None, unseen: bool | None, threat: Threat | None) -> Threat:
    """The threat that is asked for; several budgets at once are refused."""
    if np.ndim(l0) != 0:  # type: ignore[arg-type]
        raise ValueError(f"`l0` must be one number of categorical features here, got {l0!r}: ask for each by itself.")
    (asked,) = as_threats(l0, unseen, threat)
    return asked


def check_radius(radius: float | None, norm: float | None) -> float:
    """The radius that changes are smaller than; infinite without a ball."""
    if norm is None:
        if radius is not None:
            raise ValueError(
                f"`radius` must be None where limits alone say what may change (norm None), got {radius!r}."
            )
        return math.inf
    if radius is None or not is_number(radius) or not radius >= 0:
        raise ValueError(f"`radius` must be a number, 0 or larger, got {radius!r}.")
    return float(radius)
