"""What can be proven about the prediction of a row by a model with trees: a label or a number.

Owns what the sum must clear, the errors of the model that is meant included: each leaf counts with its own, so that a
region is bounded by what the leaves that it reaches may be off by. Must not know how a region is split, nor tables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

from derand._core.arrays import FloatArray
from derand.auditing._predictions import AnswerGrid, LabelProof, PairwiseProof
from derand.auditing._threat import AllowedChanges
from derand.auditing.trees.regions import Region
from derand.auditing.trees.splitting import SplitProof, Valued
from derand.auditing.trees.sums import FINE, Part, TreeSums
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise

MOST_REGIONS = 10_000
"""Regions in which a claim must be proven; what takes more counts as not proven."""
_MOST_AGAIN = 1000
"""The same for each of the smaller radii that are tried once a claim was not proven."""
_KEPT = 2


def read_tree_labels(
    model: Model, noise: Noise | None, rule: str, threat: AllowedChanges
) -> Callable[[FloatArray], LabelProof]:
    """What can be proven about the label of a row."""
    _require_deployed(noise, rule)
    if model.weights is not None:
        raise ValueError("A WeightedVote of models with trees has no certificates that could be audited.")
    # of two outputs `members` holds the difference, which this reading makes by itself
    ensemble = cast(AdditiveEnsemble, model)
    every = TreeSums(ensemble)
    return lambda row: TreeLabelProof(ensemble, _Row(every, row, threat))


def read_tree_numbers(
    model: Model, noise: Noise | None, rule: str, threat: AllowedChanges
) -> Callable[[FloatArray], TreeNumberProof]:
    """What can be proven about the number that is predicted of a row."""
    _require_deployed(noise, rule)
    (member,) = model.members
    sums = TreeSums(member)
    return lambda row: TreeNumberProof(member, _Row(sums, row, threat))


def _require_deployed(noise: Noise | None, rule: str) -> None:
    if noise is not None or rule != "mean":
        raise ValueError(
            f"Certificates of a model with trees must be without noise and by the rule 'mean' to be audited, got noise "
            f"{'none' if noise is None else noise} and the rule {rule!r}."
        )


class _Row:
    """A row of a model, with the regions that were asked about."""

    def __init__(self, sums: TreeSums, row: FloatArray, threat: AllowedChanges) -> None:
        self._sums, self._row, self._threat = sums, row.tolist(), threat
        self._regions: dict[tuple[float, bool], tuple[Region, list[Part]]] = {}

    def reach(self, radius: float, *, moves: bool = True) -> tuple[Region, list[Part]]:
        """All that the row may become, and the leaves that this reaches; `moves`: whether numbers change."""
        if (radius, moves) not in self._regions:
            still = replace(self._threat, norm=None, limits={}, domain={}, steps={})
            region = Region(self._sums.columns, self._row, self._threat if moves else still, radius)
            if len(self._regions) >= _KEPT:
                self._regions.pop(next(iter(self._regions)))
            self._regions[radius, moves] = region, self._sums.list_parts(region.cells)
        return self._regions[radius, moves]

    def list_own(self) -> list[Part]:
        """The leaves that the row itself reaches."""
        return self._sums.list_parts(self._sums.locate(self._row))


class TreeSum:
    """One output of a model, or the difference of two, in one row; class 1 is above a level. There is no noise."""

    band = 0.0

    def __init__(self, row: _Row, plus: int, minus: int | None, level: int, score_error: float) -> None:
        self._row, self._outputs, self.level = row, (plus, minus), level
        self._error = Fraction(score_error) * (1 if minus is None else 2)
        self._known: dict[tuple[int, Fraction, float, bool, bool], bool | None] = {}
        own = [part.leaves[0] for part in row.list_own()]
        self.score = sum(self._subtract(leaf.scores) for leaf in own)
        """Of the row itself."""
        self._own_error = self._error + Fraction(sum(self._add(leaf.errors) for leaf in own), FINE)

    def _subtract(self, scores: Sequence[int]) -> int:
        plus, minus = self._outputs
        return scores[plus] - (0 if minus is None else scores[minus])

    def _add(self, errors: Sequence[int]) -> int:
        plus, minus = self._outputs
        return errors[plus] + (0 if minus is None else errors[minus])

    @property
    def n_tried(self) -> int:
        """Regions in which a claim was not decided, where one was not; else 0."""
        return MOST_REGIONS if None in self._known.values() else 0

    def holds(self, label: int, radius: float, proof: str | None = None) -> bool:
        """Whether the label, 0 or 1, is proven to hold within the radius."""
        return self.stays(label, Fraction(self.level), radius, strictly=bool(label))

    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this."""
        return (self.score > self.level) == bool(label)

    def is_sure(self, label: int) -> bool:
        """Whether it is that of the model that is meant as well."""
        if label:
            return self.score - self._own_error > self.level
        return self.score + self._own_error <= self.level

    def stays_beyond(self, label: int, score: float) -> bool:
        """Whether the score is proven not to pass this one within limits, without what the model may differ."""
        return math.isfinite(score) and self.stays(label, Fraction(score), math.inf, strictly=False, with_error=False)

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """There is no failing mass."""
        return False

    def compute_share(self) -> float:
        """Without noise all copies are the row."""
        return float(self.is_label(1))

    def stays(
        self,
        label: int,
        level: Fraction,
        radius: float,
        *,
        strictly: bool,
        moves: bool = True,
        with_error: bool = True,
    ) -> bool:
        """Whether the score is proven to stay at a level or above it; for label 0, or below."""
        key = (label, level, radius if moves else math.inf, moves, with_error)
        if key not in self._known:
            again = any(other[0] == label and found is not True for other, found in self._known.items())
            proof, needed = self._pose(label, level, key[2], moves, with_error), (level if label else -level) * FINE
            least = math.floor(needed) + 1 if strictly else math.ceil(needed)
            error = math.ceil(self._error * FINE) if with_error else 0
            self._known[key] = proof.holds(least + error, _MOST_AGAIN if again else MOST_REGIONS)
        return self._known[key] is True

    def _pose(self, label: int, level: Fraction, radius: float, moves: bool, with_error: bool) -> SplitProof:
        region, parts = self._row.reach(radius, moves=moves)
        asked, sign = {one for one in self._outputs if one is not None}, 1 if label else -1
        trees = []
        for part in parts:
            if asked & part.outputs:
                trees.append(
                    [
                        Valued(
                            sign * self._subtract(leaf.scores) * FINE - (self._add(leaf.errors) if with_error else 0),
                            leaf.cells,
                        )
                        for leaf in part.leaves
                    ]
                )
        return SplitProof(trees, region)


