"""A fitted model with what tables, noise and labels mean to it: what answers and certifies rows, without scikit-learn.

`_model` holds what was learnt and what follows from it, `_encoding` reads tables for it, `_cut` makes probabilities of
scores, `_asking` predicts and certifies. Estimators are such models that can be trained; a file is read as a
`StoredModel` where nothing is trained. Must not know how anything is trained, nor files.
"""

from __future__ import annotations

from derand.fitted._asking import (
    answers_numbers,
    certify_encoded,
    certify_interval_encoded,
    certify_radius_encoded,
    choose_radius,
    encode_rows,
    grade_rows,
    read_odds,
)
from derand.fitted._cut import (
    COSTS,
    Cut,
    compute_probabilities,
    keep_sides,
    read_costs,
    read_threshold,
    settle_lead,
)
from derand.fitted._model import (
    CLASSIFIERS,
    REGRESSORS,
    FittedModel,
    StoredModel,
    make_imported_threat,
    make_trained_threat,
)

__all__ = [
    "CLASSIFIERS",
    "COSTS",
    "REGRESSORS",
    "Cut",
    "FittedModel",
    "StoredModel",
    "answers_numbers",
    "certify_encoded",
    "certify_interval_encoded",
    "certify_radius_encoded",
    "choose_radius",
    "compute_probabilities",
    "encode_rows",
    "grade_rows",
    "keep_sides",
    "make_imported_threat",
    "make_trained_threat",
    "read_costs",
    "read_odds",
    "read_threshold",
    "settle_lead",
]
