"""Attacking numbers: the border of the search for changes that move a prediction far, from inside beside intervals.

Owns `attack_interval`: the checks, the order of the search, and the choice of the best. Must not know how a rule proves
what it says, nor any interval: what is found stands against them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand._core.threads import count_threads, run_blocks
from derand.certificates.bounds.linear import LinearSum
from derand.certificates.bounds.packing import PackedTerms, Problem, pose_sum
from derand.certificates.bounds.trees import bound_scores
from derand.certificates.kinds import Linear, Trees, kind_of
from derand.certificates.regression import check_radius, find_answers, require_number
from derand.certificates.results.attacks import IntervalAttacks
from derand.certificates.rules.base import DEFAULT_BUDGET
from derand.certificates.rules.trees import open_ball
from derand.certificates.search.attacks import count_block_rows, read_seed, read_target
from derand.certificates.search.cell_weights import orient_scores, weigh_cells
from derand.certificates.search.feasible_set import FeasibleSet, Target
from derand.certificates.search.linear import change_worst, measure_numbers, move_most
from derand.certificates.search.positions import Landscape, list_wide, pick
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.threat import Threat, refuse_linked

_BLOCK_POSITIONS = 100
_TURNS = 2
"""Times that positions around what was found are looked at."""
_ROUNDS = 4
"""Of following the weights of cells for a median at the best row so far."""
_SHAKE = 0.5
_HAIRS = (0.1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
"""How far within an open ball the worst moves of lines are tried."""
_HAIR = 1e-11
"""By how much, relatively, changes stay below the radius: sizes are rounded up by less."""
_POSITIONS = 97
_FINER = 25
_REACH = 8.0
"""Noise scales beyond the outermost edges, where nothing changes any more."""
_LEAST_MULTIPLIER = 1e-12
_LEAST_COST = 1e-10
"""Of the budget: moves that cost less are roundings, whose multiplier says nothing."""
_HALVINGS = 50
_COMPLETIONS = 12


class _Request(NamedTuple):
    """What is asked of all rows."""

    target: Target
    model: AdditiveEnsemble
    problem: Problem
    radius: float
    seed: int

    def predict(self, rows: FloatArray) -> FloatArray:
        """Predictions by the function that `predict` calls."""
        return find_answers(self.model, rows, self.target.noise, rule=self.target.rule, n_jobs=1)


def attack_interval(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    radius: float | None,
    *,
    rule: str = "vote",
    threat: Threat | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> IntervalAttacks:
    """The lowest and the highest answer that a change of each row within a radius was found to have.

    Follows the worst case of the sum column by column, by scores, and for a median by what the exact mass makes of
    them. Categories, and numbers that may go missing or appear, are changed to their worst first. Every answer is one
    by the function that `predict` calls. No interval that holds is narrower; where nothing is found nothing is proven.

    Parameters
    ----------
    model : AdditiveEnsemble
        With the decision `Value`.
    X : array-like of shape (n_rows, n_features)
        As for `certify_interval`.
    noise, radius
        As for `certify_interval`.
    rule : {"vote", "mean"}
    threat : Threat or None
        Within which changes stay, and in whose norm and units they count. None is the norm of the noise, 2 without any.
    random_state : int
        Seed of restarts. The result is the same for the same seed, whatever the number of threads.
    n_jobs : int or None
        Threads; None or -1 uses all cores.

    Returns
    -------
    IntervalAttacks

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, StepFunction, attack_interval, certify_interval
    >>> from derand.model import Value
    >>> model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 100])], Value(500), n_features=1, levels=10)
    >>> found = attack_interval(model, [[0.5]], Gaussian(0.5), radius=0.5, rule="mean")
    >>> found.to_pandas().round(2).values.tolist(), found.low_rows.round(3).tolist()
    ([[58.41, 55.0, 59.77, 4.77]], [[0.0]])

    No answer lies outside of what is certified:

    >>> found.require_inside(certify_interval(model, [[0.5]], Gaussian(0.5), radius=0.5, rule="mean"))
    """
    ensemble = require_number(model)
    target, rows = read_target(ensemble, X, noise, threat, rule)
    asked, chosen = target.perturbation, target.noise
    refuse_linked(asked.threat, "attacks on numbers")
    seed, size = read_seed(random_state), check_radius(radius, asked.norm)
    value = find_answers(ensemble, rows, chosen, rule=rule, n_jobs=n_jobs)
    answers, changed = np.stack([value, value]), np.stack([rows, rows])
    if isinstance(kind_of(ensemble), Linear):
        answers, changed = _attack_linear(ensemble, rows, asked, size, value)
    elif isinstance(kind_of(ensemble), Trees):
        answers, changed = _attack_trees(ensemble, rows, asked, size, value, n_jobs)
    else:
        request = _Request(target, ensemble, pose_sum(ensemble), size, seed)

        def attack_block(block: slice) -> None:
            for end in (0, 1):
                found = _End(request, rows[block], end, np.arange(block.start, block.stop), value[block])
                found.run()
                answers[end, block], changed[end, block] = found.answers, found.points

        run_blocks(attack_block, len(rows), count_block_rows(ensemble, _BLOCK_POSITIONS), count_threads(n_jobs))
    ball = None if asked.norm is None else size
    return IntervalAttacks(value, answers[0], answers[1], changed[0], changed[1], ball, asked.threat, rule, chosen)


def _attack_linear(
    model: AdditiveEnsemble, rows: FloatArray, perturbation: Perturbation, radius: float, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Answers and rows at both ends of a linear model: the worst moves are explicit. A hair within an open ball."""
    linear = LinearSum.of(model, -(model.offset or 0))
    answers, changed = np.stack([value, value]), np.stack([rows, rows])
    for end in (0, 1):
        starts = change_worst(linear, rows, perturbation, 1 - end)
        points = starts.copy()
        for hair in _HAIRS if radius > 0 else ():  # rounded numbers may lie outside
            near = radius * (1 - hair) if perturbation.norm else radius
            moved = move_most(linear, rows, starts, perturbation, 1 - end, near)
            sizes = measure_numbers(model, moved, rows, perturbation)
            inside = sizes <= radius if perturbation.norm in (None, 0) else sizes < radius
            points = np.where(inside[:, None], moved, points)
        found = find_answers(model, points, None, rule="mean", n_jobs=1)
        better = found > value if end else found < value
        answers[end, better], changed[end, better] = found[better], points[better]
    return answers, changed


