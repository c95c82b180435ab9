"""Certificates: a pure function of (model, rows, noise).

Owns `certify` (label, failure mass and radius of each row), `distribution` (the exact law of the score), the worst
case over categorical changes, and the weighted vote. Must not know training, true labels or files.
The failure mass is summed on the failing side alone; `kernels/README.md` shows that a radius is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand.ensemble import AdditiveEnsemble, CategoryTable, Model, StepFunction, WeightedVote
from derand.kernels import Backend, DeviceBackend, failure_excess, load_backend, rounding_bound
from derand.noise import EPSILON, TAIL_ERROR, Noise, as_noise, exp_upward
from derand.threads import count_threads, run_blocks

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_SUPPORT = 2**23
"""Largest number of grid levels between the lowest and the highest score: the laws of two threads take up to 700 MB."""
_BLOCK_NUMBERS = 2**19  # numbers in a block's probability table
_BLOCK_ROWS = 2**13
_FEW_ROWS = 2**7  # not worth the change from one block to the next


@dataclass(frozen=True, slots=True, eq=False)
class Certificates:
    """What is proven about each row: no change of l0 categorical features and within the radius flips the label.

    Attributes
    ----------
    label : array of shape (n_rows,)
        Smoothed label, one of `classes`.
    failure : array of shape (n_rows,)
        Upper bound of the probability that a noisy copy of the row, after the worst categorical change, gets another
        label; NaN for a weighted vote, which has none.
    log_failure : array of shape (n_rows,)
        Natural logarithm of `failure`.
    radius : array of shape (n_rows,)
        Lower bound of the radius; the ball is open. 0 where nothing is certified.
    norm : int
        1 or 2: the norm of the ball, after division by the noise's units.
    l0 : int
        How many categorical features may change at the same time.
    """

    label: NDArray[Any]
    failure: FloatArray
    log_failure: FloatArray
    radius: FloatArray
    norm: int
    l0: int = 0
    classes: NDArray[Any] = field(default_factory=lambda: np.array([0, 1]))

    def __len__(self) -> int:
        return int(self.radius.size)

    def __getitem__(self, rows: Any) -> Certificates:
        at = np.atleast_1d(np.arange(len(self))[rows])
        return Certificates(
            self.label[at],
            self.failure[at],
            self.log_failure[at],
            self.radius[at],
            self.norm,
            self.l0,
            self.classes,
        )

    def __repr__(self) -> str:
        certified = int((self.radius > 0).sum())
        return f"<Certificates: {len(self)} rows, {certified} certified, l{self.norm} ball, l0 = {self.l0}>"

    def to_pandas(self) -> Any:
        """A pandas frame with the columns label, failure, log_failure and radius."""
        import pandas as pd

        columns = ("label", "failure", "log_failure", "radius")
        return pd.DataFrame({name: getattr(self, name) for name in columns})


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Exact law of the score of each row under noise.

    Attributes
    ----------
    support : array of integers, shape (n_levels,)
        Scores in grid units, increasing.
    pmf : array of shape (n_rows, n_levels)
    """

    support: IntArray
    pmf: FloatArray

    def cdf(self, score: ArrayLike) -> FloatArray:
        """P(S <= score): shape (n_rows,) for a number, (n_rows, k) for k of them."""
        levels = np.asarray(score, dtype=np.float64)
        sums = np.concatenate([np.zeros((len(self.pmf), 1)), np.cumsum(self.pmf, axis=1)], axis=1)
        return np.asarray(sums[:, np.searchsorted(self.support, levels, side="right")])

    def quantile(self, z: ArrayLike) -> IntArray:
        """Smallest score whose cdf is at least z: shape (n_rows,) for a number, (n_rows, k) for k of them."""
        sums = np.cumsum(self.pmf, axis=1)
        wanted = np.atleast_1d(np.asarray(z, dtype=np.float64))
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(f"`z` must lie in [0, 1], got {z!r}.")
        at = np.stack([np.searchsorted(row, wanted * min(row[-1], 1.0)) for row in sums])
        scores = self.support[np.minimum(at, self.support.size - 1)]
        return np.asarray(scores if np.ndim(z) else scores[:, 0])

    @property
    def median(self) -> IntArray:
        """Smallest score whose cdf is at least 1/2: the smoothed label is 1 iff it exceeds the threshold."""
        return self.quantile(0.5)


