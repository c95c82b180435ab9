"""Witnesses that keep to links: the columns that others follow from at their ends and edges, the others as they follow.

Owns which values of two columns are tried together. A box is larger than the rows that keep to its links, so that a
flip in it need not be one: rows that come out of here flip by the labels of `predict`, exactly as they stand. Must not
know how a rule proves what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.bounds.tree_labels import compare_scores
from derand.certificates.search.feasible_set import Target
from derand.certificates.search.witness import Verifier
from derand.model import Model
from derand.perturbation import Link

_FEW, _MANY = 3, 16
"""Edges of a column that are tried in each row: first few, then more in rows that are left."""
_PASSES = 2
_BLOCK = 2**19
"""Numbers of changed rows that are labelled at a time."""
_NUDGES = (0.0, 2.0**-51, -(2.0**-51))
"""Relative: a number that is computed to lie at an edge may lie beside it."""


def follow_links(
    target: Target, rows: FloatArray, labels: IntArray, proposed: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Which rows flip by a change that keeps to the links, and the changed rows; the others as they were.

    `proposed` are rows of the box that need not keep to them: what they say of other columns is kept.
    """
    asked = target.model, target.noise, target.rule, target.perturbation
    flips, witness = np.zeros(len(rows), dtype=bool), rows.copy()
    for most in (_FEW, _MANY):
        for start in (proposed, rows):
            at = np.flatnonzero(~flips)
            if not at.size:
                break
            verifier = Verifier(*asked, rows[at], labels[at], with_error=True)
            found, points = _Linked(verifier, most).search(start[at])
            flips[at], witness[at[found]] = found, points[found]
    return flips, witness


