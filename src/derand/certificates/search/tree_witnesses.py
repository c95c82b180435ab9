"""Witnesses of models with trees: settled by the library where it is at hand, made smaller, and rounded.

Owns what becomes of the changed rows that the search found. Must not know how they are searched.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.rules.base import SearchedRows
from derand.certificates.search.feasible_set import Target, are_same
from derand.certificates.search.witness import Verifier, put_back, shrink_witnesses

_DIGITS = (1, 2, 3, 5, 8)
"""Of the move of a number: as few of them as still flip."""
_LARGEST = 2.0**52
_MOST = 32
"""Numbers of a row that are rounded."""


def settle_witnesses(found: SearchedRows, target: Target, rows: FloatArray, labels: IntArray) -> SearchedRows:
    """The same with ties that the library has answered, and with witnesses of few columns and few digits.

    In a ball witnesses keep their numbers, whose distance is known, and lose changes of categories that are not needed.
    """
    flips, is_tie, witness = found.flips.copy(), found.is_tie.copy(), found.witness.copy()
    at = np.flatnonzero(flips)
    asked = target.model, target.noise, target.rule, target.perturbation
    witness[at] = _reduce(Verifier(*asked, rows[at], labels[at], with_error=True), witness[at])
    if target.library is None:
        return found._replace(witness=witness)
    if (target.library(witness[at]) == labels[at]).any():  # nothing else can be the reason: these are certain
        raise ValueError(
            "The fitted model of the library answers otherwise than it did when it was read: it was trained or changed "
            "since then. Call `from_model` again."
        )
    ties = np.flatnonzero(is_tie & (target.perturbation.norm is None))
    if ties.size:
        is_own, after = target.library(rows[ties]) == labels[ties], target.library(witness[ties])
        settled = ties[is_own & (after >= 0) & (after != labels[ties])]
        by_library = Verifier(*asked, rows[settled], labels[settled], library=target.library)
        witness[settled] = _reduce(by_library, witness[settled])
        flips[settled], is_tie[settled] = True, False
    return found._replace(witness=witness, flips=flips, is_tie=is_tie)


def _reduce(verifier: Verifier, changed: FloatArray) -> FloatArray:
    """Changed rows without columns that the flip does not need; without a ball also with few digits."""
    if not len(changed):
        return changed
    if verifier.perturbation.norm is not None:
        sizeless = np.isnan(verifier.rows) != np.isnan(changed)
        sizeless[:, list(verifier.model.categorical_features)] = True
        return put_back(verifier, changed, np.zeros(changed.shape), sizeless)
    kept = shrink_witnesses(verifier, changed)
    rounded = round_numbers(verifier, kept)
    return shrink_witnesses(verifier, rounded)


def round_numbers(verifier: Verifier, changed: FloatArray) -> FloatArray:
    """Changed rows with numbers of few digits, away from the row's own, where they still flip and are allowed."""
    rows, kept = verifier.rows, changed.copy()
    may = ~are_same(rows, kept) & np.isfinite(rows) & np.isfinite(kept) & (verifier.perturbation.steps == 0)
    may[:, list(verifier.model.categorical_features)] = False
    may[:, [link.column for link in verifier.perturbation.links]] = False
    order, counts = np.argsort(~may, axis=1, kind="stable"), may.sum(axis=1)
    for k in range(min(int(counts.max(initial=0)), _MOST)):
        at = np.flatnonzero(counts > k)
        for digits in _DIGITS:
            column = order[at, k]
            values, is_short = _round_outward(rows[at, column], changed[at, column], digits)
            points = kept[at]
            points[np.arange(at.size), column] = values
            good = is_short & verifier.allows(points, at) & verifier.flips(points, at)
            kept[at[good]] = points[good]
            at = at[~good]
            if not at.size:
                break
    return verifier.perturbation.follow(rows, kept)


def _round_outward(before: FloatArray, after: FloatArray, digits: int) -> tuple[FloatArray, BoolArray]:
    """Numbers at or beyond others, seen from where they come from, with so many digits of the move, as written."""
    move = after - before
    with np.errstate(all="ignore"):
        decimals = digits - 1 - np.floor(np.log10(np.abs(move)))
        power = 10.0 ** np.minimum(np.abs(decimals), 22)
        scaled = np.where(decimals >= 0, after * power, after / power)
        whole = np.where(move > 0, np.ceil(scaled), np.floor(scaled))
        values = np.where(decimals >= 0, whole / power, whole * power)
        is_beyond = (values - after) * np.sign(move) >= 0
    is_short = (np.abs(decimals) <= 22) & (np.abs(whole) < _LARGEST) & is_beyond
    return np.where(is_short, values, after), is_short
