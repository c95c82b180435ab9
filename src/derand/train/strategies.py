"""Which way a model is trained: one table, by the sizes of the data and by what is asked for.

Owns every size at which training takes another way, each with its reason, and what a fitted model tells about the way
that was taken. Must not know how any of them works: `trainer` and `formulations` do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from derand._core.text import Facts
from derand.noise import Noise
from derand.threat import Threat
from derand.train.optimisers.base import UNKNOWN, Fit


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes at which training takes another way."""

    fine_rows: int = 10_000
    """Rows from which on columns get 128 split points instead of 32, and more bins: there is enough to fit them to."""
    large_rows: int = 60_000
    """Rows from which on a sample is fitted first, and all rows from there on: most steps are then cheap ones."""
    choice_rows: int = 20_000
    """Rows of that sample, and those on which a penalty is chosen, importances measured, intervals narrowed."""
    fold_cells: int = 2_000_000
    """Rows times columns from which on a penalty is measured on one fifth of the rows, rather than on every fold."""
    joint_cells: int = 3_000_000
    """Rows times functions on which a penalty is chosen where groups are looked at cell by cell, which takes longer."""
    joint_rows: int = 4_000
    """Rows on which it is chosen at least."""
    noise_rows: int = 4_000
    """Rows on which noises are compared."""
    quick_rows: int = 6_000
    """Rows on which the penalty is chosen where rows are fitted in batches."""
    wide_columns: int = 1_000
    """Numerical columns from which on those that say nothing are left out; images of 28 by 28 pixels have fewer."""
    deducting_columns: int = 50
    """Numerical columns from which on a vote's second proof counts; with few of them the first one does."""
    first_order_columns: int = 16
    """Numerical columns, or columns in groups, from which on moving each a little is what costs a margin most."""
    pair_columns: int = 400
    """Pairs of classes times numerical columns from which on comparing all pairs takes too long."""
    window_columns: int = 10_000
    """The same where columns move independently of each other (linf), which is quicker."""
    batch_cells: int = 30_000_000
    """Rows times columns times classes from which on rows are fitted in batches."""
    most_weights: int = 12_000
    """Weights of all columns together, about, where the number of split points is free."""
    window_weights: int = 30_000
    """The same where each column moves by itself and without noise (linf), which is quicker."""
    most_squares: int = 3_000
    """The same for least squares, whose products are solved at once."""


