"""Trainers of wide tables: columns are chosen for all rows, and for those of each fold anew, before they are fitted.

Owns what a model leaves unexplained while columns are chosen, and the trainers of folds, which look at columns of their
own. Must not know how columns are tested (`_screening`) or how weights are fitted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from derand._core.arrays import FloatArray, IntArray
from derand.train.additive import Trainer
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design, keep_numbers, leave_in_place
from derand.train.losses.margin import Stage
from derand.train.selection.folds import spread_rows
from derand.train.selection.screening import choose_columns, say_nothing

_MOST_ROWS = 20_000  # that columns are chosen on
_REGULARIZATION = 1.0
_STAGES = (Stage(0.0, 30, 1e-4),)

Make = Callable[[BinnedTable], Trainer]
"""A trainer of a table, for the noise, threat and options that are asked for."""


def narrow_table(binned: BinnedTable, make: Make) -> BinnedTable | None:
    """The same rows without the numerical columns that say nothing; None where those say something together."""
    rows = binned.take(spread_rows(binned, _MOST_ROWS))
    chosen = _choose(rows, make)
    others = np.setdiff1d(np.arange(len(rows.numbers)), chosen)
    return binned.keep(chosen) if say_nothing(rows, _leave(rows, chosen, make), others) else None


def narrow_folds(rows: BinnedTable, folds: IntArray, make: Make) -> list[tuple[Trainer, BinnedTable]]:
    """A trainer for each fold, and the rows with the columns that it looks at: chosen without the rows of the fold."""
    chosen = [_choose(rows.take(np.flatnonzero(folds != fold)), make) for fold in range(int(folds.max()) + 1)]
    every = np.unique(np.concatenate(chosen))
    whole = make(rows.keep(every))
    return [(_FoldTrainer(whole, np.searchsorted(every, places)), rows.keep(places)) for places in chosen]


def _choose(rows: BinnedTable, make: Make) -> IntArray:
    """Places of the numerical columns to fit."""
    return choose_columns(rows, lambda places: _leave(rows, places, make))


def _leave(rows: BinnedTable, places: IntArray, make: Make) -> FloatArray:
    """What a plain model of some numerical columns, and all categorical ones, leaves unexplained of each row."""
    some = rows.keep(places)
    trainer = make(some)
    design = leave_in_place(trainer.design(True, 0.0))
    weights = trainer.fit(design, some, _REGULARIZATION, None, _STAGES, n_threads=1)
    return np.asarray(rows.weights * (rows.target - expit(trainer.score(design, some, weights))))


class _FoldTrainer(Trainer):
    """Fits some of the columns that another trainer has designed."""

    def __init__(self, whole: Trainer, places: IntArray) -> None:
        vars(self).update(vars(whole))  # rows, options and patience are the same
        self._whole, self._places = whole, places

    def design(self, with_ramp: bool, radius: float | None = None) -> Design:
        return keep_numbers(self._whole.design(with_ramp, radius), self._places)