@dataclass(frozen=True, slots=True)
class _Linked:
    """Rows whose columns are tried at their ends, and so many edges of a column."""

    verifier: Verifier
    most: int

    def search(self, start: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Pair by pair of columns: the worst of all that is tried, until the row flips."""
        verifier, links = self.verifier, self.verifier.perturbation.links
        points = verifier.perturbation.follow(verifier.rows, start)
        flips = verifier.flips(points, np.arange(len(points)))
        for link in links * (1 if len(links) == 1 else _PASSES):
            for is_left_first in (True, False):
                left = np.flatnonzero(~flips)
                size = max(1, _BLOCK // ((self.most * 12) ** 2 * points.shape[1]))
                for at in np.split(left, range(size, left.size, size)) if left.size else ():
                    points[at] = self._move_pair(link, points[at], at, is_left_first=is_left_first)
                flips[left] = verifier.flips(points[left], left)
        return flips, points

    def _move_pair(self, link: Link, points: FloatArray, at: IntArray, *, is_left_first: bool) -> FloatArray:
        """The worst points of all in which a pair of columns stands at its ends, or beside its edges."""
        first, second = (link.left, link.right) if is_left_first else (link.right, link.left)
        low, high = self.verifier.perturbation.box(self.verifier.rows[at])
        best, merit = points, _weigh(self.verifier.model, points, self.verifier.labels[at])
        for value in self._list_values(first, points, low, high, at):
            moved = points.copy()
            moved[:, first] = value
            followed = self.verifier.perturbation.follow(self.verifier.rows[at], moved)
            others = np.stack(
                [
                    *self._list_values(second, followed, low, high, at),
                    *self._list_crossings(link, second, followed, low, high, at),
                ]
            )
            every = np.repeat(moved[None], len(others), axis=0)
            every[:, :, second] = others
            best, merit = self._take_best(every, best, merit, at)
        return best

    def _take_best(
        self, every: FloatArray, best: FloatArray, merit: FloatArray, at: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """The worst of some points of each row, (n, n_rows, n_features), and of the best so far."""
        model, perturbation = self.verifier.model, self.verifier.perturbation
        flat, each = every.reshape(-1, every.shape[2]), np.tile(at, len(every))
        flat = perturbation.follow(self.verifier.rows[each], flat)
        is_row = np.isfinite(flat[:, [link.column for link in perturbation.links]]) | np.isnan(
            self.verifier.rows[each][:, [link.column for link in perturbation.links]]
        )
        flat = np.where(np.all(is_row, axis=1)[:, None], flat, np.tile(best, (len(every), 1)))
        found = _weigh(model, flat, self.verifier.labels[each]).reshape(len(every), at.size)
        chosen = found.argmax(axis=0)
        largest = found[chosen, np.arange(at.size)]
        is_better = largest > merit
        points = flat.reshape(every.shape)[chosen, np.arange(at.size)]
        return np.where(is_better[:, None], points, best), np.where(is_better, largest, merit)

    def _list_values(
        self, column: int, points: FloatArray, low: FloatArray, high: FloatArray, at: IntArray
    ) -> Iterator[FloatArray]:
        """What a column may become: as it is, as it was, its ends, and beside its edges."""
        own = self.verifier.rows[at, column]
        yield points[:, column]
        yield own
        if not self.verifier.perturbation.free[column] or self._is_linked(column):
            return
        ends = low[:, column], high[:, column]
        for edge in self._list_edges(column, *ends):
            for value in (edge, np.nextafter(edge, -np.inf)):
                yield from self._allow(column, value, own, *ends)
        yield from self._allow(column, ends[0], own, *ends)
        yield from self._allow(column, ends[1], own, *ends)

    def _list_crossings(
        self, link: Link, column: int, points: FloatArray, low: FloatArray, high: FloatArray, at: IntArray
    ) -> Iterator[FloatArray]:
        """What a column must become for the linked one to lie beside its edges, the other column given."""
        if not self.verifier.perturbation.free[column] or self._is_linked(column):
            return
        own, is_left = self.verifier.rows[at, column], column == link.left
        other = points[:, link.right if is_left else link.left]
        for edge in self._list_edges(link.column, low[:, link.column], high[:, link.column]):
            with np.errstate(all="ignore"):
                if link.sign == "/":
                    value = edge * other if is_left else other / edge
                else:
                    value = other + edge if is_left else other - edge
            for nudge in _NUDGES:
                yield from self._allow(column, value * (1 + nudge), own, low[:, column], high[:, column])

    def _list_edges(self, column: int, low: FloatArray, high: FloatArray) -> Iterator[FloatArray]:
        """Edges of a column between two ends in each row, evenly chosen; an end where there are none."""
        axes = (axis for member in self.verifier.model.members for term in member.terms for axis in term.axes)
        edges = np.unique(np.concatenate([[], *(axis.edges for axis in axes if axis.feature == column)]))
        if not edges.size:
            return
        first = np.searchsorted(edges, low, side="right")
        count = np.searchsorted(edges, high, side="right") - first
        for k in range(min(self.most, int(count.max(initial=0)))):
            shares = k if count.max() <= self.most else np.rint(k * np.maximum(count - 1, 0) / (self.most - 1))
            chosen = np.minimum(first + np.minimum(shares, np.maximum(count - 1, 0)), edges.size - 1).astype(np.int64)
            yield np.where(count > 0, edges[chosen], low)

    def _allow(
        self, column: int, value: FloatArray, own: FloatArray, low: FloatArray, high: FloatArray
    ) -> Iterator[FloatArray]:
        """A value, or the steps beside it, where the box holds it; elsewhere the row's own."""
        step = self.verifier.perturbation.steps[column]
        with np.errstate(invalid="ignore", over="ignore"):
            counts = (value - own) / step if step else None
            for one in (value,) if counts is None else (own + np.floor(counts) * step, own + np.ceil(counts) * step):
                yield np.where((one >= low) & (one <= high) & np.isfinite(one), one, own)

    def _is_linked(self, column: int) -> bool:
        return any(link.column == column for link in self.verifier.perturbation.links)


def _weigh(model: Model, points: FloatArray, labels: IntArray) -> FloatArray:
    """How far the best other class is ahead of the label of each row."""
    if model.weights is not None:
        ahead = np.zeros(len(points))
        for member, weight in zip(model.members, model.weights.tolist(), strict=True):
            ahead += np.where(compare_scores(member, points)[:, 1] > 0, weight, -weight)
        return np.asarray(np.where(labels == 1, -ahead, ahead))
    scores = compare_scores(model.members[0], points).astype(np.float64)
    every = np.arange(len(points))
    own = scores[every, labels]
    scores[every, labels] = -np.inf
    return np.asarray(scores.max(axis=1) - own)
