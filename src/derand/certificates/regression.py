"""Certifying numbers: the border where input is checked, for models whose answer is a number.

Owns `certify_interval`, `certify_radius` and the answers themselves. Must not know how a rule proves what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray
from derand.certificates.bounds.packing import find_sum
from derand.certificates.classification import check_request, read_rows, resolve_rows
from derand.certificates.results.intervals import Intervals, ToleranceRadii
from derand.certificates.rules.base import make_engine
from derand.certificates.rules.mean import block_rows as mean_block_rows
from derand.certificates.rules.regression import NumberRule
from derand.certificates.rules.regression_linear import NumberByLines
from derand.certificates.rules.regression_mean import NumberByMean
from derand.certificates.rules.regression_vote import NumberByVote
from derand.certificates.rules.vote import block_rows as vote_block_rows
from derand.model import AdditiveEnsemble, Model, as_model
from derand.noise import Noise, as_noise_or_none
from derand.perturbation import Perturbation
from derand.threat import Threat, as_threats

Found = TypeVar("Found")


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
    chosen = as_noise_or_none(noise, asked.norm)
    check_request(rule, proof, chosen, [asked])
    rows = read_rows(as_model(model), X, chosen)
    return certify_interval_checked(model, rows, chosen, asked, radius=radius, rule=rule, proof=proof, n_jobs=n_jobs)


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
) -> ToleranceRadii:
    """The number that answers each row, and the radius within which no change can move it by more than a tolerance.

    Parameters
    ----------
    model, X, noise, l0, unseen, rule, proof, threat, n_jobs
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
    chosen = as_noise_or_none(noise, asked.norm)
    check_request(rule, proof, chosen, [asked])
    rows = read_rows(as_model(model), X, chosen)
    return certify_radius_checked(
        model, rows, chosen, asked, tolerance=tolerance, rule=rule, proof=proof, n_jobs=n_jobs
    )


def certify_interval_checked(
    model: Model,
    rows: NDArray[Any],
    noise: Noise | None,
    threat: Threat,
    *,
    radius: float | None,
    rule: str = "vote",
    proof: str = "best",
    n_jobs: int | None = None,
) -> Intervals:
    """`certify_interval` for rows that were checked already."""
    ensemble = require_number(model)
    check_request(rule, proof, noise, [threat])
    asked = resolve_rows(threat, ensemble, noise, rows)
    size = check_radius(radius, asked.norm)
    number = _Number(ensemble, rows, noise, asked, rule, proof, n_jobs)
    score, low, high = number.run(lambda of, block: of.bound(block, size))
    value, low, high = (number.as_answers(one) for one in (score, low, high))
    if ensemble.score_error or ensemble.is_linear:  # the scores of the model that is meant need not lie on the grid
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return Intervals(value, low, high, None if asked.norm is None else size, asked.threat, rule, noise)


def certify_radius_checked(
    model: Model,
    rows: NDArray[Any],
    noise: Noise | None,
    threat: Threat,
    *,
    tolerance: float,
    rule: str = "vote",
    proof: str = "best",
    n_jobs: int | None = None,
) -> ToleranceRadii:
    """`certify_radius` for rows that were checked already."""
    ensemble = require_number(model)
    check_request(rule, proof, noise, [threat])
    if not _is_number(tolerance) or not 0 <= tolerance < math.inf:
        raise ValueError(f"`tolerance` must be a finite number, 0 or larger, got {tolerance!r}.")
    room = Fraction(float(tolerance)) * ensemble.levels
    asked = resolve_rows(threat, ensemble, noise, rows)
    number = _Number(ensemble, rows, noise, asked, rule, proof, n_jobs)
    score, radius, proofs = number.run(lambda of, block: of.measure(block, room))
    return ToleranceRadii(
        number.as_answers(score), float(tolerance), radius, asked.threat, rule, noise, proofs.astype(np.uint8)
    )


