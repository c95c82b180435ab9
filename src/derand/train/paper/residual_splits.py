"""The next split of boosting: where a column is best cut to follow pseudo-labels (paper, section 4.2).

Owns the search for the split of least mean squared error under noise, over all cells of a feature that its earlier
splits and the new one make. Knows histograms and the noise's distribution function; must not know rows' labels,
models or scikit-learn.

With W(v) and S(v) the weight and the sum of pseudo-labels expected left of v, a cell between two splits has the
differences of W and S, and the error of a feature is a constant minus the sum of S**2 / W over its cells, of which
missing values are one more. Rows are tabulated once; a round only sums the pseudo-labels at each level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.noise import Noise
from derand.train.histogram import Histogram, cut_into_blocks, tabulate
from derand.train.splits import BINS_PER_STEP, SplitGrid, measure_left

_EMPTY = 1e-12
"""A cell with less than this share of the weight is empty."""


class Candidate(NamedTuple):
    """A possible split: the column and the candidate's number on its grid."""

    column: int
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Columns that share levels and candidates.

    Attributes
    ----------
    histogram : Histogram
        `counts[:, 0]` holds the weight at each level.
    codes : array of shape (n_columns, n_rows)
        Level of each row.
    candidates : array of shape (n_candidates,)
        Increasing distances from a column's smallest value, in units.
    sizes : array of shape (n_columns,)
        How many of the candidates lie in the column's own range.
    missing : array of booleans of shape (n_columns, n_rows), or None
        Where the column is missing; None where it is nowhere.
    weight_left : array of shape (n_columns, 1, n_candidates)
        Weight expected left of each candidate: the same in every round.
    """

    histogram: Histogram
    codes: NDArray[np.uint16]
    candidates: FloatArray
    sizes: IntArray
    missing: BoolArray | None
    weight_left: FloatArray

    def threshold(self, place: int, number: int) -> float:
        return float(self.histogram.lows[place] + self.histogram.units[place] * self.candidates[number])


class ResidualSearch:
    """Finds splits that follow pseudo-labels.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    columns : array of shape (n_columns,)
        The numerical columns; constant ones, and those without any value, have no candidates.
    weights : array of shape (n_rows,)
        Positive weights of the rows.
    noise : Noise
    grid : SplitGrid
    """

    def __init__(self, X: FloatArray, columns: IntArray, weights: FloatArray, noise: Noise, grid: SplitGrid) -> None:
        self._weights = weights
        self._total = float(weights.sum())
        self._noise = noise
        units = noise.units_of(np.arange(X.shape[1]))
        resolution = min(grid.step, noise.magnitude) / BINS_PER_STEP
        one_class = np.zeros(X.shape[0], dtype=np.uint8)
        self._groups = [
            group
            for block in cut_into_blocks(columns, X.shape[0])
            for histogram in tabulate(X, block, one_class, weights, units[block], resolution)
            for group in _group_columns(X, histogram, grid, noise)
        ]
        self._homes = {
            int(column): (group, place)
            for group in self._groups
            for place, column in enumerate(group.histogram.columns)
        }

    @property
    def columns(self) -> list[int]:
        """Columns that can be split, in increasing order."""
        return sorted(self._homes)

    def threshold(self, candidate: Candidate) -> float:
        """The split point, in raw units."""
        group, place = self._homes[candidate.column]
        return group.threshold(place, candidate.number)

    def number_of(self, column: int, threshold: float) -> int:
        """The candidate of a column that is nearest to a threshold."""
        group, place = self._homes[column]
        position = (threshold - group.histogram.lows[place]) / group.histogram.units[place]
        return int(np.abs(group.candidates[: group.sizes[place]] - position).argmin())

    def find(
        self, pseudo_labels: FloatArray, splits: Mapping[int, Sequence[int]], excluded: Collection[int] = ()
    ) -> Candidate | None:
        """The candidate with the least error; on a tie the first one of the first column.

        `splits`: the splits that the model has; `pseudo_labels` has shape (n_rows,).
        """
        weighted = self._weights * pseudo_labels
        total = float(weighted.sum())
        best: dict[int, tuple[float, int]] = {}
        for group in self._groups:
            places = [place for place, column in enumerate(group.histogram.columns) if column not in excluded]
            if not places:
                continue
            left = self._measure(group, np.array(places), weighted)
            for (weight, labels), place in zip(left, places, strict=True):
                column = int(group.histogram.columns[place])
                missing = self._sum_missing(group, place, weighted)
                value = self._explain(
                    weight[: group.sizes[place]],
                    labels[: group.sizes[place]],
                    (self._total - missing[0], total - missing[1]),
                    sorted(set(splits.get(column, ()))),
                )
                if missing[0] > 0:
                    value += missing[1] ** 2 / missing[0]
                number = int(value.argmax())
                if value[number] > -np.inf:
                    best[column] = (float(value[number]), number)
        if not best:
            return None
        column = max(sorted(best), key=lambda one: best[one][0])
        return Candidate(column, best[column][1])

    def _measure(self, group: _Group, places: IntArray, weighted: FloatArray) -> FloatArray:
        """Weight and sum of pseudo-labels expected left of the candidates: (n_columns, 2, n_candidates)."""
        chosen = group.histogram[places]
        n_levels = chosen.levels.size
        counts = np.zeros((places.size, 1, n_levels))
        for row, place in enumerate(places):
            present = weighted if group.missing is None else np.where(group.missing[place], 0.0, weighted)
            counts[row, 0] = np.bincount(group.codes[place], weights=present, minlength=n_levels)
        labels = measure_left(replace(chosen, counts=counts), group.candidates, self._noise)
        return np.concatenate([group.weight_left[places], labels], axis=1)

    def _sum_missing(self, group: _Group, place: int, weighted: FloatArray) -> tuple[float, float]:
        """Weight and sum of pseudo-labels of the rows in which a column is missing."""
        if group.missing is None or not group.missing[place].any():
            return 0.0, 0.0
        return float(self._weights[group.missing[place]].sum()), float(weighted[group.missing[place]].sum())

    def _explain(
        self, weight: FloatArray, labels: FloatArray, totals: tuple[float, float], edges: Sequence[int]
    ) -> FloatArray:
        """Sum of S**2 / W over the cells that each candidate makes with the edges; -inf where a cell is empty."""
        weight_at = np.concatenate([[0.0], weight[list(edges)], [totals[0]]])
        labels_at = np.concatenate([[0.0], labels[list(edges)], [totals[1]]])
        cells = np.searchsorted(np.asarray(edges, dtype=np.int64), np.arange(weight.size), side="right")
        below = weight - weight_at[cells], labels - labels_at[cells]
        above = weight_at[cells + 1] - weight, labels_at[cells + 1] - labels
        least = _EMPTY * self._total
        inside, sums = np.diff(weight_at), np.diff(labels_at)
        whole = np.where(inside > least, sums**2 / np.maximum(inside, least), 0.0)
        value = whole.sum() - whole[cells]
        for part, label in (below, above):
            value += label**2 / np.maximum(part, least)
        return np.where((below[0] > least) & (above[0] > least), value, -np.inf)


def _group_columns(X: FloatArray, histogram: Histogram, grid: SplitGrid, noise: Noise) -> Iterator[_Group]:
    """The columns of a histogram by the step of their candidates, without the constant ones."""
    steps = grid.compute_steps(histogram.spans)
    middles = 0.5 * (histogram.levels[1:] + histogram.levels[:-1])
    for step in np.unique(steps[histogram.spans > 0]):
        part = histogram[(steps == step) & (histogram.spans > 0)]
        candidates = replace(grid, step=float(step)).candidates(float(part.spans.max()))
        positions = (X[:, part.columns].T - part.lows[:, None]) / part.units[:, None]
        missing = np.isnan(positions)
        yield _Group(
            part,
            np.searchsorted(middles, positions).astype(np.uint16),
            candidates,
            np.searchsorted(candidates, part.spans + grid.above),
            missing if missing.any() else None,
            measure_left(replace(part, counts=part.counts[:, :1]), candidates, noise),
        )