@overload
def certify(
    model: Model,
    X: ArrayLike,
    noise: Noise | str,
    l0: int = 0,
    unseen: bool = True,
    backend: str | None = None,
    n_jobs: int | None = None,
) -> Certificates: ...


@overload
def certify(
    model: Model,
    X: ArrayLike,
    noise: Noise | str,
    l0: Sequence[int],
    unseen: bool = True,
    backend: str | None = None,
    n_jobs: int | None = None,
) -> list[Certificates]: ...


def certify(
    model: Model,
    X: ArrayLike,
    noise: Noise | str,
    l0: int | Sequence[int] = 0,
    unseen: bool = True,
    backend: str | None = None,
    n_jobs: int | None = None,
) -> Certificates | list[Certificates]:
    """Smoothed label of each row and the radius within which no change can flip it.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        Category columns hold codes; NaN is a missing category and an error in any other column.
    noise : Noise or str
        Such as `Gaussian(0.25)` or "gaussian:0.25".
    l0 : int or sequence of int
        How many categorical features may change at the same time; more than the model has counts as all of them.
    unseen : bool
        Whether a categorical feature may change to a value that is not in its table.
    backend : {"numba", "numpy", "cuda"} or None
        None takes the GPU for very large work where there is one, else "numba".
    n_jobs : int or None
        Threads; None or -1 uses all cores.

    Returns
    -------
    Certificates, or a list of them where `l0` is a sequence

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> c = certify(model, [[0.0], [2.0]], Gaussian(0.25))
    >>> c.label.tolist(), c.radius.round(6).tolist()
    ([0, 1], [0.5, 1.5])
    """
    noise = as_noise(noise)
    rows = _as_rows(model, X, noise)
    budgets, single = _as_budgets(l0)
    kernels, jobs = load_backend(backend, rows.shape[0] * _count_cells(model)), count_threads(n_jobs)
    if isinstance(model, WeightedVote):
        results = _certify_vote(model, rows, noise, budgets, unseen, kernels, jobs)
    else:
        results = _certify_ensemble(model, rows, noise, budgets, unseen, kernels, jobs)
    return results[0] if single else results


