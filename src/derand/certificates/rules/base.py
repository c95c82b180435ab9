"""What a rule is: how scores and labels are found under noise, and what is proven. Must not know any one rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers, is_whole
from derand._core.text import Facts
from derand._core.threads import count_threads, run_blocks
from derand.certificates.bounds.packing import Problem
from derand.kernels import Backend, load_backend, require_gradual_underflow
from derand.kernels.tails.costs import Work
from derand.model import Model
from derand.noise import Noise
from derand.perturbation import Perturbation

LibraryLabels = Callable[[FloatArray], IntArray]
"""Labels of rows, 0, 1, ..., as the library gives them that a model was read from; -1 where it gives none."""
DEFAULT_BUDGET = 20_000
"""Nodes that the search of a model with trees may look at for each row."""

PROOFS = ("none", "paper", "dual", "exact")
"""What proves a radius: nothing; the mass on the failing tail, as in the paper; a multiplier of the distance
(duality); or a worst case without any gap."""
NO_PROOF, PAPER, DUAL, EXACT = range(4)


class SearchedRows(NamedTuple):
    """What the search of a model with trees found; arrays of shape (n_rows,).

    Attributes
    ----------
    witness : array of shape (n_rows, n_features)
        A changed row where one flips, or may flip; else the row.
    flips : whether that one flips for certain, by more than the model that is meant may be off
    is_tie : whether the search ended, and what is left lies within the rounding of the model that is meant
    attacked : distance of the witness, infinite where there is none; None where limits alone say what may change
    is_exact : whether the certified radius is the true one; None there, too
    """

    witness: FloatArray
    flips: BoolArray
    is_tie: BoolArray
    attacked: FloatArray | None = None
    is_exact: BoolArray | None = None


class TreeSearch(NamedTuple):
    """How models with trees are searched: nodes for each row, and the library's own answers where these are at hand."""

    budget: int = DEFAULT_BUDGET
    library: LibraryLabels | None = None


DEFAULT_SEARCH = TreeSearch()


def read_budget(budget: int | None) -> int:
    """The nodes that a search may look at, or an error; None is the default."""
    if budget is None:
        return DEFAULT_BUDGET
    if not is_whole(budget) or budget < 1:
        raise ValueError(
            f"`budget` must be a whole number of nodes, 1 or larger, got {budget!r}: leave it out for {DEFAULT_BUDGET}."
        )
    return int(budget)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What a rule proves about each row under one threat; arrays of shape (n_rows,).

    Attributes
    ----------
    label : 0 or 1; of several classes the number of one
    log_failure : upper bound of the logarithm of the failure mass; NaN where the rule has none
    radius : lower bound of the radius; 0 where nothing is proven
    proof : index of `PROOFS`: what proves the radius
    path : index of `derand.kernels.PATHS`, or None
    worst : the worst score within limits, where these alone say what may change and the rule has one; else None
    runner_up : of several classes the rival that decides; None for two
    is_preliminary : where proofs that were not asked for may give a larger radius or a smaller failure mass, or None
    tree : of a model with trees what its search found, else None
    """

    label: IntArray
    log_failure: FloatArray
    radius: FloatArray
    proof: NDArray[np.uint8]
    path: NDArray[np.uint8] | None = None
    worst: FloatArray | None = None
    runner_up: IntArray | None = None
    is_preliminary: BoolArray | None = None
    tree: SearchedRows | None = None

    @classmethod
    def merge(cls, indices: Sequence[IntArray], parts: Sequence[Bounds]) -> Bounds:
        """What is proven of all rows, from parts of them with these indices."""
        merged: Facts = {}
        for field in fields(cls):
            columns = [getattr(part, field.name) for part in parts]
            if any(column is None for column in columns):
                merged[field.name] = None
                continue
            merged[field.name] = np.empty(sum(column.size for column in columns), dtype=columns[0].dtype)
            for at, column in zip(indices, columns, strict=True):
                merged[field.name][at] = column
        return cls(**merged)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What is asked of rows, and with what it is computed.

    Attributes
    ----------
    noise : Noise or None
        None for the model as deployed.
    rule : Rule
    perturbation : Perturbation
        What may change; None where labels or scores alone are asked for.
    kernels : Backend
    n_threads : int
        How many threads may call the kernels.
    proof : {"best", "paper"}
        Which proofs may be used.
    preliminary : bool
        Whether cheaper bounds will do: they hold, but may be weaker than the others (`Bounds.is_preliminary`).
    must_look : bool
        Whether the device that computes is to refuse rows that hold NaN or infinity (`Rule.looks_on_device`).
    search : TreeSearch
        How models with trees are searched.
    """

    noise: Noise | None
    rule: Rule
    perturbation: Perturbation
    kernels: Backend
    n_threads: int = 1
    proof: str = "best"
    preliminary: bool = False
    must_look: bool = False
    search: TreeSearch = DEFAULT_SEARCH

    def run(self, rows: Numbers, block_rows: int, ask: Callable[[FloatArray], Sequence[Numbers | None]]) -> list[Any]:
        """What `ask` returns for each block of rows, put together; None where it is None for all of them.

        Blocks are asked about in threads, all of which are checked for gradual underflow.
        """
        parts: dict[int, Sequence[Numbers | None]] = {}

        def ask_block(block: slice) -> None:
            require_gradual_underflow()
            parts[block.start] = ask(np.ascontiguousarray(rows[block], dtype=np.float64))

        if rows.shape[0]:
            run_blocks(ask_block, rows.shape[0], block_rows, self.n_threads)
        else:
            ask_block(slice(0, 0))
        if len(parts) == 1:
            return list(parts[0])
        ordered = zip(*(parts[start] for start in sorted(parts)), strict=True)
        return [None if one[0] is None else np.concatenate(one) for one in ordered]


