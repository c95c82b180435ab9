"""Models that the tests of this room share."""

from __future__ import annotations

from derand import AdditiveEnsemble, CategoryTable, StepFunction


def make_mixed() -> AdditiveEnsemble:
    """Two numerical features, of which one term is constant, and a category."""
    terms = [StepFunction(3, [0.5], [0, 4]), StepFunction(1, [], [2]), CategoryTable(0, [0, 1], [-3, 3], 1)]
    return AdditiveEnsemble(terms, 3, 4)