def find_answers(
    model: Model, rows: NDArray[Any], noise: Noise | None, *, rule: str = "vote", n_jobs: int | None = None
) -> FloatArray:
    """The number that answers each row, for rows that were checked already: the `value` of `certify_interval`."""
    ensemble = require_number(model)
    check_request(rule, "best", noise, [Threat()])
    number = _Number(ensemble, rows, noise, resolve_rows(Threat(), ensemble, noise, rows), rule, "best", n_jobs)
    (score,) = number.run(lambda of, block: (of.find_scores(block),))
    return number.as_answers(score)


def require_number(model: Model) -> AdditiveEnsemble:
    """The same as a model whose answer is a number, or an error."""
    (ensemble, *others) = as_model(model).members
    if others or model.weights is not None or ensemble.offset is None:
        raise ValueError(
            "`model` must have a number as its answer, got one that tells classes apart: use `certify`, or give "
            "AdditiveEnsemble the decision `Value`."
        )
    return ensemble


def as_one_threat(l0: int | None, unseen: bool | None, threat: Threat | None) -> Threat:
    """The threat that is asked for; several budgets at once are refused."""
    if np.ndim(l0) != 0:  # type: ignore[arg-type]
        raise ValueError(f"`l0` must be one number of categorical features here, got {l0!r}: ask for each by itself.")
    (asked,) = as_threats(l0, unseen, threat)
    return asked


class _Number:
    """The rows of one request, and the rule that answers them, block by block."""

    def __init__(
        self,
        model: AdditiveEnsemble,
        rows: NDArray[Any],
        noise: Noise | None,
        perturbation: Perturbation,
        rule: str,
        proof: str,
        n_jobs: int | None,
    ) -> None:
        n_rows = rows.shape[0]
        self._model, self._rows = model, rows
        self._engine = engine = make_engine(model, n_rows, n_jobs, proof=proof)
        self._rule: NumberRule
        if model.is_linear:
            if proof == "paper":
                raise ValueError("`proof` must be 'best' for numbers of a linear model, which have no law of scores.")
            self._rule, self._block = NumberByLines(model, perturbation), mean_block_rows(n_rows, engine)
            return
        problem = find_sum(model)
        if rule == "vote":
            assert noise is not None  # see `ByVote.check`
            self._rule = NumberByVote(problem, noise, perturbation, engine)
            self._block = vote_block_rows(problem.law, engine, n_rows)
        else:
            self._rule, self._block = NumberByMean(problem, noise, perturbation), mean_block_rows(n_rows, engine)

    def run(self, ask: Callable[[NumberRule, FloatArray], tuple[NDArray[Any], ...]]) -> list[NDArray[Any]]:
        """What the rule says of each block, put together."""
        n_rows = self._rows.shape[0]
        parts: dict[int, tuple[NDArray[Any], ...]] = {}

        def ask_block(block: slice) -> None:
            parts[block.start] = ask(self._rule, np.ascontiguousarray(self._rows[block], dtype=np.float64))

        if not n_rows:
            ask_block(slice(0, 0))
        self._engine.run(ask_block, n_rows, self._block)
        return [np.concatenate(side) for side in zip(*(parts[start] for start in sorted(parts)), strict=True)]

    def as_answers(self, scores: NDArray[Any]) -> FloatArray:
        """Scores as answers. For whole scores each step keeps their order, so that ends stay outside."""
        assert self._model.offset is not None  # see `require_number`
        return np.asarray((scores + self._model.offset) / self._model.levels)


def check_radius(radius: float | None, norm: float | None) -> float:
    """The radius that changes are smaller than; infinite without a ball."""
    if norm is None:
        if radius is not None:
            raise ValueError(
                f"`radius` must be None where limits alone say what may change (norm None), got {radius!r}."
            )
        return math.inf
    if radius is None or not _is_number(radius) or not radius >= 0:
        raise ValueError(f"`radius` must be a number, 0 or larger, got {radius!r}.")
    return float(radius)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
