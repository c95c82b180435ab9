"""Models and rows explained to people: what contributes to an answer, what would flip it, and the shapes of a model.

`_contributions` measures what each column adds (by `heights`), `_words` says changes and radii in the user's values,
`_row` holds what `explain` of a classifier gives, `_regression` that of a regressor, `_statements` says reasons and
promises, `densities` where the data lie, `plots` draws it all. Must not know scikit-learn or how tables are read:
names, categories and units are given (`Names`).
"""

from derand.explain._contributions import Contributions
from derand.explain._names import Names, name_category
from derand.explain._regression import Extreme, NumberExplanation, Reach, explain_regression
from derand.explain._row import Explanations, RowExplanation, explain_label
from derand.explain._statements import ModelPromises, describe_reason, list_reason_sentences, name_promises
from derand.explain._words import (
    SCALING_UNITS,
    describe_change,
    describe_domain,
    describe_limit,
    move_alone,
    multiply_down,
)

__all__ = [
    "SCALING_UNITS",
    "Contributions",
    "Explanations",
    "Extreme",
    "ModelPromises",
    "Names",
    "NumberExplanation",
    "Reach",
    "RowExplanation",
    "describe_change",
    "describe_domain",
    "describe_limit",
    "describe_reason",
    "explain_label",
    "explain_regression",
    "list_reason_sentences",
    "move_alone",
    "multiply_down",
    "name_category",
    "name_promises",
]
