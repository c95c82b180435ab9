"""Kinds of models: how the labels of each kind are found and what is proven about them.

Owns the one place where the kind of a model is asked for. A new kind is one more class here, a line of `kind_of`, and a
row of NEAREST_FLIPS (`search/attacks.py`). Must not know how rules and bounds compute what they say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand.certificates.bounds.linear import bound_linear, label_linear, weigh_linear
from derand.certificates.bounds.majority import combine_members, decide_votes, vote_share
from derand.certificates.bounds.packing import pose_problem, pose_sum
from derand.certificates.bounds.pairwise import bound_classes, expect_classes, label_classes, weigh_classes
from derand.certificates.bounds.tree_labels import bound_trees, label_trees
from derand.certificates.rules.base import Bounds, Query, Score, make_query
from derand.certificates.rules.linear import LinearScore
from derand.certificates.rules.mean import expect_scores, sketch_scores
from derand.certificates.rules.registry import RULES
from derand.certificates.rules.trees import TreeScore
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise


class Kind(ABC):
    """A model of one kind, and what is asked of it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ensemble = model.members[0]

    @property
    def outputs(self) -> AdditiveEnsemble:
        """The ensemble with an output per class, which of two classes is not their difference."""
        return cast(AdditiveEnsemble, self.model)

    @abstractmethod
    def label(self, rows: Numbers, query: Query) -> IntArray:
        """The label of each row: 0, 1, ..."""

    @abstractmethod
    def bound(self, rows: Numbers, query: Query) -> list[Bounds]:
        """What is proven about each row, for each budget of categorical changes."""

    def score(self, query: Query, n_rows: int) -> Score:
        """The scores of a regression model, and what is proven about them."""
        raise TypeError(f"{type(self).__name__} does not predict a number.")

    def effective_noise(self, noise: Noise | None) -> Noise | None:
        """The noise that makes labels other than those of the model as deployed."""
        return noise

    def subtract_threshold(self, rows: FloatArray, noise: Noise | None) -> FloatArray:
        """How far the expected score of two classes lies above the threshold, in grid units, quickly."""
        raise TypeError(f"{type(self).__name__} has no one score.")

    @abstractmethod
    def relate_to_range(self, rows: FloatArray, noise: Noise | None, is_one: NDArray[np.generic]) -> FloatArray:
        """Where the expected score of two classes lies between its extremes, -1 and 1, the threshold being 0."""

    def expect(self, rows: FloatArray, noise: Noise | None) -> FloatArray:
        """Expected score of each of several classes in grid units, (n_rows, n_classes)."""
        return expect_classes(self.outputs, rows, self.effective_noise(noise))

    def weigh(self, rows: FloatArray, query: Query) -> FloatArray:
        """Logarithm of the odds of each of several classes against its strongest competitor, (n_rows, n_classes)."""
        raise TypeError(f"{type(self).__name__} has no odds.")


class Majority(Kind):
    """A weighted vote of ensembles."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        assert model.weights is not None  # see `kind_of`
        self._weights, self._members = model.weights, [kind_of(member) for member in model.members]

    def label(self, rows: Numbers, query: Query) -> IntArray:
        """The label that outweighs the other one."""
        return decide_votes(self._label_members(rows, query), self._weights)

    def bound(self, rows: Numbers, query: Query) -> list[Bounds]:
        """What follows from the bounds of all members."""
        parts = [member.bound(rows, query) for member in self._members]
        return [combine_members(bounds, self._weights) for bounds in zip(*parts, strict=True)]

    def share_votes(self, rows: NDArray[np.generic], query: Query) -> FloatArray:
        """The weight of the members that vote for class 1, as a share."""
        votes = self._label_members(rows, query) ^ (self._weights < 0)[:, None]
        return vote_share(votes, np.abs(self._weights))

    def relate_to_range(self, rows: FloatArray, noise: Noise | None, is_one: NDArray[np.generic]) -> FloatArray:
        """The share of the weight that votes for class 1."""
        return 2 * self.share_votes(rows, make_query(self.model, rows.shape[0], noise, RULES["mean"])) - 1

    def _label_members(self, rows: NDArray[np.generic], query: Query) -> IntArray:
        return np.stack([member.label(rows, query) for member in self._members])


class Linear(Kind):
    """A linear model of any number of classes, or a linear regression: noise changes neither labels nor scores."""

    def label(self, rows: Numbers, query: Query) -> IntArray:
        """The label by the exact sum of products."""
        return label_linear(self.ensemble, rows)

    def bound(self, rows: Numbers, query: Query) -> list[Bounds]:
        """The margin divided by the dual norm of the slopes, within limits."""
        return bound_linear(self.ensemble, rows, query)

    def score(self, query: Query, n_rows: int) -> Score:
        """The sum of products."""
        if query.proof == "paper":
            raise ValueError(
                "`proof` must be 'best' for numbers of a linear model, which have no distribution of scores."
            )
        return LinearScore(self.ensemble, query, n_rows)

    def effective_noise(self, noise: Noise | None) -> Noise | None:
        """Symmetric noise leaves the sign of a linear score alone, in most copies and on average."""
        return None

    def subtract_threshold(self, rows: FloatArray, noise: Noise | None) -> FloatArray:
        """The score less the threshold."""
        difference = self.ensemble.duel(0, 1)
        return np.asarray(difference.score(rows) - (difference.threshold or 0))

    def relate_to_range(self, rows: FloatArray, noise: Noise | None, is_one: NDArray[np.generic]) -> FloatArray:
        """The score over its size and 1: it has no extremes."""
        margin = self.subtract_threshold(rows, noise) / self.ensemble.levels
        return np.asarray(margin / (1 + np.abs(margin)))

    def weigh(self, rows: FloatArray, query: Query) -> FloatArray:
        """By the distribution of the score difference, or a bound of it."""
        assert query.noise is not None  # a vote has one
        return weigh_linear(self.outputs, rows, query.noise)


class Pairwise(Kind):
    """A sum per class, of three classes or more: each row's class is compared with its rivals, two by two."""

    def label(self, rows: Numbers, query: Query) -> IntArray:
        """The class that wins all of its comparisons, or the one that is beaten least."""
        return label_classes(self.ensemble, rows, query)

    def bound(self, rows: Numbers, query: Query) -> list[Bounds]:
        """The worst comparison of each row."""
        return bound_classes(self.ensemble, rows, query)

    def relate_to_range(self, rows: FloatArray, noise: Noise | None, is_one: NDArray[np.generic]) -> FloatArray:
        """Several classes have no one score."""
        raise ValueError("Scores can be related to their range for two classes only.")

    def weigh(self, rows: FloatArray, query: Query) -> FloatArray:
        """By the distribution of each score difference."""
        return weigh_classes(self.outputs, rows, query)


