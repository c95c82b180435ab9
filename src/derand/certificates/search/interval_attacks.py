"""Attacking numbers: the border of the search for changes that move an answer far, from inside beside intervals.

Owns `attack_interval`: the checks, the order of the search, and the choice of the best. Must not know how a rule proves
what it says, nor any interval: what is found stands against them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import count_threads, run_blocks
from derand.certificates.bounds.linear import LinearSum
from derand.certificates.bounds.packing import Problem, pose_sum
from derand.certificates.classification import check_request, read_rows, resolve_rows
from derand.certificates.kinds import Linear, kind_of
from derand.certificates.regression import check_radius, find_answers, require_number
from derand.certificates.results.interval_attacks import IntervalAttacks
from derand.certificates.search.attacks import read_seed
from derand.certificates.search.cell_weights import orient_scores, weigh_cells
from derand.certificates.search.feasible_set import FeasibleSet
from derand.certificates.search.linear import change_worst, measure_numbers, move_most
from derand.certificates.search.positions import Landscape
from derand.certificates.search.starts import build_feasible_set, list_starts
from derand.certificates.search.within_radius import compute_ends, list_around, list_between, spend, stretch
from derand.model import AdditiveEnsemble, Model, as_model
from derand.noise import Noise, as_noise_or_none
from derand.perturbation import Perturbation
from derand.threat import Threat

_BLOCK_NUMBERS = 2**22
_BLOCK_ROWS = 128
_PLACES = 100
_FINER = 2
"""Times that places around what was found are looked at."""
_ROUNDS = 4
"""Of following what cells are worth to a median at the best row so far."""
_SHAKE = 0.5
_HAIRS = (0.1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
"""How far within an open ball the worst moves of lines are tried."""


class _Request(NamedTuple):
    """What is asked of all rows."""

    model: AdditiveEnsemble
    problem: Problem
    noise: Noise | None
    rule: str
    perturbation: Perturbation
    radius: float
    seed: int


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
    chosen = as_noise_or_none(noise, (threat or Threat()).norm)
    check_request(rule, "best", chosen, [threat or Threat()])
    rows = np.array(read_rows(as_model(model), X, chosen), dtype=np.float64)
    ensemble, seed = require_number(model), read_seed(random_state)
    asked = resolve_rows(threat or Threat(), ensemble, chosen, rows)
    size = check_radius(radius, asked.norm)
    value = find_answers(ensemble, rows, chosen, rule=rule, n_jobs=n_jobs)
    answers, changed = np.stack([value, value]), np.stack([rows, rows])
    ball = None if asked.norm is None else size
    if isinstance(kind_of(ensemble), Linear):
        answers, changed = _attack_linear(ensemble, rows, asked, size, value)
        return IntervalAttacks(value, answers[0], answers[1], changed[0], changed[1], ball, asked.threat, rule, chosen)
    request = _Request(ensemble, pose_sum(ensemble), chosen, rule, asked, size, seed)

    def attack_block(block: slice) -> None:
        for end in (0, 1):
            at = np.arange(block.start, block.stop)
            found = _End(request, rows[block], end, at, value[block])
            found.run()
            answers[end, block], changed[end, block] = found.answers, found.points

    n_rows = int(np.clip(_BLOCK_NUMBERS // (_PLACES * max(ensemble.n_cells, 1)), 1, _BLOCK_ROWS))
    run_blocks(attack_block, len(rows), n_rows, count_threads(n_jobs))
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


class _End:
    """The lowest answers of a block of rows that were found so far, or the highest ones: side 0 or 1."""

    def __init__(self, request: _Request, rows: FloatArray, end: int, numbers: NDArray[Any], value: FloatArray) -> None:
        self._request, self._rows, self._numbers = request, rows, numbers
        self._labels = np.full(len(rows), 1 - end)  # what must stay high for the answer not to fall
        self._signs = np.where(self._labels == 1, 1.0, -1.0)
        self.points, self.answers = rows.copy(), value.copy()

    def run(self) -> None:
        """Search from every start, in all ways."""
        asked = self._request
        for starts in list_starts(asked.model, asked.noise, asked.perturbation, self._rows, self._labels):
            self._offer(starts)
            feasible = build_feasible_set(
                asked.model, asked.noise, asked.rule, asked.perturbation, self._rows, starts, self._labels
            )
            if asked.radius > 0 and feasible.features.size and asked.problem.terms.n_terms:
                self._search(feasible)

    def _search(self, feasible: FeasibleSet) -> None:
        terms = self._request.problem.terms
        weights = orient_scores(terms, self._signs)
        best = self._follow(feasible, weights)
        if self._request.rule != "vote":
            return
        assert feasible.noise is not None  # votes have one
        for turn in range(_ROUNDS):
            weights, _ = weigh_cells(
                self._request.problem, best, feasible.noise, self._signs, self._compute_levels(best)
            )
            if turn == _ROUNDS - 1:  # which leads around what the first ways ran into
                weights = weights * self._shake(np.diff(terms.starts))
            best = self._follow(feasible, weights)

    def _shake(self, counts: NDArray[Any]) -> FloatArray:
        rngs = [np.random.default_rng([self._request.seed, number]) for number in self._numbers.tolist()]
        drawn = np.stack([rng.standard_normal(counts.size) for rng in rngs])
        return np.asarray(np.repeat(np.exp(_SHAKE * drawn), counts, axis=1))

    def _compute_levels(self, points: FloatArray) -> IntArray:
        """The level that the median of each point must pass to go on."""
        asked = self._request
        answers = find_answers(asked.model, points, asked.noise, rule=asked.rule, n_jobs=1)
        assert asked.model.offset is not None  # see `require_number`
        scores = np.rint(answers * asked.model.levels).astype(np.int64) - asked.model.offset
        return np.asarray(scores - self._labels)

    def _follow(self, feasible: FeasibleSet, weights: FloatArray) -> FloatArray:
        """The points at which what cells are worth falls most, all of which are offered."""
        terms, radius = self._request.problem.terms, self._request.radius
        low, high = compute_ends(feasible, terms, radius)
        points = spend(
            feasible, Landscape(feasible, [terms], list_between(feasible, terms, low, high)), [weights], radius
        )
        self._offer_within(feasible, points)
        if feasible.noise is None:
            return points
        for turn in range(_FINER):
            positions = list_around(feasible, points, low, high, turn)
            points = spend(feasible, Landscape(feasible, [terms], positions), [weights], radius)
            self._offer_within(feasible, points)
        if feasible.norm in (1, 2) and np.isfinite(radius):
            self._offer_within(feasible, stretch(feasible, points, radius))
        return points

    def _offer_within(self, feasible: FeasibleSet, points: FloatArray) -> None:
        """Keep points that are better than what was found, where they are closer than the radius."""
        everyone = np.arange(len(feasible))
        points = feasible.keep_within(points, everyone)
        sizes, radius = feasible.measure(points, everyone), self._request.radius
        inside = sizes <= radius if feasible.norm in (None, 0) else sizes < radius
        self._offer(np.where(inside[:, None], points, feasible.starts))

    def _offer(self, points: FloatArray) -> None:
        asked = self._request
        answers = find_answers(asked.model, points, asked.noise, rule=asked.rule, n_jobs=1)
        better = self._signs * answers < self._signs * self.answers
        self.points[better], self.answers[better] = points[better], answers[better]
