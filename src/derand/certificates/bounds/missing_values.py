"""Missing numbers: a row whose number is missing is one in which noise and changes leave that number alone.

Owns the place of a missing number: beyond every edge, so far that noise does not bring it back. There the last cell of
its term has all the mass, the kernels see an ordinary row, and what its own cell scores instead is a shift
(`PackedTerms.fixed_scores`). Must not know rules or thresholds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.bounds.packing import MissingCell, PackedTerms
from derand.noise import Noise

_BEYOND = 1e4
"""Noise scales beyond the last edge: more than any noise carries a share of, and beyond all knots of a curve."""
_APART = 2.0**-20
"""Of the last edge's own size, at least: more than any rounding of places."""


class Filled(NamedTuple):
    """Rows without missing values.

    Attributes
    ----------
    rows : array of shape (n_rows, n_features)
        A missing number stands beyond the last edge of its term; one of a term of several columns stays NaN.
    is_missing : array of booleans of the same shape, or None
        Which numbers those are; None where there are none.
    """

    rows: FloatArray
    is_missing: BoolArray | None

    def take(self, at: IntArray) -> Filled:
        """Some of the rows."""
        return Filled(self.rows[at], None if self.is_missing is None else self.is_missing[at])


def fill_missing(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> Filled:
    """The same rows with a place for each missing number that some term has a cell for.

    Rows are returned as they are where nothing is missing.
    """
    of_grids = [at for grid in terms.grids for at, cell in zip(grid.features, grid.takes_missing, strict=True) if cell]
    columns = [cell.feature for cell in terms.missing_cells] + of_grids
    if not columns or not np.isnan(rows[:, columns]).any():
        return Filled(rows, None)
    filled, is_missing = np.array(rows, dtype=np.float64), np.zeros(rows.shape, dtype=bool)
    for cell in terms.missing_cells:
        at = np.isnan(rows[:, cell.feature])
        if at.any():
            filled[at, cell.feature] = compute_position(cell, noise)
            is_missing[:, cell.feature] = at
    is_missing[:, of_grids] = np.isnan(rows[:, of_grids])
    return Filled(filled, is_missing)


def compute_position(cell: MissingCell, noise: Noise | None) -> float:
    """Where a missing number of a term stands: in its last cell, under noise all but surely."""
    if not cell.edges.size:
        return 0.0
    last = float(cell.edges[-1])
    if noise is None:
        return last
    scale = float(noise.scales(np.array([cell.feature]))[0])
    position = min(last + max(2 * _BEYOND * scale, _APART * abs(last)), float(np.finfo(np.float64).max))
    if not (position - last) / scale >= _BEYOND:
        raise ValueError(
            f"A missing value of column {cell.feature} needs room above its last edge, got {last!r} beside noise of "
            f"scale {scale!r}: divide the column by some large number, edges and units as well."
        )
    return position


def compute_ends(terms: PackedTerms, is_missing: BoolArray | None) -> tuple[Any, Any]:
    """The lowest and the highest sum of reduced scores that noise can give each row; numbers without missing values.

    Terms of several columns count with all their cells.
    """
    if is_missing is None or not terms.n_terms:
        return 0, terms.largest
    held = is_missing[:, terms.features]
    last = terms.scores[terms.starts[1 : terms.n_plain + 1] - 1]
    above = terms.ranges[: terms.n_plain].astype(np.int64) - last
    return (held @ last)[:, None], (terms.largest - held @ above)[:, None]
