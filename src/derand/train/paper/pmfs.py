"""Pmfs of the score of training rows, kept up to date while single terms of a model change.

Owns the running pmfs and the certifiable scores read from them. Knows terms and noise; must not know labels' meaning
beyond 0 and 1, or scikit-learn. Rounded to nearest: these numbers steer training and are never a certificate.

The pmf of the first k terms is kept for every k, as far as memory allows. A changed term moves to the end, so what has
to be built anew are the terms behind its old place: those that changed since it did. Terms that change often stay near
the end. Nothing is ever divided out of a pmf.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import Compiled, compile_loop
from derand.model import StepFunction
from derand.noise import Noise

_KEPT_NUMBERS = 2**26  # numbers in all pmfs that are kept, 512 MiB
_LEAST_BLOCK, _LARGEST_BLOCK = 64, 1024  # rows of a block; the larger, the less is lost between compiled loops
_FILLED = 0.75  # share of an array that pmfs must use, or they are kept in a smaller one
_LOST = 2.0**-50  # share of the smallest mass of interest that a term may lose at each end of a pmf


class ScorePmfs:
    """Law of the score of each row under noise, for a model whose terms are added and replaced one at a time.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Missing values, NaN, have cells of their own, on which noise does not act.
    noise : Noise
    failure : float
        The mass beyond the certifiable score; masses far below it may be dropped.
    n_threads : int
        The pmfs do not depend on it.
    """

    def __init__(self, X: FloatArray, noise: Noise, failure: float, n_threads: int = 1) -> None:
        self._failure = failure
        self._n_threads = n_threads
        self._terms: list[StepFunction] = []
        self._size = int(np.clip(X.shape[0] // 16, _LEAST_BLOCK, _LARGEST_BLOCK))
        starts = range(0, X.shape[0], self._size)
        room = _KEPT_NUMBERS // len(starts)
        self._blocks = [_Block(X[start : start + self._size], noise, _LOST * failure, room) for start in starts]

    def replace_term(self, term: StepFunction) -> None:
        """Add a term, or put it in the place of the one with the same feature."""
        features = [known.feature for known in self._terms]
        at = features.index(term.feature) if term.feature in features else len(features)
        self._terms = [*self._terms[:at], *self._terms[at + 1 :], term]
        for block in self._blocks:
            del block.pmfs[at + 1 :]

    def certifiable_scores(self, target: NDArray[np.uint8]) -> IntArray:
        """The score that noise passes, on the side of the wrong label, with no more than the failure mass.

        `target` has shape (n_rows,). Returns shape (n_rows,): for label 1 the smallest score whose cdf exceeds the
        failure mass; for label 0 the smallest whose cdf exceeds one minus that.
        """

        def work(number: int) -> IntArray:
            labels = target[number * self._size : (number + 1) * self._size]
            pmfs = self._blocks[number].build(self._terms)
            return np.asarray(_read_scores(pmfs.masses, pmfs.first, pmfs.sizes, labels, self._failure))

        numbers = range(len(self._blocks))
        if self._n_threads == 1:
            return np.concatenate([work(number) for number in numbers])
        with ThreadPoolExecutor(self._n_threads) as pool:
            return np.concatenate(list(pool.map(work, numbers)))


class _Pmfs(NamedTuple):
    """P(score = first + t) of each row: `masses[row, t]` for t < sizes[row]."""

    masses: FloatArray
    first: IntArray
    sizes: IntArray


class _Block:
    """Some rows, and for each k the pmfs of their scores by the first k terms; None where they were not kept."""

    def __init__(self, X: FloatArray, noise: Noise, lost: float, room: int) -> None:
        n_rows = X.shape[0]
        nothing = _Pmfs(np.ones((n_rows, 1)), np.zeros(n_rows, dtype=np.int64), np.ones(n_rows, dtype=np.int64))
        self.pmfs: list[_Pmfs | None] = [nothing]
        self._X = X
        self._noise = noise
        self._lost = lost
        self._room = room

    def build(self, terms: Sequence[StepFunction]) -> _Pmfs:
        """The pmfs of all terms, from the last ones that are there; keeps as many as there is room for."""
        known = max(k for k, pmfs in enumerate(self.pmfs) if pmfs is not None)
        del self.pmfs[known + 1 :]
        newest = self.pmfs[known]
        assert newest is not None
        for term in terms[known:]:
            newest = self._add_term(newest, term)
            self.pmfs.append(newest)
            self._make_room()
        return newest

    def _make_room(self) -> None:
        """Forget the pmfs of the fewest terms: the features at the end are those that change."""
        kept = sum(pmfs.masses.size for pmfs in self.pmfs if pmfs is not None)
        for k in range(1, len(self.pmfs)):
            pmfs = self.pmfs[k]
            if kept > self._room and pmfs is not None:
                kept -= pmfs.masses.size
                self.pmfs[k] = None

    def _add_term(self, pmfs: _Pmfs, term: StepFunction) -> _Pmfs:
        x = self._X[:, term.feature]
        is_missing = np.isnan(x)
        table = self._noise.cell_probabilities(
            np.where(is_missing, 0.0, x) if is_missing.any() else x, term.edges, term.feature
        )
        lowest = term.scores.min()
        scores = term.cell_scores - lowest
        n_rows, width = pmfs.masses.shape
        grown = np.empty((n_rows, width + int(scores.max())))
        first, sizes = pmfs.first + lowest, np.empty_like(pmfs.sizes)
        if is_missing.any():  # as if all their mass lay in the first cell, whose score is that of a missing value
            assert term.missing is not None  # trainers see to that
            table[is_missing], table[is_missing, 0] = 0.0, 1.0
            first[is_missing] += term.missing - lowest - scores[0]
        _convolve(pmfs.masses, pmfs.sizes, table, scores, self._lost, grown, first, sizes)
        used = int(sizes.max())
        return _Pmfs(grown[:, :used].copy() if used < _FILLED * grown.shape[1] else grown, first, sizes)


def _convolve_plainly(
    masses: FloatArray,
    sizes: IntArray,
    table: FloatArray,
    scores: IntArray,
    lost: float,
    grown: FloatArray,
    grown_first: IntArray,
    grown_sizes: IntArray,
) -> None:
    """Pmfs after one more term; light states at both ends are dropped, which moves the first score."""
    buffer = np.empty(grown.shape[1])
    span = scores.max()
    for row in range(masses.shape[0]):
        size = sizes[row]
        pmf = masses[row, :size]
        buffer[: size + span] = 0.0
        for cell in range(scores.size):
            mass = table[row, cell]
            if mass > 0.0:
                shifted = buffer[scores[cell] :]
                for t in range(size):
                    shifted[t] += mass * pmf[t]
        start, stop = 0, size + span
        dropped = buffer[start]
        while start < stop - 1 and dropped <= lost:
            start += 1
            dropped += buffer[start]
        dropped = buffer[stop - 1]
        while start < stop - 1 and dropped <= lost:
            stop -= 1
            dropped += buffer[stop - 1]
        grown[row, : stop - start] = buffer[start:stop]
        grown_first[row] += start
        grown_sizes[row] = stop - start


def _read_scores_plainly(
    masses: FloatArray, first: IntArray, sizes: IntArray, target: NDArray[np.uint8], failure: float
) -> IntArray:
    """For label 1 the smallest score with P(S <= score) > failure, for label 0 that with P(S > score) < failure."""
    scores = np.empty(first.size, dtype=np.int64)
    for row in range(first.size):
        pmf = masses[row, : sizes[row]]
        if target[row]:
            at = 0
            below = pmf[0]
            while at < pmf.size - 1 and below <= failure:
                at += 1
                below += pmf[at]
        else:
            at = pmf.size - 1
            above = pmf[at]
            while at > 0 and above < failure:
                at -= 1
                above += pmf[at]
        scores[row] = first[row] + at
    return scores


_convolve: Compiled = compile_loop()(_convolve_plainly)
_read_scores: Compiled = compile_loop()(_read_scores_plainly)