class Trees(Kind):
    """Trees over columns that they share, of any number of classes, or a number: searched, without noise."""

    def label(self, rows: Numbers, query: Query) -> IntArray:
        """The label by whole scores."""
        return label_trees(self.ensemble, np.asarray(rows, dtype=np.float64))

    def bound(self, rows: Numbers, query: Query) -> list[Bounds]:
        """What the search proves."""
        return bound_trees(self.ensemble, rows, query)

    def score(self, query: Query, n_rows: int) -> Score:
        """The sum of leaves."""
        return TreeScore(self.ensemble, query, n_rows)

    def subtract_threshold(self, rows: FloatArray, noise: Noise | None) -> FloatArray:
        """The score less the threshold."""
        return np.asarray(self.ensemble.score(rows) - (self.ensemble.threshold or 0), dtype=np.float64)

    def relate_to_range(self, rows: FloatArray, noise: Noise | None, is_one: NDArray[np.generic]) -> FloatArray:
        """The share of the way to what the highest leaves add up to, or the lowest ones."""
        if self.ensemble.n_classes > 2:
            raise ValueError("Scores can be related to their range for two classes only.")
        threshold = self.ensemble.threshold or 0
        lowest, highest = (sum(one.score_range()[end] for one in self.ensemble.terms) for end in (0, 1))
        above, below = max(highest - threshold, 1), max(threshold - lowest, 1)
        return np.asarray(self.subtract_threshold(rows, noise) / np.where(is_one, above, below))


class OneSum(Kind):
    """One sum of step functions, grids and tables: two classes, or a number."""

    def label(self, rows: Numbers, query: Query) -> IntArray:
        """Whether the smoothed score is above the threshold."""
        return query.rule.label(pose_problem(self.ensemble), rows, query)

    def bound(self, rows: Numbers, query: Query) -> list[Bounds]:
        """What the rule proves."""
        return query.rule.bound(pose_problem(self.ensemble), rows, query)

    def score(self, query: Query, n_rows: int) -> Score:
        """The smoothed score."""
        return query.rule.smooth(pose_sum(self.ensemble), query, n_rows)

    def subtract_threshold(self, rows: FloatArray, noise: Noise | None) -> FloatArray:
        """By the curves of the terms: off by some 1e-4 of a term's range under noise."""
        problem = pose_problem(self.ensemble)
        score = sketch_scores(problem.terms, rows, noise) + problem.terms.fixed_scores(rows)
        return np.asarray(score - problem.threshold)

    def relate_to_range(self, rows: FloatArray, noise: Noise | None, is_one: NDArray[np.generic]) -> FloatArray:
        """The share of the way from the threshold to the largest score, or the least."""
        problem = pose_problem(self.ensemble)
        score = expect_scores(problem.terms, rows, noise) + problem.terms.fixed_scores(rows)
        lowest, highest = (sum(one.score_range()[end] for one in self.ensemble.terms) for end in (0, 1))
        above, below = max(highest - problem.threshold, 1), max(problem.threshold - lowest, 1)
        return np.asarray((score - problem.threshold) / np.where(is_one, above, below))


def kind_of(model: Model) -> Kind:
    """A model as one of its kind."""
    if model.weights is not None:
        _refuse_trees_that_vote(model)
        return Majority(model)
    if model.has_trees:
        return Trees(model)
    if model.is_linear:
        return Linear(model)
    return Pairwise(model) if model.n_classes > 2 else OneSum(model)


def _refuse_trees_that_vote(model: Model) -> None:
    """Refuse a vote of ensembles whose trees join many columns."""
    if model.has_trees:
        raise ValueError(
            "A WeightedVote takes no members whose trees join many columns: certify each member by itself, or add "
            "their trees up into one AdditiveEnsemble."
        )


def stands_for_another(model: AdditiveEnsemble) -> bool:
    """Whether the scores of the model that is meant may differ from those of its sum."""
    return bool(model.score_error) or isinstance(kind_of(model), Linear | Trees)