def _attack_trees(
    model: AdditiveEnsemble,
    rows: FloatArray,
    perturbation: Perturbation,
    radius: float,
    value: FloatArray,
    n_jobs: int | None,
) -> tuple[FloatArray, FloatArray]:
    """Answers and rows at both ends of a sum of trees: what the search that certifies has found."""
    reach = open_ball(radius, perturbation.norm, len(rows))
    found = bound_scores(model.as_sum(), rows, perturbation, DEFAULT_BUDGET, count_threads(n_jobs), reach)
    answers, changed = np.stack([value, value]), np.stack([rows, rows])
    for end, points in enumerate((found.least_witness, found.most_witness)):
        there = find_answers(model, points, None, rule="mean", n_jobs=n_jobs)
        better = there > value if end else there < value
        answers[end, better], changed[end, better] = there[better], points[better]
    return answers, changed


class _End:
    """The lowest answers of a block of rows that were found so far, or the highest ones: end 0 or 1."""

    def __init__(self, request: _Request, rows: FloatArray, end: int, numbers: Numbers, value: FloatArray) -> None:
        self._request, self._rows, self._numbers = request, rows, numbers
        self._labels = np.full(len(rows), 1 - end)  # what must stay high for the answer not to decrease
        self._signs = np.where(self._labels == 1, 1.0, -1.0)
        self.points, self.answers = rows.copy(), value.copy()

    def run(self) -> None:
        """Search from every start, in all ways."""
        asked, target = self._request, self._request.target
        for starts in target.list_starts(self._rows, self._labels):
            self._offer(starts)
            feasible = target.surround(self._rows, starts, self._labels)
            if asked.radius > 0 and feasible.features.size and asked.problem.terms.n_terms:
                self._search(feasible)

    def _search(self, feasible: FeasibleSet) -> None:
        terms = self._request.problem.terms
        weights = orient_scores(terms, self._signs)
        best = self._follow(feasible, weights)
        if self._request.target.rule != "vote":
            return
        assert feasible.noise is not None  # votes have one
        for turn in range(_ROUNDS):
            weights, _ = weigh_cells(
                self._request.problem, best, feasible.noise, self._signs, self._compute_levels(best)
            )
            if turn == _ROUNDS - 1:  # which leads around what the first ways ran into
                weights = weights * self._shake(np.diff(terms.starts))
            best = self._follow(feasible, weights)

    def _shake(self, counts: Numbers) -> FloatArray:
        rngs = [np.random.default_rng([self._request.seed, number]) for number in self._numbers.tolist()]
        drawn = np.stack([rng.standard_normal(counts.size) for rng in rngs])
        return np.asarray(np.repeat(np.exp(_SHAKE * drawn), counts, axis=1))

    def _compute_levels(self, points: FloatArray) -> IntArray:
        """The level that the median of each point must pass to go on."""
        asked = self._request
        answers = asked.predict(points)
        assert asked.model.offset is not None  # see `require_number`
        scores = np.rint(answers * asked.model.levels).astype(np.int64) - asked.model.offset
        return np.asarray(scores - self._labels)

    def _follow(self, feasible: FeasibleSet, weights: FloatArray) -> FloatArray:
        """The points at which the weights of cells decrease most, all of which are offered."""
        terms, radius = self._request.problem.terms, self._request.radius
        low, high = _compute_ends(feasible, terms, radius)
        points = _spend(
            feasible, Landscape(feasible, [terms], _list_between(feasible, terms, low, high)), weights, radius
        )
        self._offer_within(feasible, points)
        if feasible.noise is None:
            return points
        for turn in range(_TURNS):
            positions = _list_around(feasible, points, low, high, turn)
            points = _spend(feasible, Landscape(feasible, [terms], positions), weights, radius)
            self._offer_within(feasible, points)
        if feasible.norm in (1, 2) and np.isfinite(radius):
            self._offer_within(feasible, _stretch(feasible, points, radius))
        return points

    def _offer_within(self, feasible: FeasibleSet, points: FloatArray) -> None:
        """Keep points that are better than what was found, where they are closer than the radius."""
        everyone = np.arange(len(feasible))
        points = feasible.keep_within(points, everyone)
        sizes, radius = feasible.measure(points, everyone), self._request.radius
        inside = sizes <= radius if feasible.norm in (None, 0) else sizes < radius
        self._offer(np.where(inside[:, None], points, feasible.starts))

    def _offer(self, points: FloatArray) -> None:
        answers = self._request.predict(points)
        better = self._signs * answers < self._signs * self.answers
        self.points[better], self.answers[better] = points[better], answers[better]


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def _compute_ends(feasible: FeasibleSet, terms: PackedTerms, radius: float) -> tuple[FloatArray, FloatArray]:
    """Between which ends the numbers in `feasible.features` are looked at, both (n_rows, n_columns)."""
    columns = feasible.features
    starts = np.nan_to_num(feasible.starts[:, columns])
    low, high = (
        np.where(feasible.moving[:, columns], end[:, columns], starts) for end in (feasible.low, feasible.high)
    )
    if feasible.norm and math.isfinite(radius):
        span = radius * (1 - _HAIR) * feasible.units[columns]
        low, high = np.maximum(low, starts - span), np.minimum(high, starts + span)
    scales = 1.0 if feasible.noise is None else feasible.noise.scales(columns)
    edges = [terms.list_edges(feature) for feature in columns.tolist()]
    least, most = (np.array([one[at] if one.size else 0.0 for one in edges]) for at in (0, -1))
    low = np.maximum(low, np.minimum(starts, least - _REACH * scales))
    return low, np.minimum(high, np.maximum(starts, most + _REACH * scales))


