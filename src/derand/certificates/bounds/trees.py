"""Sums of trees: whether a sum keeps its side within a perturbation, how far rows may be moved, and its least value.

Owns what a perturbation says in bins, classes and budgets, whole limits of the sum that cover every error, and how what
the kernels find is told in rows and units. Must not know rules, several classes or how the search goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.certificates.bounds.tree_packing import PackedTrees, list_words, pack_trees
from derand.kernels.norms import SMALLEST, measure_norms
from derand.kernels.trees.forest import Asked
from derand.kernels.trees.rows import (
    FLIPS,
    HOLDS,
    TIE,
    UNDECIDED,
    Answers,
    Limits,
    bound_rows,
    decide_rows,
    make_answers,
    measure_rows,
)
from derand.model import Contrast
from derand.perturbation import Perturbation

__all__ = [
    "FLIPS",
    "HOLDS",
    "TIE",
    "UNDECIDED",
    "TreeRadii",
    "TreeScores",
    "TreeVerdicts",
    "bound_forest",
    "bound_scores",
    "decide_within",
    "measure_radii",
]
_BLOCK = 256
_LARGEST = 2**62
_HAIR = 1e-12
"""By how much, relatively, sizes of changes are rounded up."""


class TreeVerdicts(NamedTuple):
    """What was found within a perturbation, one entry per row."""

    status: NDArray[np.uint8]
    bound: FloatArray
    """No point has an oriented score (score less threshold, its sign by the label) below it; grid units, errors
    included."""
    witness: FloatArray
    """The changed row where it flips, or may (TIE); else the row."""
    nodes: IntArray
    """Nodes of the search."""


class TreeRadii(NamedTuple):
    """How far rows may be moved, one entry per row."""

    certified: FloatArray
    """Every change of a smaller size keeps the side; for norm 0, changes of so many numbers do."""
    attacked: FloatArray
    """The size of the change to the witness, rounded up; infinite where none is known that flips for certain."""
    witness: FloatArray
    """Where only a row was found that may flip, as within the rounding of the model that is meant: that one."""
    is_exact: BoolArray
    """Whether nothing lies between both."""
    nodes: IntArray


class TreeScores(NamedTuple):
    """The least and the largest score within a perturbation, in grid units, one entry per row."""

    least: FloatArray
    """No point of the set has a score below it; the model's errors are included."""
    most: FloatArray
    attained_least: FloatArray
    """The least score that was found, of the model itself."""
    attained_most: FloatArray
    least_witness: FloatArray
    most_witness: FloatArray
    nodes: IntArray


def decide_within(
    contrast: Contrast,
    rows: FloatArray,
    is_one: BoolArray,
    perturbation: Perturbation,
    budget: int,
    n_threads: int,
    radius: FloatArray | None = None,
) -> TreeVerdicts:
    """Whether the sum of each row stays on its side of the threshold within the box, or within an open ball as well."""
    question = _Question(contrast, rows, perturbation)
    labels, sizes = _label(is_one), question.list_sizes(radius)
    limits = question.list_limits()

    def work(asked: Asked, part: slice) -> Answers:
        return decide_rows(question.packed.forest, asked, limits, labels[part], sizes[part], budget)

    found = question.run(work, n_threads)
    witness = question.restore(found)
    status = found.status
    if radius is not None:  # of rows that were found a hair outside nothing is said
        is_far = (question.measure(witness) >= radius) & ~question.is_own(witness)
        is_far &= (status == FLIPS) | (status == TIE)
        status, witness = np.where(is_far, UNDECIDED, status), np.where(is_far[:, None], question.rows, witness)
    return TreeVerdicts(
        status.astype(np.uint8), question.subtract_threshold(found.bounds, labels), witness, found.nodes
    )


def measure_radii(
    contrast: Contrast, rows: FloatArray, is_one: BoolArray, perturbation: Perturbation, budget: int, n_threads: int
) -> TreeRadii:
    """How far each row may be moved, in the norm of the perturbation, before its sum leaves its side."""
    question = _Question(contrast, rows, perturbation)
    labels, limits = _label(is_one), question.list_limits()

    def work(asked: Asked, part: slice) -> Answers:
        return measure_rows(question.packed.forest, asked, limits, labels[part], budget)

    found = question.run(work, n_threads)
    certified = question.list_radii(found.certified)
    witness = question.restore(found)
    attacked = np.where(found.status == FLIPS, question.measure(witness), np.inf)
    return TreeRadii(certified, attacked, witness, found.is_exact, found.nodes)