def _compare(model: AdditiveEnsemble, row: _Row) -> dict[tuple[int, int], TreeSum]:
    """The sums that decide between two classes each."""
    if not model.offsets:
        return {(0, 1): TreeSum(row, 0, None, model.threshold or 0, model.score_error)}
    return {
        (low, high): TreeSum(row, high, low, model.offsets[low] - model.offsets[high], model.score_error)
        for low, high in itertools.combinations(range(model.n_classes), 2)
    }


class TreeLabelProof(PairwiseProof):
    """A label by its comparisons with all other classes."""

    def __init__(self, model: AdditiveEnsemble, row: _Row) -> None:
        self._sums = _compare(model, row)
        super().__init__(model.n_classes, self._sums, "mean")

    @property
    def n_tried(self) -> int:  # type: ignore[override]
        """Regions in which a claim was not decided, where one was not; else 0."""
        return max(one.n_tried for one in self._sums.values())

    def is_other(self, label: int) -> bool:
        """Whether the model that is meant surely answers another label."""
        return any(
            self._sums[min(label, other), max(label, other)].is_sure(int(other > label))
            for other in self._list_others(label)
        )


class TreeNumberProof:
    """What can be proven about the number that is predicted of one row."""

    def __init__(self, model: AdditiveEnsemble, row: _Row) -> None:
        assert model.offset is not None
        self._sum, self._answers = TreeSum(row, 0, None, 0, model.score_error), AnswerGrid(model.offset, model.levels)
        self._is_exact = not model.score_error and not any(
            term.kind == "tree_term" and term.describe()["rounding"] for term in model.terms
        )

    @property
    def n_tried(self) -> int:
        """Regions in which a claim was not decided, where one was not; else 0."""
        return self._sum.n_tried

    def is_value(self, value: float) -> bool:
        """Whether the row's own answer is this."""
        return self._answers.round(self._sum.score) == value

    def stays_beyond(self, label: int, end: float, radius: float) -> bool:
        """Whether the answer is proven to stay at the end or above within the radius; for label 0, or below.

        Of whole scores the answer after rounding is meant; where the model stands for another one, the exact number.
        """
        if self._is_exact:
            level = Fraction(self._answers.round_up(end) if label else self._answers.round_down(end))
        else:
            level = self._answers.to_grid(end) - self._answers.offset
        return self._sum.stays(label, level, radius, strictly=False, moves=radius > 0)

    def stays_within(self, value: float, tolerance: float, radius: float) -> bool:
        """Whether the answer is proven to differ from a value by the tolerance at most within the radius.

        Scores are compared before they are rounded.
        """
        room, score = Fraction(tolerance) * self._answers.levels, self._sum.score
        return self.is_value(value) and all(
            self._sum.stays(label, end, radius, strictly=False, moves=radius > 0)
            for label, end in ((1, score - room), (0, score + room))
        )
