"""Fitted classifiers and regressors as JSON: the class by its name, its parameters, and all that `fit` found."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from derand._core.origin import Fitted
from derand._core.units import NamedUnits
from derand.fitted import CLASSIFIERS, REGRESSORS, FittedModel, StoredModel
from derand.model import Model
from derand.noise import Noise, resolve_noise
from derand.storage._fields import Field, construct, shorten
from derand.storage._models import build_model, build_noise, describe_model, describe_noise
from derand.storage._values import build_array, build_value, describe_array, describe_value
from derand.tables import Category, Labels, TableEncoding

if TYPE_CHECKING:
    from derand.estimators import CertifiedEstimator

CLASSIFIER, REGRESSOR = "classifier", "regressor"
_FIELDS = ("noise", "feature_names", "categories", "whole", "dates", "booleans", "ensemble", "training")
"""What every estimator's file holds besides its class, its parameters and its classes."""
_STATED = {"ensemble_", "noise_", "classes_", "encoding_", "n_features_in_", "feature_names_in_", "training_"}
"""What is written elsewhere, and how a model was trained, which says nothing about what it answers."""
_FITTED_NAME = re.compile(r"[a-z](\w*[a-z0-9])?_", flags=re.ASCII)


_NAMES = {CLASSIFIER: CLASSIFIERS, REGRESSOR: REGRESSORS}


def list_estimators(kind: str) -> dict[str, type[CertifiedEstimator]]:
    """The classifiers, or the regressors, that can be saved, by the names of their classes."""
    import derand.estimators as home  # slow to import: it needs scikit-learn

    return {name: getattr(home, name) for name in _NAMES[kind]}


def describe_estimator(model: Fitted) -> dict[str, object]:
    """A fitted estimator as JSON."""
    if not hasattr(model, "ensemble_"):
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name not in _STATED}
    encoding: TableEncoding = model.encoding_
    twice = _select_repeated(encoding.names or ())
    if twice is not None:
        raise ValueError(f"`model` has two columns named {twice!r} and cannot be saved: rename one and train again.")
    return {
        "estimator": type(model).__name__,
        "parameters": {name: describe_value(value, name) for name, value in model.get_params(deep=False).items()},
        **({"classes": describe_array(model.classes_, "classes_")} if hasattr(model, "classes_") else {}),
        "noise": None if model.noise_ is None else describe_noise(model.noise_),
        "feature_names": None if encoding.names is None else list(encoding.names),
        "categories": [{"feature": feature, "values": list(own)} for feature, own in encoding.categories.items()],
        "whole": [
            {"feature": feature, "least": least, "largest": largest}
            for feature, (least, largest) in encoding.whole.items()
        ],
        "dates": list(encoding.dates),
        "booleans": None if encoding.booleans is None else list(encoding.booleans),
        "ensemble": describe_model(model.ensemble_),
        "training": {name: describe_value(value, name) for name, value in fitted.items()},
    }


class _Parts(NamedTuple):
    """What is in the file of an estimator; `training` and `parameters` depend on its class."""

    name: str
    ensemble: Model
    noise: Noise | None
    encoding: TableEncoding
    training: Field
    parameters: Field
    classes: Labels | None


def _read_parts(field: Field, kind: str) -> _Parts:
    fields = field.members("estimator", "parameters", *(["classes"] if kind == CLASSIFIER else []), *_FIELDS)
    name = fields["estimator"].choice(_NAMES[kind])
    ensemble = _build_ensemble(fields["ensemble"], kind)
    classes = _build_classes(fields["classes"], ensemble.n_classes) if kind == CLASSIFIER else None
    noise, encoding = _build_own_noise(fields["noise"], ensemble), _build_encoding(fields, ensemble)
    return _Parts(name, ensemble, noise, encoding, fields["training"], fields["parameters"], classes)


def build_estimator(field: Field, kind: str) -> CertifiedEstimator:
    """A fitted classifier or regressor from its JSON."""
    from derand.estimators import assemble

    parts = _read_parts(field, kind)
    own = list_estimators(kind)[parts.name]
    found = (parts.ensemble, parts.noise, parts.encoding, _build_training(parts.training, own))
    parameters = _build_parameters(parts.parameters, list(own().get_params(deep=False)))
    build = partial(assemble, own, *found, parameters, classes=parts.classes)
    return construct(build, parts.parameters)  # all else is checked: what it may refuse are parameters


def build_stored(field: Field, kind: str) -> StoredModel:
    """The same as what predicts and certifies; parameters that matter for training alone are not looked at."""
    parts = _read_parts(field, kind)
    found = (parts.ensemble, parts.noise, parts.encoding, _build_training(parts.training, StoredModel))
    parameters = _build_parameters(parts.parameters, [name for name, _ in parts.parameters.entries()])
    build = partial(StoredModel, parts.name, *found, parameters, classes=parts.classes)
    return construct(build, parts.parameters)


def _build_own_noise(field: Field, ensemble: Model) -> Noise | None:
    """The noise of an estimator, of as many units as its model has features."""
    noise = field.or_none(build_noise)
    units = None if noise is None else noise.units
    if units is not None and (isinstance(units, NamedUnits) or len(units) != ensemble.n_features):
        field.refuse(f"have `units` of {ensemble.n_features} entries, one per feature")
    return noise


