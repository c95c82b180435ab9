"""Attacking rows: the border of the search for changes that do flip an answer, an upper bound beside the certified one.

Owns `attack`: the checks, the changes that have no size (categories, numbers that go missing or appear), which are made
first, and the choice of the best. Must not know how a rule proves what it says, nor any certificate: what is found
stands against them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import BoolArray, FloatArray, IntArray, is_whole
from derand._core.threads import count_threads, run_blocks
from derand.certificates.bounds.pairwise import build_pair
from derand.certificates.classification import certify_perturbed, read_request, read_rows, resolve_rows
from derand.certificates.kinds import Kind, Linear, Majority, OneSum, Pairwise, Trees, kind_of
from derand.certificates.results.attacks import Attacks
from derand.certificates.rules.base import TreeSearch, make_query, read_budget
from derand.certificates.rules.registry import find_rule
from derand.certificates.search.feasible_set import FeasibleSet, Target, are_same
from derand.certificates.search.linear import attack_linear
from derand.certificates.search.nearest_flip import Search, confirm
from derand.certificates.search.witness import Verifier, put_back, search_witnesses, shrink_witnesses
from derand.kernels.norms import measure_norms
from derand.model import Model, coarsen
from derand.noise import Noise
from derand.threat import Threat

_BLOCK_NUMBERS = 2**22
_BLOCK_ROWS = 128
_LEVELS = 2**11
"""Of the grid on which votes are searched: labels by finer distributions take milliseconds each."""
_POSITIONS = 150
_NEAREST_ROWS = 2
_NEAREST_ROWS_OF_VOTES = 8
_CANDIDATES = 2**20
"""Numbers of the rows that are looked at as ends to walk to."""


class Request(NamedTuple):
    """What is asked of all rows."""

    target: Target
    seed: int = 0
    others: FloatArray | None = None
    n_jobs: int | None = None
    budget: int | None = None

    def label(self, rows: FloatArray) -> IntArray:
        """Labels by the function that `predict` calls."""
        return self.target.label(rows, self.n_jobs)


class _Search(NamedTuple):
    """What is asked of all rows of two classes."""

    target: Target
    seed: int
    others: FloatArray
    other_labels: IntArray
    surrogate: Target
    """The target, or what is searched in its place."""


def attack(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    *,
    rule: str = "vote",
    threat: Threat | None = None,
    random_state: int = 0,
    others: ArrayLike | None = None,
    n_jobs: int | None = None,
    budget: int | None = None,
) -> Attacks:
    """The smallest change of each row that was found to flip its answer.

    Follows the worst case of the sum term by term, by scores and by what the exact failing mass makes of them; single
    columns; ways to rows of another label. Categories, and numbers that may go missing or appear, are changed to their
    worst first. Every flip is one by the function that `predict` calls. Where nothing is found nothing is proven.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        As for `certify`.
    noise : Noise, str or None
        As for `certify`.
    rule : {"vote", "mean"}
    threat : Threat or None
        Within which changes stay, and in whose norm and units they count. None is the norm of the noise, 2 without any.
    random_state : int
        Seed of restarts. The result is the same for the same seed, whatever the number of threads.
    others : array-like of shape (n, n_features) or None
        Rows to walk towards, where their label differs. None is `X`.
    n_jobs : int or None
        Threads; None or -1 uses all cores.
    budget : int or None
        Of a model whose trees join many columns, as for `certify`: the change is the one that the search found there.

    Returns
    -------
    Attacks

    Examples
    --------
    >>> from derand import AdditiveEnsemble, attack, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> X = [[0.0], [2.0]]
    >>> attacks = attack(model, X, "gaussian:0.25")
    >>> attacks.distance.round(2).tolist(), attacks.flipped.tolist()
    ([0.5, 1.5], [1, 0])

    The changed rows are there to be checked, and no flip lies inside what is certified:

    >>> certify(model, attacks.rows, "gaussian:0.25").label.tolist()
    [1, 0]
    >>> attacks.require_outside(certify(model, X, "gaussian:0.25"))
    """
    target, rows = read_target(model, X, noise, threat, rule)
    seed = read_seed(random_state)
    ends = _read_others(model, others, target.noise)
    return attack_rows(rows, Request(target, seed, ends, n_jobs, read_budget(budget)))


def read_target(
    model: Model, X: ArrayLike, noise: Noise | str | float | None, threat: Threat | None, rule: str
) -> tuple[Target, FloatArray]:
    """What is to be attacked, and the rows, checked."""
    given = threat or Threat()
    chosen, cells = read_request(model, X, noise, [given], rule)
    rows = np.array(cells, dtype=np.float64)
    return Target(model, chosen, rule, resolve_rows(given, model, chosen, rows)), rows


def read_seed(random_state: int) -> int:
    if not is_whole(random_state) or random_state < 0:
        raise ValueError(f"`random_state` must be a whole number, 0 or larger, got {random_state!r}.")
    return int(random_state)


def _read_others(model: Model, others: ArrayLike | None, noise: Noise | None) -> FloatArray | None:
    if others is None:
        return None
    if np.ndim(others) != 2 or np.shape(others)[1] != model.n_features:
        raise ValueError(
            f"`others` must have shape (n, {model.n_features}), one column per feature of the model, "
            f"got {np.shape(others)}."
        )
    return np.asarray(read_rows(model, others, noise), dtype=np.float64)


def attack_rows(rows: FloatArray, request: Request) -> Attacks:
    """`attack` for rows and a threat that were checked already."""
    target, model = request.target, request.target.model
    labels = request.label(rows)
    search = _attack_linked if target.perturbation.links else NEAREST_FLIPS[type(kind_of(model))]
    changed, distance = search(request, rows, labels)
    found, flipped = np.isfinite(distance), labels.copy()
    verifier = Verifier(model, target.noise, target.rule, target.perturbation, rows[found], labels[found])
    if target.perturbation.norm is None:
        changed[found] = shrink_witnesses(verifier, changed[found])
    else:
        changed[found] = put_back(verifier, changed[found], *_list_sizeless(model, rows[found], changed[found]))
    if found.any():
        flipped[found] = request.label(changed[found])
    codes = list(model.categorical_features)
    return Attacks(
        found,
        distance,
        changed,
        labels,
        flipped,
        np.asarray((~are_same(changed[:, codes], rows[:, codes])).sum(axis=1)),
        target.perturbation.threat,
        classes=np.arange(model.n_classes),
        rule=target.rule,
        noise=target.noise,
    )


def _attack_two(request: Request, rows: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """The nearest flips of two classes, and their distances; infinite where none was found."""
    target, model = request.target, request.target.model
    ends = rows if request.others is None else request.others
    end_labels = labels if request.others is None else request.label(ends)
    few = np.unique(np.linspace(0, len(ends) - 1, max(_CANDIDATES // rows.shape[1], 8)).astype(np.int64))
    few = few[(few >= 0) & (few < len(ends))]
    surrogate = replace(target, model=coarsen(model, _LEVELS)) if target.rule == "vote" else target
    search = _Search(target, request.seed, ends[few], end_labels[few], surrogate)
    changed, distance = rows.copy(), np.full(len(rows), np.inf)

    def attack_block(block: slice) -> None:
        at = np.arange(block.start, block.stop)
        changed[block], distance[block] = _attack_block(search, rows[block], labels[block], at)

    run_blocks(attack_block, len(rows), count_block_rows(model, _POSITIONS), count_threads(request.n_jobs))
    return changed, distance


def count_block_rows(model: Model, n_positions: int) -> int:
    """Rows of a block, so that as many positions of each fit into memory."""
    return int(np.clip(_BLOCK_NUMBERS // (n_positions * max(model.n_cells, 1)), 1, _BLOCK_ROWS))


def _attack_pairs(request: Request, rows: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of several classes: the nearest flip of a pair that flips the label of the model as well."""
    (ensemble,) = request.target.model.members
    changed, distance = rows.copy(), np.full(len(rows), np.inf)
    others = rows if request.others is None else request.others
    for low, high in ensemble.pairs:
        at = np.flatnonzero((labels == low) | (labels == high))
        if not at.size:
            continue
        pair = replace(request.target, model=build_pair(ensemble, low, high))
        part = request._replace(target=pair, others=others)
        points, sizes = _attack_two(part, rows[at], part.label(rows[at]))
        nearer = np.flatnonzero(sizes < distance[at])
        if nearer.size:
            nearer = nearer[request.label(points[nearer]) != labels[at[nearer]]]
            changed[at[nearer]], distance[at[nearer]] = points[nearer], sizes[nearer]
    return changed, distance