def bound_scores(
    contrast: Contrast,
    rows: FloatArray,
    perturbation: Perturbation,
    budget: int,
    n_threads: int,
    radius: FloatArray | None = None,
) -> TreeScores:
    """The least and the largest sum of each row within the box, or within an open ball as well."""
    question = _Question(contrast, rows, perturbation)
    sizes, ends, nodes = question.list_sizes(radius), [], np.zeros(len(rows), dtype=np.int64)
    for label in (0, 1):

        def work(asked: Asked, part: slice, label: int = label) -> Answers:
            return bound_rows(question.packed.forest, asked, label, sizes[part], budget)

        found = question.run(work, n_threads)
        witness = question.restore(found)
        if radius is not None:
            is_far = question.measure(witness) >= radius
            witness = np.where((is_far & ~question.is_own(witness))[:, None], question.rows, witness)
        bound = question.subtract_errors(found.bounds)
        ends.append((bound, _add_scores(contrast, witness), witness))
        nodes = nodes + found.nodes
    (least, low, least_witness), (most, high, most_witness) = ends
    return TreeScores(least, -most, low, high, least_witness, most_witness, nodes)


def bound_forest(
    packed: PackedTrees, rows: FloatArray, perturbation: Perturbation, budget: int, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """No point within the box of each row has a sum of these trees below that; and the row of the least one found."""
    question = _Question(None, rows, perturbation, packed)
    sizes = question.list_sizes(None)

    def work(asked: Asked, part: slice) -> Answers:
        return bound_rows(packed.forest, asked, 0, sizes[part], budget)

    found = question.run(work, n_threads)
    return question.subtract_errors(found.bounds), question.restore(found)


def _label(is_one: BoolArray) -> IntArray:
    """Which column of the leaves a row asks for: that of their negatives for class 0."""
    return np.where(is_one, 0, 1).astype(np.int64)


def _add_scores(contrast: Contrast, rows: FloatArray) -> FloatArray:
    total = np.zeros(len(rows), dtype=np.int64)
    for term in contrast.terms:
        total += term.score_rows(rows).reshape(len(rows))
    return total.astype(np.float64)


class _Question:
    """Rows and a perturbation in the bins and classes of a forest, and what is found in rows and units again."""

    def __init__(
        self,
        contrast: Contrast | None,
        rows: FloatArray,
        perturbation: Perturbation,
        packed: PackedTrees | None = None,
    ) -> None:
        self._contrast = contrast or Contrast((), 0, 0.0, rows.shape[1])
        self.packed = packed or pack_trees(self._contrast.terms)
        self.rows = np.ascontiguousarray(rows, dtype=np.float64)
        self._perturbation = perturbation
        self._values = np.ascontiguousarray(self.rows[:, self.packed.columns])
        self._states, self._codes = self._list_classes()

    def _list_classes(self) -> tuple[IntArray, dict[int, FloatArray]]:
        """The class of each category, and the code that stands for each class that a category may change to."""
        states, codes = np.full(self._values.shape, -1, dtype=np.int64), {}
        for column, category in self.packed.categories.items():
            states[:, column] = category.classes[category.locate(self._values[:, column])]
            allowed = _list_codes(int(self.packed.columns[column]), category.codes, self._perturbation)
            codes[column] = np.full(self.packed.forest.n_classes[column], np.inf)
            codes[column][category.classes[category.locate(allowed)][::-1]] = allowed[::-1]  # the first one stays
        return states, codes

    def list_sizes(self, radius: FloatArray | None) -> FloatArray:
        """Sizes of regions as kernels measure them: a little more than an open ball of that radius."""
        if radius is None or self._perturbation.norm is None:
            return np.full(len(self.rows), np.inf)
        norm, sizes = self._perturbation.norm, np.asarray(radius, dtype=np.float64)
        if norm in (0, math.inf):
            return sizes
        with np.errstate(over="ignore"):
            return np.asarray((sizes if norm == 1 else sizes * sizes) * (1 + 8 * EPSILON * (self._values.shape[1] + 4)))

    def list_radii(self, sizes: FloatArray) -> FloatArray:
        """Radii of regions, rounded downward."""
        norm = self._perturbation.norm
        if norm == 0:
            return np.maximum(sizes - 1.0, 0.0)
        if norm == math.inf:
            return sizes
        shrink = 1 - 8 * EPSILON * (self._values.shape[1] + 4)
        return np.asarray((sizes if norm == 1 else np.sqrt(sizes)) * shrink)

    def list_limits(self) -> Limits:
        """The least whole sum of each label that holds, and the largest that flips; the model's own error included."""
        scale, error = 2**self.packed.shift, Fraction(self._contrast.score_error)
        threshold = self._contrast.threshold
        holds = [math.floor((threshold + error) * scale) + 1, math.ceil((error - threshold) * scale)]
        flips = [math.floor((threshold - error) * scale), math.ceil((-threshold - error) * scale) - 1]
        limits = [
            np.clip(np.array(ends, dtype=object), -_LARGEST, _LARGEST - 1).astype(np.int64) for ends in (holds, flips)
        ]
        return Limits(*limits)

    def run(self, work: Callable[[Asked, slice], Answers], n_threads: int) -> Answers:
        """Ask the kernels block by block."""
        n_rows, asked = len(self.rows), self._ask()
        found = make_answers(asked._replace(values=self._values, own_classes=self._states))

        def one(part: slice) -> None:
            low, high = self._perturbation.box(self.rows[part])
            at = self.packed.columns
            own = asked._replace(
                values=self._values[part],
                low=np.ascontiguousarray(low[:, at]),
                high=np.ascontiguousarray(high[:, at]),
                own_classes=self._states[part],
            )
            answers = work(own, part)
            for name in Answers._fields:
                getattr(found, name)[part] = getattr(answers, name)

        if n_rows:
            run_blocks(one, n_rows, _BLOCK, n_threads)
        return found

    def _ask(self) -> Asked:
        """What may become of rows; their own values are put in block by block."""
        perturbation, forest, columns = self._perturbation, self.packed.forest, self.packed.columns
        classes = np.zeros((columns.size, forest.sets.shape[1]), dtype=np.int64)
        for column, codes in self._codes.items():
            classes[column] = list_words(np.flatnonzero(codes != np.inf), forest.sets.shape[1])
        may_miss = self.packed.takes_missing & (forest.n_classes == 0)
        may_miss &= ~np.isin(columns, list(perturbation.frozen)) & bool(perturbation.missing_budget)
        nothing = np.empty((0, columns.size))
        return Asked(
            nothing,
            nothing,
            nothing,
            np.empty((0, columns.size), dtype=np.int64),
            classes,
            may_miss,
            perturbation.units[columns].astype(np.float64),
            np.where(perturbation.free, perturbation.steps, 0.0)[columns],
            int(perturbation.l0),
            int(perturbation.missing_budget),
            math.nan if perturbation.norm is None else float(perturbation.norm),
        )

    def restore(self, found: Answers) -> FloatArray:
        """Rows that were found, with their codes."""
        rows, columns = self.rows.copy(), self.packed.columns
        for at, column in enumerate(columns.tolist()):
            if at in self._codes:
                changed = found.classes[:, at] != self._states[:, at]
                rows[changed, column] = self._codes[at][found.classes[changed, at]]
            else:
                rows[:, column] = found.values[:, at]
        return rows

    def is_own(self, witness: FloatArray) -> BoolArray:
        """Whether no number was moved."""
        same = (witness == self.rows) | np.isnan(witness) | np.isnan(self.rows)
        return np.asarray(same[:, list(self._list_numbers())].all(axis=1))

    def measure(self, witness: FloatArray) -> FloatArray:
        """Sizes of changes of numbers, rounded up; numbers that go missing or appear have none."""
        norm, at = self._perturbation.norm, list(self._list_numbers())
        changes = np.nan_to_num(witness[:, at] - self.rows[:, at], nan=0.0, posinf=np.inf, neginf=-np.inf)
        if norm == 0:
            return np.asarray(np.count_nonzero(changes, axis=1), dtype=np.float64)
        with np.errstate(over="ignore"):
            sizes = np.abs(changes / self._perturbation.units[at])
            sizes[changes != 0] += SMALLEST  # the quotient may have been rounded to 0
            return np.asarray(measure_norms(sizes, norm or 0.0) * (1 + _HAIR))

    def _list_numbers(self) -> list[int]:
        return [int(column) for at, column in enumerate(self.packed.columns) if at not in self._codes]

    def subtract_errors(self, bounds: IntArray) -> FloatArray:
        """Sums of leaves in grid units, less the model's fixed error, rounded down."""
        nearest = bounds.astype(np.float64)
        values = np.where(np.abs(bounds) <= 2**53, nearest, np.nextafter(nearest, -np.inf))
        values, error = values * 2.0**-self.packed.shift, self._contrast.score_error
        return np.asarray(np.nextafter(values - error, -np.inf) if error else values)

    def subtract_threshold(self, bounds: IntArray, labels: IntArray) -> FloatArray:
        """The same above the threshold, its sign by the label."""
        scaled = np.int64(self._contrast.threshold) << self.packed.shift
        return self.subtract_errors(bounds + np.where(labels == 0, -scaled, scaled))


def _list_codes(column: int, codes: FloatArray, perturbation: Perturbation) -> FloatArray:
    """To what a category may change."""
    if column in perturbation.frozen or not perturbation.l0:
        return np.empty(0)
    if column in perturbation.codes:
        return perturbation.codes[column]
    if perturbation.unseen or not codes.size:
        return np.append(codes, [min(float(codes.min(initial=0.0)), 0.0) - 1.0, np.nan])
    return codes
