"""From fitted weights to a model: the functions that they stand for, on a grid. Must not know how they are fitted."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble, CategoryShape, GridShape, Shape
from derand.train.design.columns import Design
from derand.train.design.groups import GroupColumn

_SUPPORT = 2**16  # whole scores between the lowest and the highest sum
_DUEL_SUPPORT = 2**13  # the same of a duel of several classes: there are many laws to add up

Functions = tuple[list[Shape], list[CategoryShape], list[GridShape]]
"""Of single numbers, of categories, and of groups of numbers."""


def build_model(design: Design, weights: FloatArray, n_features: int) -> AdditiveEnsemble:
    """The model of two classes on a grid on which its law can be afforded.

    `n_features`: columns of the rows; `weights` has shape (n_weights,).
    """
    return build_lead_model(read_lead(design, weights), float(weights[0]), n_features)


def read_lead(design: Design, weights: FloatArray) -> Functions:
    """The functions of all columns of a design, one number for each value."""
    starts = design.starts
    parts = [weights[starts[at] : starts[at + 1]] for at in range(len(design.columns))]
    numbers = list(zip(design.numbers, parts, strict=False))
    shapes = [one.read_shape(part) for one, part in numbers if not isinstance(one, GroupColumn)]
    grids = [one.read_grid(part) for one, part in numbers if isinstance(one, GroupColumn)]
    tables = [one.read_table(part) for one, part in zip(design.categories, parts[len(numbers) :], strict=True)]
    return shapes, tables, grids


def build_lead_model(functions: Functions, intercept: float, n_features: int) -> AdditiveEnsemble:
    """The model of two classes: the functions are those of the logarithm of odds."""
    shapes, tables, grids = functions
    total = sum(measure_spans(functions))
    levels = max(1, int(_SUPPORT / total)) if total > _SUPPORT / 2**40 else 1000
    return AdditiveEnsemble.from_shapes(
        shapes, tables, intercept=intercept, n_features=n_features, levels=levels, grids=grids
    )


def measure_spans(functions: Functions) -> list[float]:
    """Of each function the largest value less the smallest."""
    shapes, tables, grids = functions
    spans = [float(np.ptp([*one.values, *([] if one.missing is None else [one.missing])])) for one in shapes]
    spans += [
        float(np.ptp([*one.values, one.other, *([] if one.missing is None else [one.missing])])) for one in tables
    ]
    return spans + [float(np.ptp(one.values)) for one in grids]


def read_functions(design: Design, by_class: FloatArray) -> Functions:
    """The functions of all columns of a design, with a value per class."""
    starts = design.starts
    shapes, tables, grids = [], [], []
    for at, column in enumerate(design.numbers):
        own = [one[starts[at] : starts[at + 1]] for one in by_class]
        joint = [column.read_grid(one) for one in own] if isinstance(column, GroupColumn) else []
        if joint:
            values = np.stack([part.values for part in joint], axis=-1)
            grids.append(GridShape(joint[0].features, joint[0].edges, values))
            continue
        parts = [column.read_shape(one) for one in own]
        missing = None if parts[0].missing is None else np.array([part.missing for part in parts])
        shapes.append(Shape(column.feature, parts[0].edges, np.stack([part.values for part in parts], axis=1), missing))
    for at, table in enumerate(design.categories, len(design.numbers)):
        own_tables = [table.read_table(one[starts[at] : starts[at + 1]]) for one in by_class]
        gap = None if own_tables[0].missing is None else np.array([part.missing for part in own_tables])
        values = np.stack([part.values for part in own_tables], axis=1)
        tables.append(CategoryShape(table.feature, own_tables[0].categories, values, np.zeros(len(by_class)), gap))
    return shapes, tables, grids


def build_class_model(functions: Functions, intercepts: FloatArray, n_features: int) -> AdditiveEnsemble:
    """The model of several classes on a grid on which the laws of its duels can be afforded."""
    shapes, tables, grids = functions
    n_classes = intercepts.size
    ranges = np.zeros((n_classes, n_classes))
    known = [(one.values, one.missing) for one in shapes]
    known += [(np.concatenate([one.values, np.zeros((1, n_classes))]), one.missing) for one in tables]  # unseen
    known += [(one.values.reshape(-1, n_classes), None) for one in grids]
    for cells, missing in known:
        values = cells if missing is None else np.concatenate([cells, np.reshape(missing, (1, -1))])
        for label in range(n_classes):
            ranges[label] += np.ptp(values - values[:, label : label + 1], axis=0)
    total = float(ranges.max())
    levels = max(1, int(_DUEL_SUPPORT / total)) if total > _DUEL_SUPPORT / 2**40 else 1000
    return AdditiveEnsemble.from_shapes(
        shapes, tables, intercept=intercepts, n_features=n_features, levels=levels, grids=grids
    )