def make_query(
    model: Model,
    n_rows: int,
    noise: Noise | None,
    rule: Rule,
    perturbation: Perturbation | None = None,
    *,
    n_jobs: int | None = None,
    backend: str | None = None,
    proof: str = "best",
    search: TreeSearch = DEFAULT_SEARCH,
) -> Query:
    """The query about so many rows, with a backend of that name, else the one that their number and the model suit.

    Every certificate and every label passes here: a thread that flushes subnormal numbers to zero is refused, and so is
    noise on trees.
    """
    require_gradual_underflow()
    if noise is not None:
        refuse_noise_on_trees(model)
    n_threads = count_threads(n_jobs)
    ranges = np.array(model.score_ranges, dtype=np.float64)
    widest = 0.5 * float(np.sqrt((ranges**2).sum() / len(model.members)))
    work = Work(n_rows, ranges.size, model.n_cells, float(ranges.max(initial=0.0)), widest, n_threads)
    kernels = load_backend(backend, work)
    return Query(noise, rule, perturbation, kernels, n_threads, proof, search=search)  # type: ignore[arg-type] # see `perturbation`


def refuse_noise_on_trees(model: Model) -> None:
    """Refuse noise where a model has trees that join many columns."""
    if model.has_trees:
        raise ValueError(
            "Noise is not for a model whose trees join many columns: certify it without (noise='none', rule='mean'), "
            "or train SmoothedClassifier or SmoothedRegressor around trees of depth 1."
        )


class Ends(NamedTuple):
    """The score of each row and the levels that it cannot leave, in grid units before the offset, (n_rows,).

    Whole numbers where scores are whole, else doubles.
    """

    score: Numbers
    low: Numbers
    high: Numbers


class Distances(NamedTuple):
    """The score of each row, how far it may be moved, and what proves that (an index of PROOFS), (n_rows,)."""

    score: Numbers
    radius: FloatArray
    proof: NDArray[np.uint8]


def join_ends(score: Numbers, high: tuple[FloatArray, Numbers], low: tuple[FloatArray, Numbers]) -> Distances:
    """The nearer one of the distances within which a score stays below its highest and above its lowest level."""
    is_low = low[0] < high[0]
    proof = np.where(is_low, low[1], high[1]).astype(np.uint8)
    return Distances(score, np.minimum(low[0], high[0]), proof)


