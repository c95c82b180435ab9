"""Boosting for the certificate: stumps added along the residual, and a vote of ensembles (paper, section 4.2).

Owns both loops of the paper's boosting. Must not know how pmfs are kept, how splits are searched, how certificates are
made, or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from derand._core.arrays import TINY, FloatArray, freeze
from derand.certificates import certify
from derand.model import AdditiveEnsemble, StepFunction, WeightedVote
from derand.noise import Noise
from derand.train.paper.pmfs import ScorePmfs
from derand.train.paper.residual_splits import Candidate, ResidualSearch
from derand.train.paper.stumps import Stumps, search_stumps, select_majority, train_stumps
from derand.train.splits import SplitGrid
from derand.train.table import TrainingTable

LeafEdge = Callable[[Sequence[float]], float]
"""The splits of a feature, in order of addition -> the one that parts the rows for the leaves of the newest stump."""
Progress = Callable[[int], Iterable[int]]
"""How many rounds there are at most -> 0, 1, ..., while they are carried out."""

_SMOOTHING = 1e-6  # keeps the denominator of a leaf positive where every residual is 0 or 1
_STANDSTILL = 1e-9  # an error this close to 1/2 changes neither the weights of the rows nor the vote


def choose_newest(edges: Sequence[float]) -> float:
    """The split of the new stump itself: the leaves are fitted to the rows on its two sides."""
    return edges[-1]


@dataclass(frozen=True, slots=True, eq=False)
class TreeBoosting:
    """What boosting with stumps found; immutable.

    Attributes
    ----------
    stumps : Stumps
        Those of the first ensemble, then those that were added, in order.
    n_added : int
    train_score, validation_score : arrays of shape (n_added + 1,)
        After each stage, beginning with the first ensemble: the weighted share of rows whose certifiable prediction
        is right. `validation_score` is None where no rows were set aside.
    ignored_features : mapping of name or number to text
        Why a feature has no term.
    warnings : tuple of str
        What whoever trains should be told.
    """

    stumps: Stumps
    n_added: int
    train_score: FloatArray
    validation_score: FloatArray | None
    ignored_features: Mapping[str | int, str]
    warnings: tuple[str, ...]

    @property
    def model(self) -> AdditiveEnsemble:
        return self.stumps.to_ensemble()


def boost_stumps(
    table: TrainingTable,
    noise: Noise,
    *,
    failure: float,
    aside: TrainingTable | None = None,
    n_estimators: int = 40,
    max_stumps_per_feature: int | None = None,
    learning_rate: float = 1.0,
    levels: int = 100,
    split_step: float = 0.01,
    max_entropy: float = 0.693147,
    categorical_leaf: float | None = 0.125,
    least_rows: int | None = None,
    n_iter_no_change: int | None = None,
    choose_leaf_edge: LeafEdge = choose_newest,
    progress: Progress = range,
    n_threads: int = 1,
) -> TreeBoosting:
    """Add stumps to the independent ensemble, each along what the certifiable prediction still lacks.

    `failure`: the mass that may fail where the certifiable prediction is read; `aside`: rows that are scored and not
    trained on; `n_estimators`, `max_stumps_per_feature`, `learning_rate`, `levels`, `split_step`, `max_entropy`,
    `categorical_leaf`: as for `derand.RobTreeBoostClassifier`; `least_rows`: as for `train_stumps`; `n_iter_no_change`:
    stop where the score, on the rows set aside if there are any, has not risen for this many added stumps, and go back
    to the best stage; `choose_leaf_edge`: which of a feature's splits, given in order of addition, parts the rows to
    which the leaves of its newest stump are fitted; `progress`: gives the rounds; `range`, or a range that shows how
    far it is; `n_threads`: the result does not depend on it.

    Examples
    --------
    >>> from derand import Gaussian
    >>> table = TrainingTable(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1], dtype=np.uint8))
    >>> boosting = boost_stumps(table, Gaussian(0.5), failure=0.1, n_estimators=2)
    >>> boosting.n_added, boosting.train_score.tolist()
    (2, [1.0, 1.0, 1.0])
    """
    grid = SplitGrid.within(noise, float(split_step))
    tables = [table] if aside is None else [table, aside]
    may_miss = {column for part in tables for column in part.list_missing()}
    first = search_stumps(
        table,
        noise,
        grid,
        levels=levels,
        max_entropy=max_entropy,
        categorical_leaf=categorical_leaf,
        least_rows=least_rows,
        n_threads=n_threads,
        may_miss=may_miss,
    )
    parts = [_Rows(part, first.stumps, noise, failure, n_threads) for part in tables]
    stumps, scores = _add_stumps(
        replace(first.stumps, majority=select_majority(tables)),
        ResidualSearch(table.X, table.numerical, table.row_weight, noise, grid),
        parts,
        partial(_fit_leaves, parts[0], may_miss=may_miss, noise=noise, learning_rate=learning_rate, levels=levels),
        choose_leaf_edge,
        rounds=progress(n_estimators),
        most=max_stumps_per_feature,
        patience=n_iter_no_change,
    )
    used = {table.name(feature) for feature in np.unique(stumps.features).tolist()}
    return TreeBoosting(
        stumps,
        len(stumps) - len(first.stumps),
        freeze(scores[:, 0].copy()),
        None if aside is None else freeze(scores[:, 1].copy()),
        {name: why for name, why in first.ignored_features.items() if name not in used},
        first.warnings,
    )


def _add_stumps(
    stumps: Stumps,
    search: ResidualSearch,
    parts: Sequence[_Rows],
    fit_leaves: Callable[[int, float], tuple[float, float, float]],
    choose_leaf_edge: LeafEdge,
    *,
    rounds: Iterable[int],
    most: int | None,
    patience: int | None,
) -> tuple[Stumps, FloatArray]:
    """All stumps, and the score of each part of the rows after each stage, (n_stages, n_parts)."""
    splits: dict[int, list[int]] = {column: [] for column in search.columns}
    for feature, threshold in zip(stumps.features.tolist(), stumps.thresholds.tolist(), strict=True):
        splits[feature].append(search.number_of(feature, threshold))
    n_first, best = stumps.features.size, 0
    scores = [[part.share_certified() for part in parts]]
    for added in rounds:
        full = [column for column, numbers in splits.items() if most is not None and len(numbers) >= most]
        found = search.find(0.5 + 0.5 * parts[0].residual, splits, full)
        if found is None:
            break
        splits[found.column].append(found.number)
        edges = [search.threshold(Candidate(found.column, number)) for number in splits[found.column]]
        leaves = fit_leaves(found.column, choose_leaf_edge(edges))
        stumps = stumps.append(found.column, search.threshold(found), leaves)
        for part in parts:
            part.update([stumps.merge(found.column)], len(stumps) * stumps.levels)
        scores.append([part.share_certified() for part in parts])
        best = added + 1 if scores[-1][-1] > scores[best][-1] else best
        if patience is not None and added + 1 - best >= patience:
            break
    if patience is not None:
        stumps, scores = stumps.take(slice(n_first + best)), scores[: best + 1]
    return stumps, np.array(scores)


def _fit_leaves(
    rows: _Rows,
    column: int,
    edge: float,
    *,
    may_miss: Collection[int],
    noise: Noise,
    learning_rate: float,
    levels: int,
) -> tuple[float, float, float]:
    """Leaves that take a Newton step of the cross-entropy, on the grid; the last is that of missing values, NaN where
    the column has none."""
    scale = noise.scales(np.array([column]))[0]
    missing = np.isnan(rows.X[:, column])
    distance = (edge - rows.X[:, column]) / scale
    size = np.abs(rows.residual)
    curvature = _SMOOTHING + size * (1 - size)
    sides = noise.cdf(distance), noise.cdf(-distance)
    if missing.any():
        sides = np.where(missing, 0.0, sides[0]), np.where(missing, 0.0, sides[1])
    leaves = []
    for share in (*sides, missing.astype(np.float64)):
        weight = rows.weights * share
        step = 0.25 * learning_rate * (weight @ rows.residual) / max(weight @ curvature, TINY)
        leaves.append(float(np.rint(np.clip(0.5 + step, 0.0, 1.0) * levels) / levels))
    return leaves[0], leaves[1], leaves[2] if column in may_miss else np.nan


class _Rows:
    """Rows with the pmfs of their scores; `residual` is the label minus the certifiable prediction of each."""

    def __init__(self, table: TrainingTable, first: Stumps, noise: Noise, failure: float, n_threads: int) -> None:
        model = first.to_ensemble()
        self.X = table.X
        self.weights = table.row_weight
        self.residual = np.empty(0)
        self._target = table.target
        self._pmfs = ScorePmfs(table.X, noise, failure, n_threads)
        self._shift = np.zeros(table.target.size, dtype=np.int64)  # what categories add to the score
        for categories in model.category_tables:
            self._shift += categories.evaluate(table.X[:, categories.feature])
        # narrow terms first: their pmfs stay small, and features with wide terms are those that will change
        terms = sorted(model.step_functions, key=lambda term: int(np.ptp(term.scores)))
        self.update(terms, len(first) * first.levels)

    def update(self, terms: Iterable[StepFunction], most: int) -> None:
        """Put new terms in place of the old ones; `most` is the largest score that stumps could have."""
        for term in terms:
            self._pmfs.replace_term(term)
        if most:
            score = self._pmfs.certifiable_scores(self._target) + self._shift
            self.residual = np.asarray(self._target - score / most)
        else:  # without a model the prediction is 1/2
            self.residual = np.asarray(self._target - 0.5, dtype=np.float64)

    def share_certified(self) -> float:
        """Weighted share of the rows whose certifiable prediction is on the side of the label."""
        right = np.where(self._target == 1, self.residual < 0.5, self.residual >= -0.5)
        return float(np.average(right, weights=self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class VoteBoosting:
    """What boosting of a vote found; immutable.

    Attributes
    ----------
    model : WeightedVote
    member_errors : array of shape (n_rounds,)
        Certifiable error of the member of each round, of those that have no vote, too.
    warnings : tuple of str
        What whoever trains should be told.
    """

    model: WeightedVote
    member_errors: FloatArray
    warnings: tuple[str, ...]


def boost_vote(
    table: TrainingTable,
    noise: Noise,
    *,
    radius: float,
    n_estimators: int = 20,
    levels: int = 100,
    split_step: float | None = 0.01,
    max_entropy: float = 0.693,
    categorical_leaf: float | None = 0.125,
    least_rows: int | None = None,
    progress: Progress = range,
    n_threads: int = 1,
) -> VoteBoosting:
    """Train independent ensembles one after the other, each with more weight on rows that the last did not certify.

    `radius`: target radius; `n_estimators`, `levels`, `split_step`, `max_entropy`, `categorical_leaf`: as for
    `derand.RobAdaBoostClassifier`; `least_rows`: as for `train_stumps`; `progress`: gives the rounds; `range`, or a
    range that shows how far it is; `n_threads`: the result does not depend on it.

    Examples
    --------
    >>> from derand import Gaussian
    >>> table = TrainingTable(np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 1, 1], dtype=np.uint8))
    >>> boosting = boost_vote(table, Gaussian(0.5), radius=1.0)
    >>> boosting.member_errors.tolist(), boosting.model.weights.tolist()
    ([0.0], [1.0])
    """
    weights = table.row_weight / table.row_weight.mean()
    members: list[AdditiveEnsemble] = []
    errors: list[float] = []
    warnings: tuple[str, ...] = ()
    for number in progress(n_estimators):
        member = train_stumps(
            table.weigh(weights),
            noise,
            levels=levels,
            split_step=split_step,
            max_entropy=max_entropy,
            categorical_leaf=categorical_leaf,
            least_rows=least_rows,
            n_threads=n_threads,
        )
        if number == 0:  # what can be said about the columns is said in the first round
            warnings = member.warnings
        members.append(member.model)
        certificates = certify(members[-1], table.X, noise, n_jobs=n_threads, proof="paper")
        failed = (certificates.label != table.target) | (certificates.radius < radius)
        errors.append(float(weights[failed].sum() / weights.sum()))
        if errors[-1] in (0.0, 1.0) or abs(errors[-1] - 0.5) <= _STANDSTILL:
            break
        weights = np.where(failed, weights * ((1 - errors[-1]) / errors[-1]), weights)
        weights /= weights.mean()
    vote, complaints = _combine(members, errors, radius)
    return VoteBoosting(vote, freeze(np.array(errors)), (*warnings, *complaints))


def _combine(
    members: Sequence[AdditiveEnsemble], errors: Sequence[float], radius: float
) -> tuple[WeightedVote, tuple[str, ...]]:
    """The vote of the members, for the certifiable error of each, and what to say about it."""
    if errors[-1] == 0.0:  # its weight would be infinite
        return WeightedVote((members[-1],), np.ones(1)), ()
    chosen = [at for at, error in enumerate(errors) if error < 0.5 - _STANDSTILL]
    if not chosen:
        complaint = (
            f"No member certifies half of the rows, by weight, at radius={radius:g}, so the first one decides "
            "alone: use a smaller radius, or another noise or scaling."
        )
        return WeightedVote((members[0],), np.ones(1)), (complaint,)
    error = np.array(errors)[chosen]
    return WeightedVote(tuple(members[at] for at in chosen), np.log((1 - error) / error)), ()