def distribution(model: AdditiveEnsemble, X: ArrayLike, noise: Noise | str, backend: str | None = None) -> Distribution:
    """Exact law of each row's score under noise (paper, Algorithm 1 and Theorem 3.1).

    Parameters
    ----------
    model : AdditiveEnsemble
    X : array-like of shape (n_rows, n_features)
    noise : Noise or str
    backend : {"numba", "numpy", "cuda"} or None

    Returns
    -------
    Distribution

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Uniform, distribution
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> d = distribution(model, [[0.0]], Uniform(2.0))
    >>> d.support[[0, -1]].tolist(), d.pmf[0, [0, -1]].round(3).tolist(), d.median.tolist()
    ([10, 90], [0.625, 0.375], [10])
    """
    noise = as_noise(noise)
    if isinstance(model, WeightedVote):
        raise TypeError(
            "`distribution` takes an AdditiveEnsemble: the members of a WeightedVote have laws, the vote has none."
        )
    rows = np.asarray(_as_rows(model, X, noise), dtype=np.float64)
    packed = pack_terms(model)
    shift = packed.base + _category_scores(model.category_tables, rows)
    lowest = int(shift.min()) if shift.size else packed.base
    spread = shift - lowest
    step = math.gcd(packed.step if packed.largest else 0, int(np.gcd.reduce(spread))) or 1
    stride = max(packed.step // step, 1)
    n_levels = packed.largest * stride + 1 + int(spread.max(initial=0)) // step
    if rows.shape[0] * n_levels > 2**28:
        raise ValueError(f"The laws of {rows.shape[0]} rows take {n_levels} levels each: pass fewer rows at a time.")
    laws = load_backend(backend).laws(packed.table(rows, noise), packed.starts, packed.scores)
    pmf = np.zeros((rows.shape[0], n_levels))
    for row, start in enumerate(spread // step):
        pmf[row, start : start + packed.largest * stride + 1 : stride] = laws[row]
    return Distribution(lowest + step * np.arange(n_levels), pmf)


@dataclass(frozen=True, slots=True)
class PackedTerms:
    """The step functions as the kernels see them: reduced scores, 0 at the lowest and without a common divisor."""

    edges: FloatArray
    edge_features: IntArray
    edge_terms: IntArray
    starts: IntArray
    scores: IntArray
    base: int
    step: int
    largest: int

    @property
    def n_terms(self) -> int:
        return self.starts.size - 1

    def table(self, rows: FloatArray, noise: Noise) -> FloatArray:
        """Upper bounds of all cell probabilities, shape (n_rows, n_cells)."""
        return noise.cell_table(
            np.take(rows, self.edge_features, axis=1), self.edges, self.edge_features, self.edge_terms, self.n_terms
        )

    def units(self, noise: Noise) -> FloatArray:
        """Unit of the noise at each edge."""
        return np.ones(self.edges.size) if noise.units is None else np.asarray(noise.units)[self.edge_features]

    def tie_band(self) -> float:
        """By how much a computed failure mass near 1/2 can exceed the true one (kernels/README.md, step 5)."""
        return 3 * TAIL_ERROR * self.edges.size + failure_excess(self.n_terms, self.scores.size)


@lru_cache(maxsize=64)  # models never change and are told apart by identity
def pack_terms(model: AdditiveEnsemble) -> PackedTerms:
    """The model's step functions as arrays for the kernels."""
    varying = [term for term in model.step_functions if term.scores.min() < term.scores.max()]
    terms = _in_two_halves(varying)
    reduced = [term.scores[:, 0] - term.scores.min() for term in terms]
    step = int(np.gcd.reduce(np.concatenate(reduced))) if terms else 1
    step = step or 1
    largest = sum(int(scores.max()) for scores in reduced) // step
    if largest >= MAX_SUPPORT:
        raise ValueError(
            f"The scores of this model span {largest + 1} levels, more than {MAX_SUPPORT}: "
            "use fewer levels or coarser leaves."
        )
    counts = [term.edges.size for term in terms]
    nothing: list[Any] = [np.empty(0)]
    return PackedTerms(
        edges=np.concatenate([term.edges for term in terms] or nothing),
        edge_features=np.repeat(np.array([term.feature for term in terms], dtype=np.int64), counts),
        edge_terms=np.repeat(np.arange(len(terms), dtype=np.int64), counts),
        starts=np.cumsum([0, *(count + 1 for count in counts)], dtype=np.int64),
        scores=np.concatenate(reduced or nothing).astype(np.int64) // step,
        base=sum(int(term.scores.min()) for term in model.step_functions),  # a constant term is only a shift
        step=step,
        largest=largest,
    )


def _in_two_halves(terms: Sequence[StepFunction]) -> list[StepFunction]:
    """Order for kernels that meet in the middle: two halves of like range, each from narrow to wide."""
    by_range = sorted(terms, key=lambda term: int(term.scores.max() - term.scores.min()))
    return by_range[1::2] + by_range[0::2]


def _category_scores(tables: Sequence[CategoryTable], rows: FloatArray) -> IntArray:
    total = np.zeros(rows.shape[0], dtype=np.int64)
    for table in tables:
        total += table.evaluate(rows[:, table.feature])
    return total


def _category_shifts(
    tables: Sequence[CategoryTable], rows: FloatArray, budgets: IntArray, unseen: bool
) -> tuple[IntArray, IntArray]:
    """Largest fall and rise of the score by changing at most k categorical features, each (n_rows, n_budgets).

    The features' effects add up, so the k largest ones are the worst choice (docs/theory.md).
    """
    falls, rises = (np.zeros((rows.shape[0], len(tables)), dtype=np.int64) for _ in range(2))
    for column, table in enumerate(tables):
        scores = table.evaluate(rows[:, table.feature])
        lowest, highest = table.score_range(unseen)
        falls[:, column] = np.maximum(scores - lowest, 0)
        rises[:, column] = np.maximum(highest - scores, 0)
    at = np.minimum(budgets, len(tables))

    def of_the_largest(effects: IntArray) -> IntArray:
        sums = np.cumsum(-np.sort(-effects, axis=1), axis=1)
        return np.concatenate([np.zeros((rows.shape[0], 1), dtype=np.int64), sums], axis=1)[:, at]

    return of_the_largest(falls), of_the_largest(rises)


def _certify_ensemble(
    model: AdditiveEnsemble,
    rows: NDArray[Any],
    noise: Noise,
    budgets: Sequence[int],
    unseen: bool,
    kernels: Backend,
    jobs: int,
) -> list[Certificates]:
    if model.threshold is None:
        raise ValueError(
            "`model` has no threshold and so makes no decision to certify: give AdditiveEnsemble a `threshold`."
        )
    packed, threshold, tables = pack_terms(model), model.threshold, model.category_tables
    device = kernels if isinstance(kernels, DeviceBackend) and noise.name in kernels.NOISES else None
    changes = [min(budget, len(tables)) for budget in budgets]
    asked = np.unique([0, *changes])  # the label is that of the unchanged row
    label = np.empty(rows.shape[0], dtype=np.int64)
    log_failure = np.empty((rows.shape[0], asked.size))
    radius = np.empty_like(log_failure)
    slack = 3 * packed.tie_band() * noise.magnitude  # so that the computed label, too, holds throughout the ball

    def certify_block(block: slice) -> None:
        x = np.asarray(rows[block], dtype=np.float64)
        falls, rises = _category_shifts(tables, x, asked, unseen)
        room = (threshold - packed.base - _category_scores(tables, x))[:, None]
        low, high = (room + falls) // packed.step, (room - rises) // packed.step
        is_one, failing = _failing_masses(_BlockMasses(kernels, device, packed, x, noise), packed, low, high)
        constant = np.where(is_one[:, None], low < 0, high >= packed.largest)
        reduced = noise.radius_of_log(failing) - slack * (failing > -np.inf)
        label[block] = is_one
        log_failure[block] = failing
        radius[block] = np.where(constant, np.inf, np.maximum(reduced, 0.0))

    run_blocks(certify_block, rows.shape[0], _block_rows(packed, kernels, rows.shape[0], jobs), jobs)
    failure = exp_upward(log_failure)
    return [
        Certificates(label, failure[:, at], log_failure[:, at], radius[:, at], noise.norm, budget)
        for budget, at in zip(budgets, np.searchsorted(asked, changes), strict=True)
    ]


class _BlockMasses:
    """`failures` and `tails` of the rows of a block, whoever computes their probability table."""

    def __init__(
        self, kernels: Backend, device: DeviceBackend | None, packed: PackedTerms, rows: FloatArray, noise: Noise
    ) -> None:
        self._kernels, self._device, self._terms = kernels, device, (packed.starts, packed.scores)
        if device is not None:
            self._rows = rows
            self._edges = packed.edges, packed.edge_features, packed.units(noise), noise.magnitude, noise.name
        else:
            self._table = packed.table(rows, noise)

    def failures(
        self, thresholds: IntArray, at: IntArray | slice = slice(None)
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        if self._device is not None:
            return self._device.failures_from_edges(self._rows[at], *self._edges, *self._terms, thresholds)
        return self._kernels.failures(self._table[at], *self._terms, thresholds)

    def tails(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        if self._device is not None:
            return self._device.tails_from_edges(self._rows, *self._edges, *self._terms, low, high)
        return self._kernels.tails(self._table, *self._terms, low, high)


def _failing_masses(
    masses: _BlockMasses, packed: PackedTerms, low: IntArray, high: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether label 1 is proven at the first threshold, and the logarithm of the failing mass at each threshold."""
    if low.shape[1] == 1:
        is_one, log_mass = masses.failures(low[:, 0])
        return is_one, log_mass[:, None]
    widening = 1 + rounding_bound(packed.scores.size)
    low_mass, high_mass = (np.minimum(mass * widening, 1.0) for mass in masses.tails(low, high))
    is_one = low_mass[:, 0] < 0.5  # class 1 must be proven: a tie is class 0
    mass = np.where(is_one[:, None], low_mass, high_mass)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    log_mass += 4 * EPSILON * np.abs(np.maximum(log_mass, -1000.0))
    faint = (mass > 0) & (mass < 1e-280)  # near FLOOR: the logarithm is needed
    for k in np.flatnonzero(faint.any(axis=0)):
        at = np.flatnonzero(faint[:, k])
        cut = np.where(is_one, low[:, k], high[:, k])[at]
        log_mass[at, k] = masses.failures(cut, at)[1]
    return is_one, log_mass


def _certify_vote(
    model: WeightedVote,
    rows: NDArray[Any],
    noise: Noise,
    budgets: Sequence[int],
    unseen: bool,
    kernels: Backend,
    jobs: int,
) -> list[Certificates]:
    """Certificate of a vote: the label holds while the members that are sure to hold outweigh all others.

    Sums of weights are compared with a margin above their rounding error, so that any order of adding decides alike.
    """
    by_member = [_certify_ensemble(member, rows, noise, budgets, unseen, kernels, jobs) for member in model.members]
    weights = np.abs(model.weights)
    margin = 4 * EPSILON * weights.size * weights.sum()
    reverse = (model.weights < 0).astype(np.int64)[:, None]
    nothing = np.full(rows.shape[0], np.nan)
    results = []
    for k, budget in enumerate(budgets):
        votes = np.stack([certificates[k].label for certificates in by_member]) ^ reverse
        radii = np.stack([certificates[k].radius for certificates in by_member])
        label = (vote_share(votes, weights) > 0.5).astype(np.int64)
        held = np.where(votes == label, radii, 0.0)
        order = np.argsort(-held, axis=0, kind="stable")
        ahead = 2 * np.cumsum(weights[order], axis=0) - weights.sum() > margin
        best = np.where(ahead, np.take_along_axis(held, order, axis=0), 0.0).max(axis=0)
        results.append(Certificates(label, nothing, nothing, best, noise.norm, int(budget)))
    return results


def vote_share(votes: IntArray, weights: FloatArray) -> FloatArray:
    """Share of the weight that votes for class 1, for votes of shape (n_members, n_rows); 1/2 without any weight."""
    total = weights.sum()
    return np.asarray(weights @ votes / total) if total > 0 else np.full(votes.shape[1], 0.5)


def _block_rows(packed: PackedTerms, kernels: Backend, n_rows: int, jobs: int) -> int:
    """Rows per block: its arrays stay small whatever the model, and of many rows every core gets several blocks."""
    if isinstance(kernels, DeviceBackend):
        return kernels.BLOCK_ROWS
    widest = packed.scores.size
    if kernels.HOLDS_ALL_LAWS:
        widest = max(widest, 4 * packed.largest)
    shared = max(-(-n_rows // (4 * jobs)), min(_FEW_ROWS, -(-n_rows // jobs)))
    return max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // max(widest, 1), shared))


def _count_cells(model: Model) -> int:
    members = model.members if isinstance(model, WeightedVote) else (model,)
    return sum(term.scores.size for member in members for term in member.step_functions)


def _as_budgets(l0: int | Iterable[int]) -> tuple[list[int], bool]:
    single = np.ndim(l0) == 0  # type: ignore[arg-type]
    budgets: list[Any] = [l0] if single else list(l0)  # type: ignore[arg-type]
    for budget in budgets:
        if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 0:
            raise ValueError(
                f"`l0` must be a number of categorical features that may change, 0 or larger, got {budget!r}."
            )
    return [int(budget) for budget in budgets], single


def _as_rows(model: Model, X: ArrayLike, noise: Noise) -> NDArray[Any]:
    """X as a numeric table that fits the model, its numerical columns finite. Keeps the dtype: blocks convert."""
    if not isinstance(model, AdditiveEnsemble | WeightedVote):
        raise TypeError(f"`model` must be an AdditiveEnsemble or a WeightedVote, got {type(model).__name__}.")
    rows = np.asarray(X)
    if rows.dtype.kind not in "biuf":
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"`X` must hold numbers, got dtype {rows.dtype}: encode text columns first (StumpClassifier does so)."
            ) from None
    if rows.ndim != 2 or rows.shape[1] != model.n_features:
        raise ValueError(
            f"`X` must have shape (n_rows, {model.n_features}), one column per feature of the model, got {rows.shape}."
        )
    if noise.units is not None and len(noise.units) != model.n_features:
        raise ValueError(
            f"`units` of the noise must have one entry per feature, {model.n_features} in all, got {len(noise.units)}."
        )
    _check_finite(model, rows)
    return rows


def _check_finite(model: Model, rows: NDArray[Any]) -> None:
    members = model.members if isinstance(model, WeightedVote) else (model,)
    categorical = {table.feature for member in members for table in member.category_tables}
    numerical = [column for column in range(model.n_features) if column not in categorical]
    bad = np.zeros(rows.shape[1], dtype=np.int64)
    if rows.dtype.kind == "f":
        block = max(1, 2**22 // max(rows.shape[1], 1))
        for start in range(0, rows.shape[0], block):
            finite = np.isfinite(rows[start : start + block])
            if not finite.all():  # counting by column is slow and rarely needed
                bad += (~finite).sum(axis=0)
    wrong = [column for column in numerical if bad[column]]
    if wrong:
        listed = ", ".join(f"{column} ({bad[column]} rows)" for column in wrong[:10])
        more = f" and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        raise ValueError(
            f"`X` must be finite, got NaN or infinity in column {listed}{more}: drop those rows or fill the gaps first."
        )