LIMITS = Limits()
_FEW_CUTS, _MANY_CUTS, _FEWEST_CUTS = 32, 128, 4
_FEW_BINS, _FEWEST_BINS, _MOST_BINS = 96, 32, 25_000  # of a column; of all columns together


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the choice goes by.

    Attributes
    ----------
    task : {"classes", "regression"}
    n_rows, n_columns, n_numbers, n_classes : int
        Rows that are at hand; columns that are fitted, a group being one of them; numerical columns by themselves.
    n_grouped : int
        Columns in groups.
    n_distinct : int
        Different rows of the whole table, where those at hand are a sample of it; else 0.
    moves : bool
        Whether the model is trained against changes.
    is_smooth : bool
        Whether changes are small moves of numbers alone, and noise makes functions smooth: steepness then says enough.
    is_additive : bool
        Whether costs of moves add up over columns (l1, l2); in linf each column moves by itself.
    needs_bounds : bool
        Whether weights are bounded (monotone columns), or a vote of two classes has its second proof to pay.
    wide_columns : int
        From which on columns are chosen.
    """

    task: str
    n_rows: int
    n_columns: int
    n_numbers: int
    n_classes: int = 0
    n_grouped: int = 0
    n_distinct: int = 0
    moves: bool = False
    is_smooth: bool = False
    is_additive: bool = True
    needs_bounds: bool = False
    wide_columns: int = LIMITS.wide_columns


def is_smooth(noise: Noise | None, threat: Threat, radius: float, has_categories: bool) -> bool:
    """Whether steepness can stand for the changes: small moves of numbers alone, of functions that noise smooths."""
    boxed = threat.norm is None or bool(threat.limits or threat.domain)
    return noise is not None and radius > 0 and not boxed and not (threat.l0 > 0 and has_categories)


class Way(NamedTuple):
    """One row of a table: what is done, when, and why."""

    name: str
    reason: str
    fits: Callable[[Sizes], bool]


def _has_many_pairs(sizes: Sizes) -> bool:
    pairs = sizes.n_classes * (sizes.n_classes - 1) // 2 * sizes.n_numbers
    most = LIMITS.pair_columns if sizes.is_additive else LIMITS.window_columns
    return sizes.n_classes > 2 and sizes.n_numbers >= LIMITS.first_order_columns and pairs >= most


def _has_many_groups(sizes: Sizes) -> bool:
    return sizes.n_grouped >= LIMITS.first_order_columns and not sizes.needs_bounds


LOSSES = (
    Way(
        "interval ends",
        "numbers are predicted within intervals that changes leave",
        lambda sizes: sizes.task == "regression" and sizes.moves,
    ),
    Way(
        "least squares",
        "numbers are predicted, and nothing is changed",
        lambda sizes: sizes.task == "regression",
    ),
    Way(
        "products",
        "groups hold many columns: their functions are products, and steepness stands for changes",
        lambda sizes: sizes.n_grouped > 0 and sizes.is_smooth and (_has_many_groups(sizes) or _has_many_pairs(sizes)),
    ),
    Way(
        "first order",
        "pairs of classes and columns are many: steepness stands for changes",
        lambda sizes: not sizes.n_grouped and sizes.is_smooth and _has_many_pairs(sizes),
    ),
    Way(
        "pairwise",
        "every class is compared with every other one under the worst change",
        lambda sizes: sizes.n_classes > 2,
    ),
    Way("margins", "the margin of two classes under the worst change is known exactly", lambda _: True),
)
"""What is fitted; the first row that fits is taken, here and below."""


def _choose_rows(loss: str) -> tuple[Way, ...]:
    return (
        Way(
            "in parts",
            "the table lies in parts, of which a sample is fitted first",
            lambda sizes: sizes.n_distinct > min(sizes.n_rows, LIMITS.large_rows),
        ),
        Way("in batches", "functions of groups are costly to look up", lambda _: loss == "products"),
        Way(
            "in batches",
            "rows, columns and classes are many",
            lambda sizes: (
                (loss == "first order" or (loss == "pairwise" and not sizes.moves))
                and sizes.n_rows * sizes.n_columns * sizes.n_classes > LIMITS.batch_cells
            ),
        ),
        Way(
            "sample first",
            "rows are many: a sample says where to begin",
            lambda sizes: sizes.task == "classes" and sizes.n_rows > LIMITS.large_rows,
        ),
        Way("all rows", "", lambda _: True),
    )


COLUMNS = (
    Way(
        "chosen columns",
        "columns are many: those that say nothing are left out",
        lambda sizes: sizes.n_classes == 2 and not sizes.n_grouped and sizes.n_numbers >= sizes.wide_columns,
    ),
    Way("all columns", "", lambda _: True),
)


@dataclass(frozen=True, slots=True)
class Strategy:
    """The way that was chosen: what is fitted, in which order rows are read, and to which columns."""

    loss: str
    rows: str = "all rows"
    columns: str = "all columns"
    reason: str = ""

    @property
    def name(self) -> str:
        return ", ".join((self.loss, self.rows, self.columns))


def choose_strategy(sizes: Sizes) -> Strategy:
    """The first way of each table that fits.

    Examples
    --------
    >>> choose_strategy(Sizes("classes", n_rows=100_000, n_columns=9, n_numbers=9, n_classes=2)).name
    'margins, sample first, all columns'
    """
    loss = _select(LOSSES, sizes)
    rows, columns = _select(_choose_rows(loss.name), sizes), _select(COLUMNS, sizes)
    reasons = [way.reason for way in (loss, rows, columns) if way.reason]
    return Strategy(loss.name, rows.name, columns.name, "; ".join(reasons))


def _select(ways: tuple[Way, ...], sizes: Sizes) -> Way:
    return next(way for way in ways if way.fits(sizes))


def count_cuts(n_distinct: int, n_numbers: int, most_weights: int) -> int:
    """Split points of a column, at most: more where there are many different rows, fewer where columns are many."""
    wanted = _MANY_CUTS if n_distinct > LIMITS.fine_rows else _FEW_CUTS
    return max(_FEWEST_CUTS, min(wanted, most_weights // max(n_numbers, 1)))


def count_bins(n_rows: int, n_numbers: int, radius: float, most: int) -> int:
    """Bins of a column: fewer where values are moved from each to many positions, and where columns are many."""
    if radius == 0:
        return most
    wanted = _FEW_BINS if n_rows <= LIMITS.fine_rows else most
    return max(_FEWEST_BINS, min(wanted, _MOST_BINS // max(n_numbers, 1)))


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """Which way a model was trained, and why.

    Attributes
    ----------
    strategy : str
        What was fitted, in which order rows were read, and to which columns.
    reason : str
    sizes : dict
        What the choice went by.
    regularization : float
        The penalty, as given or as chosen.
    n_iterations : int
        Steps of the final fit, those of its start among them; 0 where it is solved at once.
    fit : Fit
        What it loses, how much less the best weights may lose, and whether it ended by itself.
    """

    strategy: str
    reason: str
    sizes: Facts
    regularization: float
    n_iterations: int
    fit: Fit = UNKNOWN

    @classmethod
    def of(
        cls, strategy: Strategy, sizes: Sizes, regularization: float, n_iterations: int, fit: Fit = UNKNOWN
    ) -> TrainingRecord:
        return cls(strategy.name, strategy.reason, asdict(sizes), regularization, n_iterations, fit)

    def __str__(self) -> str:
        loss, gap = f"{self.fit.loss:.4g}", f"{self.fit.gap:.1g}"
        good = "" if math.isnan(self.fit.gap) else f", loss {loss}, at most {gap} above the least"
        return f"{self.strategy} ({self.reason}); penalty {self.regularization:.3g}, {self.n_iterations} steps{good}"
