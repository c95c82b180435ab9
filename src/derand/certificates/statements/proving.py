"""The door to promises about every row of a domain: which are asked, of a sum of terms or of trees.

Must not know how any of them is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from derand._core.arrays import FloatArray
from derand.certificates.labels import find_labels
from derand.certificates.results.statements import Promises
from derand.certificates.rules.base import read_budget
from derand.certificates.statements.domain import Domain, require_sum
from derand.certificates.statements.promises import DIRECTIONS, Statements
from derand.certificates.statements.tree_promises import TreeStatements
from derand.model import Model
from derand.noise import Noise


def prove(
    model: Model,
    noise: Noise | None,
    domain: Domain,
    *,
    rule: str = "mean",
    protected: Sequence[Sequence[int]] = (),
    monotone: Mapping[int, str] | None = None,
    radius: float | None = None,
    norm: float = np.inf,
    units: FloatArray | None = None,
    table: FloatArray | None = None,
    budget: int | None = None,
) -> Promises:
    """What holds for every row of a domain.

    `protected`: sets of columns that must not change an answer, each on its own; `monotone`: directions by column;
    `radius`: the largest change of the score within it is bounded; `table`: rows of which shares are measured;
    `budget`: nodes that each search of a model with trees may look at.
    """
    require_sum(model, noise, rule)
    if model.has_trees:
        find_labels(model, domain.choose_row()[None], noise, rule="mean")  # refuses noise
        asked: Statements = TreeStatements(model, domain, read_budget(budget))
    else:
        asked = Statements(model, noise, domain, rule=rule)
    for column, direction in (monotone or {}).items():
        if direction not in DIRECTIONS:
            raise ValueError(f"`monotone` must say 'increasing' or 'decreasing', got {direction!r}.")
        if column in model.categorical_features:
            raise ValueError(f"`monotone` must name columns of numbers, got column {column}, which holds categories.")
    if model.n_classes == 0 and protected:
        raise ValueError("`protected` is for classes, got a model that answers with a number: see its swings.")
    found = [asked.prove_protected(columns, table) for columns in protected]
    found += [asked.prove_monotone(column, direction) for column, direction in (monotone or {}).items()]
    found += asked.prove_classes(table) if model.n_classes else ()
    change = None
    if radius is not None:
        change = asked.compute_change(radius, norm, np.ones(model.n_features) if units is None else units)
    error = model.members[0].score_error / asked.levels
    return Promises(tuple(found), asked.list_swings(), *asked.compute_ends(), change, error)
