"""From fitted weights to a model: the functions that they stand for, on a grid. Must not know how they are fitted."""

from __future__ import annotations

import numpy as np

from derand._arrays import FloatArray
from derand.learn._design import Design
from derand.learn._groups import GroupColumn
from derand.model import AdditiveEnsemble

_SUPPORT = 2**16  # whole scores between the lowest and the highest sum


def build_model(design: Design, weights: FloatArray, n_features: int) -> AdditiveEnsemble:
    """The model on a grid on which its law can be afforded.

    Parameters
    ----------
    design : Design
    weights : array of shape (n_weights,)
    n_features : int
        Columns of the rows.
    """
    starts = design.starts
    parts = [weights[starts[at] : starts[at + 1]] for at in range(len(design.columns))]
    numbers = list(zip(design.numbers, parts, strict=False))
    shapes = [one.read_shape(part) for one, part in numbers if not isinstance(one, GroupColumn)]
    grids = [one.read_grid(part) for one, part in numbers if isinstance(one, GroupColumn)]
    tables = [one.read_table(part) for one, part in zip(design.categories, parts[len(numbers) :], strict=True)]
    spans = [float(np.ptp([*one.values, *([] if one.missing is None else [one.missing])])) for one in shapes]
    spans += [
        float(np.ptp([*one.values, one.other, *([] if one.missing is None else [one.missing])])) for one in tables
    ]
    total = sum(spans) + sum(float(np.ptp(one.values)) for one in grids)
    levels = max(1, int(_SUPPORT / total)) if total > _SUPPORT / 2**40 else 1000
    return AdditiveEnsemble.from_shapes(
        shapes, tables, intercept=float(weights[0]), n_features=n_features, levels=levels, grids=grids
    )