def _build_parameters(field: Field, names: Sequence[str]) -> dict[str, object]:
    """The parameters of a constructor: numbers finite, but for a norm, and a noise one that exists."""
    fields = field.members(*{*names, "noise", "rule", "n_jobs"})
    values = {name: build_value(field) for name, field in fields.items()}
    for name, value in values.items():
        if not _is_finite(value) and (name, value) != ("norm", math.inf):
            fields[name].refuse("hold finite numbers")
    construct(partial(resolve_noise, values["noise"]), fields["noise"])
    return values


def _is_finite(value: object) -> bool:
    """Whether a value, or all that are in it, are finite or no numbers."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple | np.ndarray):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _build_training(field: Field, kind: type[FittedModel]) -> dict[str, object]:
    """What `fit` found besides the model; no name that the class or this file uses otherwise."""
    found = {}
    for name, value in field.entries():
        if not _FITTED_NAME.fullmatch(name) or name in _STATED or hasattr(kind, name):
            raise ValueError(f"`{value.path}` is unknown: names of fitted values end with one underscore.")
        found[name] = build_value(value)
    return found


def _build_ensemble(field: Field, kind: str) -> Model:
    model = build_model(field)
    if kind == REGRESSOR:
        if model.weights is not None or any(member.offset is None for member in model.members):
            raise ValueError(f"`{field.path}.model` must have a number as its answer: a regressor gives one.")
        return model
    if any(member.decision is None for member in model.members):
        raise ValueError(f"`{field.path}.model` must have a decision: a classifier decides.")
    if not all(member.n_classes for member in model.members):
        raise ValueError(f"`{field.path}.model` must tell classes apart, got one that answers with a number.")
    return model


def _build_classes(field: Field, n_classes: int) -> Labels:
    """The labels: all text, all truth values or all finite numbers."""
    classes = build_array(field)
    labels = classes.tolist()
    families = {_name_family(label) for label in labels}
    if len(labels) != n_classes or len(set(labels)) != n_classes or len(families) != 1 or None in families:
        count = "two" if n_classes == 2 else n_classes
        raise ValueError(
            f"`{field.path}` must hold {count} different labels of one kind, text, truth values or finite numbers, "
            f"got {', '.join(map(shorten, labels[:3])) or 'none'}."
        )
    return classes


def _name_family(value: object) -> type | None:
    """What a label or category is: text, a truth value or a finite number; None for anything else."""
    if isinstance(value, str | bool):
        return type(value)
    return float if isinstance(value, int | float) and math.isfinite(value) else None


def _select_repeated(names: Sequence[object]) -> object:
    """The first name or number that is there twice; None for none."""
    seen: set[object] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _build_encoding(fields: Mapping[str, Field], ensemble: Model) -> TableEncoding:
    """Column names and categories; a feature is either categorical in the ensemble and here, or in neither."""
    n_features = ensemble.n_features
    names = fields["feature_names"].or_none(lambda field: tuple(item.text() for item in field.items()))
    if names is not None and len(names) != n_features:
        fields["feature_names"].refuse(f"hold {n_features} names, one per feature")
    twice = _select_repeated(names or ())
    if twice is not None:
        raise ValueError(f"`{fields['feature_names'].path}` must hold different names, got {shorten(twice)} twice.")
    categories = {}
    for item in fields["categories"].items():
        parts = item.members("feature", "values")
        feature = parts["feature"].whole()
        if not 0 <= feature < n_features or feature in categories:
            parts["feature"].refuse(f"be a feature from 0 to {n_features - 1}, each only once")
        categories[feature] = _build_categories(parts["values"])
    numerical = {axis.feature for term in ensemble.member_terms for axis in term.axes}
    if numerical & set(categories) or not set(ensemble.categorical_features) <= set(categories):
        fields["categories"].refuse("name the features for which the ensemble has category tables, and no others")
    for term in ensemble.member_terms:
        for feature in () if term.axes else term.features:
            if term.codes.tolist() != list(range(len(categories[feature]))):
                fields["categories"].refuse(
                    f"hold as many values for feature {feature} as its category table has, {term.codes.size}"
                )
    others = set(range(n_features)) - set(categories)
    whole, dates = _build_whole(fields["whole"], others), _build_columns(fields["dates"], others)
    booleans = fields["booleans"].or_none(lambda field: _build_columns(field, others))
    return TableEncoding(n_features, names, categories, whole, dates, booleans)


def _build_whole(field: Field, numerical: set[int]) -> dict[int, tuple[int, int]]:
    """Columns that held whole numbers alone, with the least and the largest of them."""
    found: dict[int, tuple[int, int]] = {}
    for item in field.items():
        parts = item.members("feature", "least", "largest")
        feature, least, largest = (parts[name].whole() for name in ("feature", "least", "largest"))
        if feature not in numerical or feature in found:
            parts["feature"].refuse("be a numerical feature, each only once")
        if not -(2**53) < least < largest < 2**53:
            parts["largest"].refuse("be above `least`, both within 2**53")
        found[feature] = (least, largest)
    return found


def _build_columns(field: Field, numerical: set[int]) -> tuple[int, ...]:
    """Numerical features of which a file says something, such as that their numbers are days."""
    columns = tuple(item.whole() for item in field.items())
    if not set(columns) <= numerical or _select_repeated(columns) is not None:
        field.refuse("name numerical features, each only once")
    return columns


def _build_categories(field: Field) -> tuple[Category, ...]:
    """Categories of one feature: all text, all truth values or all numbers, increasing."""
    values = [item.value for item in field.items()]
    for item in field.items():
        if not isinstance(item.value, str | bool):
            item.number()
    families = {_name_family(value) for value in values}
    if len(families) > 1 or any(after <= before for before, after in pairwise(values)):
        field.refuse("be increasing and of one type")
    return tuple(values)