def _list_between(feasible: FeasibleSet, terms: PackedTerms, low: FloatArray, high: FloatArray) -> FloatArray:
    """Places between ends, the row's own first; without noise those beside edges."""
    if feasible.noise is None:
        return list_wide(feasible, [terms])
    starts = np.nan_to_num(feasible.starts[:, feasible.features])
    shares = np.linspace(0.0, 1.0, _POSITIONS)[:, None]
    return np.concatenate([starts[:, None], low[:, None] * (1 - shares) + high[:, None] * shares], axis=1)


def _list_around(feasible: FeasibleSet, points: FloatArray, low: FloatArray, high: FloatArray, turn: int) -> FloatArray:
    """Places around points, as far as others were apart, ever finer from turn to turn; the row's own first."""
    starts, here = (np.nan_to_num(rows[:, feasible.features]) for rows in (feasible.starts, points))
    apart = (high - low) / (_POSITIONS - 1) * (2 / (_FINER - 1)) ** turn
    steps = np.linspace(-1.0, 1.0, _FINER)[:, None] * apart[:, None]
    around = np.clip(here[:, None] + steps, low[:, None], high[:, None])
    return np.concatenate([starts[:, None], here[:, None], around], axis=1)


def _spend(feasible: FeasibleSet, landscape: Landscape, weights: FloatArray, radius: float) -> FloatArray:
    """The points of a landscape at which weights decrease most within a radius, (n_rows, n_features)."""
    decreases, norm = landscape.compute_decreases([weights]), feasible.norm
    costs = landscape.costs
    if norm and math.isfinite(radius):
        decreases = np.where(costs <= radius * (1 - _HAIR), decreases, -np.inf)
        decreases[:, 0] = 0.0
    if norm in (1, 2) and math.isfinite(radius):
        share, power = math.frexp(radius)  # squares of distances in other units than the radius may overflow
        with np.errstate(over="ignore"):
            paid = np.minimum(np.ldexp(costs, -power) ** float(norm), 1e200)
        best = _choose_by_multipliers(decreases, paid, (share * (1 - _HAIR)) ** norm)
    else:
        best = decreases.argmax(axis=1)
        if norm == 0:
            gains = pick(decreases, best)
            ranks = np.argsort(np.argsort(-gains, axis=1, kind="stable"), axis=1, kind="stable")
            best = np.where(ranks < math.floor(min(radius, ranks.shape[1])), best, 0)
    return landscape.put_points(pick(landscape.positions, best))


