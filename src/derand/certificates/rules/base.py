"""What a rule is: how scores and labels are found under noise, and what is proven. Must not know any one rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.threads import count_threads, run_blocks
from derand.certificates.bounds.packing import Problem
from derand.kernels import Backend, load_backend, require_gradual_underflow
from derand.kernels.tails.costs import Work
from derand.model import Model
from derand.noise import Noise
from derand.perturbation import Perturbation

PROOFS = ("none", "paper", "dual", "exact")
"""What proves a radius: nothing; the mass on the failing side, as in the paper; a multiplier of the distance
(duality); or a worst case without any gap."""
NO_PROOF, PAPER, DUAL, EXACT = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What a rule proves about each row under one threat; arrays of shape (n_rows,).

    Attributes
    ----------
    label : 0 or 1; of several classes the number of one
    log_failure : upper bound of the logarithm of the failure mass; NaN where the rule has none
    radius : lower bound of the radius; 0 where nothing is proven
    proof : place in `PROOFS`: what proves the radius
    path : place in `derand.kernels.PATHS`, or None
    worst : the worst score within limits, where these alone say what may change and the rule has one; else None
    runner_up : of several classes the rival that decides; None for two
    is_preliminary : where proofs that were not asked for may give a larger radius or a smaller failure mass, or None
    """

    label: IntArray
    log_failure: FloatArray
    radius: FloatArray
    proof: NDArray[np.uint8]
    path: NDArray[np.uint8] | None = None
    worst: FloatArray | None = None
    runner_up: IntArray | None = None
    is_preliminary: BoolArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """With what a rule computes: a backend of kernels, how many threads may call it, and which proofs it may use.

    Preliminary bounds cost less: they hold, but may be weaker than the others (`Bounds.is_preliminary`).
    """

    kernels: Backend
    n_threads: int
    proof: str = "best"
    preliminary: bool = False
    must_look: bool = False
    """Whether the device that computes is to refuse rows that hold NaN or infinity (`Rule.looks_on_device`)."""

    def run(self, work: Callable[[slice], None], n_rows: int, block: int) -> None:
        """Call `work` for blocks of rows, in threads that are all checked for gradual underflow."""

        def work_checked(part: slice) -> None:
            require_gradual_underflow()
            work(part)

        run_blocks(work_checked, n_rows, block, self.n_threads)


def make_engine(
    model: Model, n_rows: int, n_jobs: int | None, *, backend: str | None = None, proof: str = "best"
) -> Engine:
    """The engine for so many rows: a backend of that name, else the one that their number and the model suit.

    Every certificate and every label passes here: a thread that flushes subnormal numbers to zero is refused.
    """
    require_gradual_underflow()
    n_threads = count_threads(n_jobs)
    ranges = np.array(model.score_ranges, dtype=np.float64)
    widest = 0.5 * float(np.sqrt((ranges**2).sum() / len(model.members)))
    work = Work(n_rows, ranges.size, model.n_cells, float(ranges.max(initial=0.0)), widest, n_threads)
    return Engine(load_backend(backend, work), n_threads, proof)


class Ends(NamedTuple):
    """The score of each row and the levels that it cannot leave, in grid units before the offset, (n_rows,).

    Whole numbers where scores are whole, else doubles.
    """

    score: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]


class Distances(NamedTuple):
    """The score of each row, how far it may be moved, and what proves that (an index of PROOFS), (n_rows,)."""

    score: NDArray[Any]
    radius: FloatArray
    proof: NDArray[np.uint8]


def join_ends(score: NDArray[Any], high: tuple[Any, Any], low: tuple[Any, Any]) -> Distances:
    """The nearer one of the distances within which a score stays below its highest and above its lowest level."""
    is_low = low[0] < high[0]
    proof = np.where(is_low, low[1], high[1]).astype(np.uint8)
    return Distances(score, np.minimum(low[0], high[0]), proof)


class Score(ABC):
    """The scores of rows by a rule, under a noise and within a perturbation; for rows of one block."""

    block_rows: int
    """How many rows a block should have."""
    _given: Perturbation | None

    @property
    def _perturbation(self) -> Perturbation:
        assert self._given is not None  # nothing can be proven without one
        return self._given

    @abstractmethod
    def compute(self, rows: FloatArray) -> NDArray[Any]:
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

    def __init__(self, problem: Problem, perturbation: Perturbation | None, engine: Engine, block_rows: int) -> None:
        self._problem, self._given, self._engine, self.block_rows = problem, perturbation, engine, block_rows

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

    counts_copies: ClassVar[bool] = False
    """Whether labels go by shares of noisy copies, of which the paper's proof knows."""

    @abstractmethod
    def check(self, noise: Noise | None, norm: float | None, proof: str) -> None:
        """Refuse, in one line and before any work, what this rule cannot certify."""

    @abstractmethod
    def smooth(
        self, problem: Problem, noise: Noise | None, perturbation: Perturbation | None, engine: Engine, n_rows: int
    ) -> SmoothedScore:
        """The scores of a sum by this rule.

        Without noise they are those of the model as deployed, where `check` allows that; without a perturbation scores
        and labels alone can be asked for.
        """

    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each budget of categorical changes.

        Rows may be of any numeric type; they are converted block by block.
        """
        score = self.smooth(problem, noise, perturbation, engine, rows.shape[0])
        found = BlockBounds(*run_blockwise(engine, rows, score.block_rows, score.bound))
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
            for k in range(len(perturbation.budgets))
        ]

    def label(self, problem: Problem, rows: NDArray[Any], noise: Noise | None, engine: Engine) -> IntArray:
        """The labels that `bound` gives, without anything proven about them."""
        score = self.smooth(problem, noise, None, engine, rows.shape[0])
        (labels,) = run_blockwise(engine, rows, score.block_rows, lambda part: (score.label(part),))
        return np.asarray(labels, dtype=np.int64)

    def looks_on_device(
        self, problem: Problem, noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> bool:
        """Whether `bound` can find NaN and infinity in any column on a device, and is to be asked to do so."""
        return False


def run_blockwise(
    engine: Engine, rows: NDArray[Any], block_rows: int, ask: Callable[[FloatArray], Sequence[NDArray[Any] | None]]
) -> list[Any]:
    """What is said of each block of rows, put together; None where it is None for all of them."""
    parts: dict[int, Sequence[NDArray[Any] | None]] = {}

    def ask_block(block: slice) -> None:
        parts[block.start] = ask(np.ascontiguousarray(rows[block], dtype=np.float64))

    if rows.shape[0]:
        engine.run(ask_block, rows.shape[0], block_rows)
    else:
        ask_block(slice(0, 0))
    if len(parts) == 1:
        return list(parts[0])
    ordered = zip(*(parts[start] for start in sorted(parts)), strict=True)
    return [None if one[0] is None else np.concatenate(one) for one in ordered]


def require_norm(norm: float | None, norms: Sequence[float | None], what: str) -> None:
    """Refuse a norm of which there is no certificate."""
    if norm not in norms:
        known = ", ".join(map(str, norms))
        raise ValueError(f"`norm` of Threat must be one of {known} for {what}, got {norm!r}.")
