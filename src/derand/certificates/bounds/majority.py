"""Votes of ensembles: from what is proven about each member to what holds for the weighted majority.

Owns comparing sums of weights, with a margin above their rounding error. Must not know noise or how members are
bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.certificates.rules.base import NO_PROOF, Bounds


def combine_members(by_member: Sequence[Bounds], weights: FloatArray) -> Bounds:
    """Bounds of a vote: the label holds while the members that are sure to hold outweigh all others.

    Sums of weights are compared with a margin above their rounding error, so that any order of adding decides alike.
    """
    sizes = np.abs(weights)
    margin = 4 * EPSILON * sizes.size * math.fsum(sizes.tolist())
    reverse = (weights < 0).astype(np.int64)[:, None]
    votes = np.stack([bounds.label for bounds in by_member]) ^ reverse
    radii = np.stack([bounds.radius for bounds in by_member])
    label = _compare(votes, sizes, margin)
    held = np.where(votes == label, radii, 0.0)
    order = np.argsort(-held, axis=0, kind="stable")
    ahead = 2 * np.cumsum(sizes[order], axis=0) - sizes.sum() > margin
    best = np.where(ahead, np.take_along_axis(held, order, axis=0), 0.0)
    decides = best.argmax(axis=0)
    radius, rows = best.max(axis=0), np.arange(label.size)
    proofs = np.stack([bounds.proof for bounds in by_member])
    proof = np.where(radius > 0, proofs[order[decides, rows], rows], NO_PROOF).astype(np.uint8)
    return Bounds(label, np.full(label.size, np.nan), radius, proof)


def decide_votes(labels: IntArray, weights: FloatArray) -> IntArray:
    """Label of a vote of members whose labels have the shape (n_members, n_rows), as `combine_members` finds it."""
    sizes = np.abs(weights)
    margin = 4 * EPSILON * sizes.size * math.fsum(sizes.tolist())
    return _compare(labels ^ (weights < 0).astype(np.int64)[:, None], sizes, margin)


def _compare(votes: IntArray, sizes: FloatArray, margin: float) -> IntArray:
    """Class 1 iff the weight that votes for it is ahead by more than the margin: what rounding tells apart is a tie.

    Near a tie sums are exact, so that the order of the members does not matter.
    """
    share = vote_share(votes, sizes)
    label = (share > 0.5).astype(np.int64)
    for row in np.flatnonzero(np.abs(share - 0.5) < 1e-9):
        label[row] = math.fsum(np.where(votes[:, row] == 1, sizes, -sizes).tolist()) > margin
    return label


def vote_share(votes: IntArray, weights: FloatArray) -> FloatArray:
    """Share of the weight that votes for class 1, for votes of shape (n_members, n_rows); 1/2 without any weight."""
    total = weights.sum()  # in another order than the product adds, which may come out larger by a rounding error
    return np.clip(weights @ votes / total, 0.0, 1.0) if total > 0 else np.full(votes.shape[1], 0.5)