def _stretch(feasible: FeasibleSet, points: FloatArray, radius: float) -> FloatArray:
    """The same moves, as far as the radius reaches."""
    everyone = np.arange(len(feasible))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        factor = radius * (1 - _HAIR) / feasible.measure(points, everyone)
        moved = feasible.starts + np.where(np.isfinite(factor), factor, 1.0)[:, None] * (points - feasible.starts)
    return feasible.keep_within(np.where(feasible.moving, moved, feasible.starts), everyone)


def _choose_by_multipliers(decreases: FloatArray, costs: FloatArray, budget: float) -> IntArray:
    """The position of each column for the lowest multiplier that fits the budget; then what is left is spent."""
    with np.errstate(all="ignore"):
        top = np.where((costs > _LEAST_COST * budget) & (decreases > 0), decreases / costs, 0.0).max(
            axis=(1, 2), initial=0.0
        )
    top = np.where(np.isfinite(top), top, 1e200)

    def choose(shares: FloatArray) -> IntArray:
        multiplier = 1.01 * top * _LEAST_MULTIPLIER**shares
        return np.asarray((decreases - multiplier[:, None, None] * costs).argmax(axis=1))

    low, high = np.zeros(len(decreases)), np.ones(len(decreases))
    best = np.zeros((decreases.shape[0], decreases.shape[2]), dtype=np.int64)
    for share in (high, *(np.nan for _ in range(_HALVINGS))):
        middle = share if isinstance(share, np.ndarray) else 0.5 * (low + high)
        tried = choose(middle)
        fits = pick(costs, tried).sum(axis=1) <= budget
        best[fits] = tried[fits]
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return _spend_rest(decreases, costs, budget, best)


def _spend_rest(decreases: FloatArray, costs: FloatArray, budget: float, best: IntArray) -> IntArray:
    """One column after the other moved on to where most is gained by what is left."""
    best, every = best.copy(), np.arange(len(decreases))
    for _ in range(_COMPLETIONS):
        left = budget - pick(costs, best).sum(axis=1)
        extra = costs - pick(costs, best)[:, None]
        gains = np.where(extra <= left[:, None, None], decreases - pick(decreases, best)[:, None], -np.inf)
        flat = gains.reshape(len(decreases), -1)
        at = flat.argmax(axis=1) if flat.shape[1] else every * 0
        rows = np.flatnonzero(flat.max(axis=1, initial=-np.inf) > 0)
        if not rows.size:
            break
        position, column = np.divmod(at[rows], decreases.shape[2])
        best[rows, column] = position
    return best