class Score(ABC):
    """The scores of rows by a rule, under a noise and within a perturbation; for rows of one block."""

    block_rows: int
    """How many rows a block should have."""

    @abstractmethod
    def compute(self, rows: FloatArray) -> NDArray[np.generic]:
        """Scores in grid units, before the offset; whole numbers where the rule gives whole numbers."""

    @abstractmethod
    def bound_interval(self, rows: FloatArray, radius: float) -> Ends:
        """Levels that the computed score does not leave, within the threat and closer than the radius.

        Without a ball the radius is infinite and does not count.
        """

    @abstractmethod
    def bound_radius(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the score stays within so many grid units."""


class SmoothedScore(Score):
    """The median or the mean of the scores of noisy copies. A label says whether it is above a threshold."""

    @abstractmethod
    def __init__(self, problem: Problem, query: Query, n_rows: int) -> None:
        """The scores of a sum, for so many rows."""

    @abstractmethod
    def label(self, rows: FloatArray) -> BoolArray:
        """Whether each row is of class 1."""

    @abstractmethod
    def bound(self, rows: FloatArray) -> BlockBounds:
        """Label and radius of each row, for each budget of categorical changes."""


class BlockBounds(NamedTuple):
    """The fields of `Bounds` for one block; label and is_preliminary (n_rows,), others (n_rows, n_budgets)."""

    label: BoolArray
    log_failure: FloatArray
    radius: FloatArray
    proof: NDArray[np.uint8]
    path: NDArray[np.uint8] | None
    worst: FloatArray | None
    is_preliminary: BoolArray


class Rule(ABC):
    """How a score is found under noise, and what is proven about it."""

    smooth: ClassVar[type[SmoothedScore]]
    """The scores of a sum by this rule; without noise those of the model as deployed, where `check` allows that."""
    counts_copies: ClassVar[bool] = False
    """Whether labels go by shares of noisy copies, of which the paper's proof knows."""

    @abstractmethod
    def check(self, noise: Noise | None, proof: str) -> None:
        """Refuse, in one line and before any work, what this rule cannot certify."""

    def bound(self, problem: Problem, rows: Numbers, query: Query) -> list[Bounds]:
        """Label and radius of each row, for each budget of categorical changes.

        Rows may be of any numeric type; they are converted block by block. Those with missing values are bounded apart
        from the others.
        """
        incomplete = np.zeros(rows.shape[0], dtype=bool)
        for cell in problem.terms.missing_cells:
            incomplete |= np.isnan(rows[:, cell.feature])
        if not incomplete.any() or incomplete.all():
            return self._bound_alike(problem, rows, query)
        indices = np.flatnonzero(incomplete), np.flatnonzero(~incomplete)
        parts = zip(*(self._bound_alike(problem, rows[at], query) for at in indices), strict=True)
        return [Bounds.merge(indices, pair) for pair in parts]

    def _bound_alike(self, problem: Problem, rows: Numbers, query: Query) -> list[Bounds]:
        """The same for rows all of which have missing values, or none."""
        score = self.smooth(problem, query, rows.shape[0])
        found = BlockBounds(*query.run(rows, score.block_rows, score.bound))
        label = found.label.astype(np.int64)
        return [
            Bounds(
                label,
                found.log_failure[:, k],
                found.radius[:, k],
                found.proof[:, k],
                None if found.path is None else found.path[:, k],
                None if found.worst is None else found.worst[:, k],
                is_preliminary=found.is_preliminary,
            )
            for k in range(len(query.perturbation.budgets))
        ]

    def label(self, problem: Problem, rows: Numbers, query: Query) -> IntArray:
        """The labels that `bound` gives, without anything proven about them."""
        score = self.smooth(problem, query, rows.shape[0])
        (labels,) = query.run(rows, score.block_rows, lambda part: (score.label(part),))
        return np.asarray(labels, dtype=np.int64)

    def looks_on_device(self, problem: Problem, query: Query) -> bool:
        """Whether `bound` can find NaN and infinity in any column on a device, and is to be asked to do so."""
        return False
