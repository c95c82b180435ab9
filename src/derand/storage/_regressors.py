"""Fitted regressors as JSON: what a file of a classifier holds, but for classes. Must not know how values are written.

A file of the kind "regressor" is new: older readers refuse it by its kind.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from derand.model import Model
from derand.storage._classifiers import (
    ENCODED_LATER,
    LATER,
    ask_parameters,
    build_encoding,
    build_own_noise,
    build_parameters,
    build_training,
)
from derand.storage._fields import Field, construct
from derand.storage._models import build_model

if TYPE_CHECKING:
    from derand.estimators import CertifiedRegressor


def list_regressors() -> dict[str, type[CertifiedRegressor]]:
    """The regressors that can be saved, by the names of their classes."""
    from derand.estimators import REGRESSORS, ImportedRegressor

    kinds: list[type[CertifiedRegressor]] = [*REGRESSORS.values(), ImportedRegressor]
    return {kind.__name__: kind for kind in kinds}


def build_regressor(field: Field) -> CertifiedRegressor:
    """A fitted regressor from its JSON."""
    names = ("estimator", "parameters", "noise", "feature_names", "categories", "ensemble", "training")
    fields = field.members(*names, optional=ENCODED_LATER)
    regressors = list_regressors()
    kind = regressors[fields["estimator"].choice(list(regressors))]
    parameters = ask_parameters(fields["parameters"], kind, LATER)
    ensemble = _build_ensemble(fields["ensemble"])
    build = partial(
        kind.from_parts,
        ensemble,
        build_own_noise(fields["noise"], ensemble),
        build_encoding(fields, ensemble, kind.usual_booleans),
        build_training(fields["training"], kind),
        **build_parameters(parameters),
    )
    return construct(build, fields["parameters"])  # all else is checked: what it may refuse are parameters


def _build_ensemble(field: Field) -> Model:
    model = build_model(field)
    if model.weights is not None or any(member.offset is None for member in model.members):
        raise ValueError(f"`{field.path}.model` must have a number as its answer: a regressor gives one.")
    return model
