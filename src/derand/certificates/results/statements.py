"""What is stated over a whole domain: reasons of rows, and promises about every row. Must not know how it is proven."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, Frozen, IntArray, freeze

REASON_PROOFS = ("undecided", "sufficient", "irreducible", "smallest")
"""What is proven of a set of columns: nothing; that it is enough; that no column of it can be dropped, either; or that
no smaller set is enough."""
VERDICTS = ("proven", "counterexample", "undecided")


@dataclass(frozen=True, slots=True)
class Reason:
    """Columns of a row that are enough for its answer.

    Attributes
    ----------
    columns : tuple of int
    margin : float
        How far the score stays beyond its threshold whatever the other columns are, in units of the score.
    proof : int
        Index of REASON_PROOFS.
    """

    columns: tuple[int, ...]
    margin: float
    proof: int


@dataclass(frozen=True, slots=True, eq=False)
class Reasons(Frozen):
    """For each row columns that are enough for its answer, whatever the other columns hold within the domain.

    Several such sets may exist; this is one of the fewest columns, or of the least cost.

    Attributes
    ----------
    label : array of shape (n_rows,)
        The answers.
    fixed : array of booleans, shape (n_rows, n_features)
        The columns that are enough. None of them is needed where every row of the domain gets the answer.
    margin : array of shape (n_rows,)
        How far the score stays beyond its threshold, in units of the score; NaN where nothing is proven.
    proof : array of shape (n_rows,)
        Index of `derand.certificates.REASON_PROOFS`: "smallest", where no smaller set is enough; "irreducible", where
        no column of it can be dropped; "sufficient", where it is enough; "undecided", where the answer of the row lies
        closer to the threshold than the model is known.
    classes : array of shape (n_classes,)
    """

    label: NDArray[np.generic]
    fixed: BoolArray
    margin: FloatArray
    proof: IntArray
    classes: NDArray[np.generic]

    def __post_init__(self) -> None:
        for name in ("label", "fixed", "margin", "proof", "classes"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name)).view()))

    def __len__(self) -> int:
        return int(self.fixed.shape[0])

    @property
    def size(self) -> IntArray:
        """How many columns are enough, (n_rows,); -1 where nothing is proven."""
        return np.where(self.proof == 0, -1, self.fixed.sum(axis=1))

    def with_classes(self, classes: NDArray[np.generic]) -> Self:
        """The same with labels of these classes."""
        return replace(self, label=classes[self.label.astype(np.int64)], classes=classes)

    def __repr__(self) -> str:
        proven = self.size[self.size >= 0]
        if not proven.size:
            return f"<Reasons of {len(self)} rows: none proven>"
        return f"<Reasons of {len(self)} rows: median of {float(np.median(proven)):g} columns>"


@dataclass(frozen=True, slots=True, eq=False)
class Promise(Frozen):
    """A statement about every row of a domain.

    Attributes
    ----------
    kind : {"protected", "monotone", "class"}
        Columns alone never flip an answer; the score never moves the other way in a column; some row gets a class.
    columns : tuple of int
        Those that it is about; none for a class.
    asked : str
        "increasing" or "decreasing"; the class by number; else empty.
    verdict : {"proven", "counterexample", "undecided"}
        Of a class "proven" says that no row gets it, and "counterexample" that one does.
    size : float
        How far the columns alone can move the score at most, or how far the score moves the wrong way (of trees: at
        most, or where rows are known by them), in units of the score; NaN for a class.
    rows : array of shape (2, n_features), (1, n_features) or None
        A pair of rows, or a row that gets the class, that `predict` confirms; None where there is none.
    share : tuple of two floats, or None
        Between which shares of the rows of a table an answer flips by the columns alone; equal where it is exact.
    """

    kind: str
    columns: tuple[int, ...]
    asked: str
    verdict: str
    size: float
    rows: FloatArray | None = None
    share: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", freeze(np.array(self.rows, dtype=np.float64)))


@dataclass(frozen=True, slots=True)
class TermSwing:
    """How far the columns of one term can move the score.

    Attributes
    ----------
    columns : tuple of int
    size : float
        At most, in units of the score; of several classes of the difference of any two.
    direction : {"increasing", "decreasing", "constant", "mixed", ""}
        Of the score in its number; empty for categories and several columns.
    """

    columns: tuple[int, ...]
    size: float
    direction: str


@dataclass(frozen=True, slots=True)
class LargestChange:
    """How far two rows' scores lie apart whose numbers differ by a radius at most.

    Attributes
    ----------
    radius, norm : float
    size : float
        An upper bound, in units of the score; of several classes of the difference of any two.
    is_exact : bool
        Whether some two rows are that far apart.
    """

    radius: float
    norm: float
    size: float
    is_exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """What is proven about every row of a domain, seen or not.

    Attributes
    ----------
    promises : tuple of Promise
    swings : tuple of TermSwing
        From the largest.
    lowest, highest : float
        Ends of the score, less its threshold, in units of the score; NaN for several classes.
    change : LargestChange or None
    score_error : float
        How far the score of the model that is meant may lie from this one's, in units of the score.
    """

    promises: tuple[Promise, ...]
    swings: tuple[TermSwing, ...]
    lowest: float
    highest: float
    change: LargestChange | None
    score_error: float
