"""What a rule is: how a label is found under noise, and what is proven about it. Must not know any one rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
from derand.threat import Threat

PROOFS = ("none", "paper", "dual", "exact")
"""What proves a radius: nothing; the mass on the failing side, as in the paper; a price per distance; or a worst case
without any gap."""
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
    is_draft : where proofs that were not asked for may give a larger radius or a smaller failure mass; None for nowhere
    """

    label: IntArray
    log_failure: FloatArray
    radius: FloatArray
    proof: NDArray[np.uint8]
    path: NDArray[np.uint8] | None = None
    worst: FloatArray | None = None
    runner_up: IntArray | None = None
    is_draft: BoolArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """With what a rule computes: a backend of kernels, how many threads may call it, and which proofs it may use.

    A draft is the same at less cost: bounds that hold, but may be weaker than those without it (`Bounds.is_draft`).
    """

    kernels: Backend
    n_threads: int
    proof: str = "best"
    draft: bool = False
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
    ranges = np.array(() if model.is_linear else model.score_ranges, dtype=np.float64)
    widest = 0.5 * float(np.sqrt((ranges**2).sum() / len(model.members)))
    work = Work(n_rows, ranges.size, model.n_cells, float(ranges.max(initial=0.0)), widest, n_threads)
    return Engine(load_backend(backend, work), n_threads, proof)


class Rule(ABC):
    """How a label is found under noise, and what is proven about it."""

    counts_copies: ClassVar[bool] = False
    """Whether labels go by shares of noisy copies, of which the paper's proof knows."""

    @abstractmethod
    def check(self, noise: Noise | None, norm: float | None, proof: str) -> None:
        """Refuse, in one line and before any work, what this rule cannot certify."""

    @abstractmethod
    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each budget of categorical changes.

        Parameters
        ----------
        problem : Problem
            A contrast of the model as arrays.
        rows : array of shape (n_rows, n_features)
            Checked: numbers, finite in numerical columns. Any numeric type; convert block by block.
        noise : Noise or None
            None for the model as deployed, where `check` allows that.
        perturbation : Perturbation
            Several budgets of categorical changes may share their work.
        engine : Engine

        Returns
        -------
        list of Bounds, one per budget
            The label is the same in all of them: that of the unchanged row.
        """

    def looks_on_device(
        self, problem: Problem, noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> bool:
        """Whether `bound` can find NaN and infinity in any column on a device, and is to be asked to do so."""
        return False

    def find_labels(self, problem: Problem, rows: NDArray[Any], noise: Noise | None, engine: Engine) -> IntArray:
        """The labels that `bound` gives, without anything proven about them; override where that is cheaper."""
        plain = Perturbation.of(Threat().resolve(noise), problem.n_features, problem.numerical_features)
        (bounds,) = self.bound(problem, rows, noise, plain, replace(engine, proof="paper"))
        return bounds.label


def require_norm(norm: float | None, norms: Sequence[float | None], what: str) -> None:
    """Refuse a norm of which there is no certificate."""
    if norm not in norms:
        known = ", ".join(map(str, norms))
        raise ValueError(f"`norm` of Threat must be one of {known} for {what}, got {norm!r}.")