def _attack_linear(request: Request, rows: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of a linear model the worst change is explicit."""
    (ensemble,) = request.target.model.members
    return attack_linear(ensemble, rows, labels, request.target.perturbation)


def _attack_trees(request: Request, rows: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of trees the search that certifies finds the nearest flip; a tie is one where `predict` says so."""
    target = request.target
    query = make_query(
        target.model,
        len(rows),
        target.noise,
        find_rule(target.rule),
        target.perturbation,
        n_jobs=request.n_jobs,
        search=TreeSearch(read_budget(request.budget)),
    )
    (bounds,) = kind_of(target.model).bound(rows, query)
    assert bounds.tree is not None  # of trees there is always one
    changed = bounds.tree.witness
    distance = np.zeros(len(rows)) if bounds.tree.attacked is None else bounds.tree.attacked
    found = (request.label(changed) != labels) & np.isfinite(distance)
    return np.where(found[:, None], changed, rows), np.where(found, distance, np.inf)


def _attack_linked(request: Request, rows: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Where columns are linked, which limits alone can be: the changes that certificates find."""
    target, search = request.target, TreeSearch(read_budget(request.budget))
    (found,) = certify_perturbed(
        target.model, rows, target.noise, target.perturbation, rule=target.rule, n_jobs=request.n_jobs, search=search
    )
    assert found.flips is not None  # limits alone say what may change
    assert found.witness is not None
    return np.array(found.witness), np.where(found.flips, 0.0, np.inf)


NEAREST_FLIPS: dict[type[Kind], Callable[[Request, FloatArray, IntArray], tuple[FloatArray, FloatArray]]] = {
    Majority: _attack_two,
    OneSum: _attack_two,
    Pairwise: _attack_pairs,
    Linear: _attack_linear,
    Trees: _attack_trees,
}
"""How each kind of model is searched: changed rows and their distances, infinite where nothing was found."""


def _attack_block(
    search: _Search, rows: FloatArray, labels: IntArray, numbers: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The best changed rows of a block, and their distances; `numbers` are those of the rows, for their seeds."""
    changed, distance = rows.copy(), np.full(len(rows), np.inf)
    target = search.target
    if target.perturbation.norm is None:
        found, witnesses = search_witnesses(target, rows, labels)
        changed[found], distance[found] = witnesses[found], 0.0
    others = _choose_others(search, rows, labels)
    for starts in target.list_starts(rows, labels):
        at = np.flatnonzero(distance > 0)
        if not at.size:
            break
        feasible = target.surround(rows[at], starts[at], labels[at])
        points, distances = _run(search, feasible, others[at], numbers[at])
        nearer = distances < distance[at]
        changed[at[nearer]], distance[at[nearer]] = points[nearer], distances[nearer]
    return changed, distance


def _run(
    search: _Search, feasible: FeasibleSet, others: FloatArray, numbers: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The nearest flips from a feasible set, and their distances.

    Where a model is slow to ask, a surrogate on a coarser grid is searched, and the model settles what was found. Rows
    of which it does not confirm anything are searched by the model itself.
    """
    rngs = [np.random.default_rng([search.seed, number]) for number in numbers.tolist()]
    found = Search(feasible)
    at = np.arange(len(feasible))
    if search.surrogate.model is not search.target.model:
        first = Search(replace(feasible, target=search.surrogate))
        first.run(others, rngs)
        confirm(found, first.points)
        at = np.flatnonzero(np.isinf(found.distances))
    if at.size:
        last = Search(feasible.take(at))
        last.run(others[at], [rngs[k] for k in at.tolist()])
        found.points[at], found.distances[at] = last.points, last.distances
    return found.points, found.distances


def _choose_others(search: _Search, rows: FloatArray, labels: IntArray) -> FloatArray:
    """The nearest rows of another label, (n_rows, n_others, n_features); none where a norm has no straight ways."""
    model, perturbation = search.target.model, search.target.perturbation
    count = _NEAREST_ROWS if model.weights is None else _NEAREST_ROWS_OF_VOTES
    columns, norm = np.array(model.numerical_features, dtype=np.int64), perturbation.norm
    if not norm or not columns.size or not len(search.others):
        return np.empty((len(rows), 0, rows.shape[1]))
    chosen = np.repeat(rows[:, None], count, axis=1)
    units = perturbation.units[columns]
    for k, row in enumerate(rows):
        at = np.flatnonzero(search.other_labels != labels[k])
        with np.errstate(over="ignore"):
            away = np.nan_to_num((search.others[np.ix_(at, columns)] - row[columns]) / units)
            nearest = at[np.argsort(measure_norms(away, norm), kind="stable")[:count]]
        chosen[k, : nearest.size] = search.others[nearest]
    return chosen


def _list_sizeless(model: Model, rows: FloatArray, changed: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Changes without a size, in the order of columns: categories, and numbers that went missing or appeared."""
    columns = np.isnan(rows) != np.isnan(changed)
    columns[:, list(model.categorical_features)] = True
    return np.zeros(rows.shape), columns
