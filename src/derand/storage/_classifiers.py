"""Fitted classifiers as JSON: the estimator by its registered name, its parameters, and all that `fit` found.

Values of parameters are written plainly: numbers, text, lists, dicts, arrays and noises; anything else is refused.
Arrays of text are as wide as their longest text asks for, whatever type a file states, and of text so uneven that most
of an array would be padding they are arrays of objects: what is allocated stays in proportion to the file.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from derand._core.units import NamedUnits
from derand.model import Model
from derand.noise import Noise, as_noise
from derand.storage._fields import Field, construct, shorten
from derand.storage._models import build_model, build_noise, describe_model, describe_noise
from derand.threat import Threat

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier, CertifiedEstimator

_STATED = {"ensemble_", "noise_", "classes_", "encoding_", "n_features_in_", "feature_names_in_", "training_"}
"""What is written elsewhere, and how a model was trained, which says nothing about what it answers."""
_FITTED_NAME = re.compile(r"[a-z](\w*[a-z0-9])?_", flags=re.ASCII)
_ARRAY_TYPE = re.compile(r"[<|](U[1-9]\d{0,3}|[iu][1248]|f[248]|b1|O)")
_NOISE_WORDS = ("auto", "none")
"""What a constructor may take for a noise."""
ESTIMATOR_FIELDS = ("noise", "feature_names", "categories", "whole", "dates", "booleans", "ensemble", "training")
"""What every estimator's file holds besides its parameters."""
_STRANGE_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def list_estimators() -> dict[str, type[CertifiedClassifier]]:
    """The classifiers that can be saved, by the names of their classes."""
    from derand.estimators import TRAINERS, ImportedClassifier

    kinds: list[type[CertifiedClassifier]] = [*TRAINERS.values(), ImportedClassifier]
    return {kind.__name__: kind for kind in kinds}


def describe_classifier(model: CertifiedClassifier) -> dict[str, Any]:
    """A fitted classifier as JSON."""
    described = describe_estimator(model)
    classes = {"classes": _describe_array(model.classes_, "classes_")}
    return {"estimator": described.pop("estimator"), "parameters": described.pop("parameters"), **classes, **described}


def describe_estimator(model: CertifiedEstimator) -> dict[str, Any]:
    """A fitted estimator as JSON, without its classes."""
    if not hasattr(model, "ensemble_"):
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name not in _STATED}
    names, booleans = model.encoding_.names, model.encoding_.booleans
    twice = _find_twice(names or ())
    if twice is not None:
        raise ValueError(f"`model` has two columns named {twice!r} and cannot be saved: rename one and train again.")
    return {
        "estimator": type(model).__name__,
        "parameters": {name: _describe_value(value, name) for name, value in model.get_params(deep=False).items()},
        "noise": None if model.noise_ is None else describe_noise(model.noise_),
        "feature_names": None if names is None else list(names),
        "categories": [
            {"feature": feature, "values": list(values)} for feature, values in model.encoding_.categories.items()
        ],
        "whole": [
            {"feature": feature, "least": least, "largest": largest}
            for feature, (least, largest) in model.encoding_.whole.items()
        ],
        "dates": list(model.encoding_.dates),
        "booleans": None if booleans is None else list(booleans),
        "ensemble": describe_model(model.ensemble_),
        "training": {name: _describe_value(value, name) for name, value in fitted.items()},
    }


def build_classifier(field: Field) -> CertifiedClassifier:
    """A fitted classifier from its JSON."""
    from derand.estimators import assemble

    fields = field.members("estimator", "parameters", "classes", *ESTIMATOR_FIELDS)
    estimators = list_estimators()
    kind = estimators[fields["estimator"].choice(list(estimators))]
    ensemble = _build_ensemble(fields["ensemble"])
    classes = _build_classes(fields["classes"], ensemble.n_classes)
    build = partial(
        assemble,
        kind,
        ensemble,
        build_own_noise(fields["noise"], ensemble),
        build_encoding(fields, ensemble),
        build_training(fields["training"], kind),
        build_parameters(fields["parameters"], kind),
        classes=classes,
    )
    return construct(build, fields["parameters"])  # all else is checked: what it may refuse are parameters


def build_own_noise(field: Field, ensemble: Model) -> Noise | None:
    """The noise of an estimator, of as many units as its model has features."""
    noise = field.or_none(build_noise)
    units = None if noise is None else noise.units
    if units is not None and (isinstance(units, NamedUnits) or len(units) != ensemble.n_features):
        field.refuse(f"have `units` of {ensemble.n_features} entries, one per feature")
    return noise


def build_parameters(field: Field, kind: type[CertifiedEstimator]) -> dict[str, Any]:
    """The parameters of a constructor: numbers finite, but for a norm, and a noise one that exists."""
    fields = field.members(*kind().get_params(deep=False))
    values = {name: _build_value(field) for name, field in fields.items()}
    for name, value in values.items():
        if not _is_finite(value) and (name, value) != ("norm", math.inf):
            fields[name].refuse("hold finite numbers")
    noise = values["noise"]
    if noise is not None and not (isinstance(noise, str) and noise in _NOISE_WORDS):
        construct(partial(as_noise, noise), fields["noise"])
    return values


def _is_finite(value: Any) -> bool:
    """Whether a value, or all that are in it, are finite or no numbers."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple | np.ndarray):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def build_training(field: Field, kind: type[CertifiedEstimator]) -> dict[str, Any]:
    """What `fit` found besides the model; no name that the class or this file uses otherwise."""
    found = {}
    for name, value in field.entries():
        if not _FITTED_NAME.fullmatch(name) or name in _STATED or hasattr(kind, name):
            raise ValueError(f"`{value.path}` is unknown: names of fitted values end with one underscore.")
        found[name] = _build_value(value)
    return found


def _build_ensemble(field: Field) -> Model:
    model = build_model(field)
    if any(member.decision is None for member in model.members):
        raise ValueError(f"`{field.path}.model` must have a decision: a classifier decides.")
    if not all(member.n_classes for member in model.members):
        raise ValueError(f"`{field.path}.model` must tell classes apart, got one that answers with a number.")
    return model


def _build_classes(field: Field, n_classes: int) -> NDArray[Any]:
    """The labels: all text, all truth values or all finite numbers."""
    classes = _build_array(field)
    labels = classes.tolist()
    families = {_name_family(label) for label in labels}
    if len(labels) != n_classes or len(set(labels)) != n_classes or len(families) != 1 or None in families:
        count = "two" if n_classes == 2 else n_classes
        raise ValueError(
            f"`{field.path}` must hold {count} different labels of one kind, text, truth values or finite numbers, "
            f"got {', '.join(map(shorten, labels[:3])) or 'none'}."
        )
    return classes


def _name_family(value: Any) -> type | None:
    """What a label or category is: text, a truth value or a finite number; None for anything else."""
    if isinstance(value, str | bool):
        return type(value)
    return float if isinstance(value, int | float) and math.isfinite(value) else None


def _find_twice(names: Sequence[Any]) -> Any:
    """The first name or number that is there twice; None for none."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def build_encoding(fields: Mapping[str, Field], ensemble: Model) -> Any:
    """Column names and categories; a feature is either categorical in the ensemble and here, or in neither."""
    from derand.tables import TableEncoding

    n_features = ensemble.n_features
    names = fields["feature_names"].or_none(lambda field: tuple(item.text() for item in field.items()))
    if names is not None and len(names) != n_features:
        fields["feature_names"].refuse(f"hold {n_features} names, one per feature")
    twice = _find_twice(names or ())
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
    if not set(columns) <= numerical or _find_twice(columns) is not None:
        field.refuse("name numerical features, each only once")
    return columns


def _build_categories(field: Field) -> tuple[Any, ...]:
    """Categories of one feature: all text, all truth values or all numbers, increasing."""
    values = [item.value for item in field.items()]
    for item in field.items():
        if not isinstance(item.value, str | bool):
            item.number()
    families = {_name_family(value) for value in values}
    if len(families) > 1 or any(after <= before for before, after in pairwise(values)):
        field.refuse("be increasing and of one type")
    return tuple(values)


def _describe_value(value: Any, name: str) -> Any:
    """A parameter or fitted value as JSON: what is not plain or a list carries its kind."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list):
        return [_describe_value(item, name) for item in value]
    for kind, (tag, describe) in _DESCRIBERS.items():
        if isinstance(value, kind):
            return {tag: describe(value, name)}
    raise ValueError(
        f"`{name}` cannot be saved: a {type(value).__name__} is no number, text, list, dict, array or noise."
    )


def _build_value(field: Field) -> Any:
    if field.value is None or isinstance(field.value, bool | str):
        return field.value
    if isinstance(field.value, list):
        return [_build_value(item) for item in field.items()]
    if isinstance(field.value, dict):
        if len(field.value) != 1 or next(iter(field.value)) not in _BUILDERS:
            field.refuse(f"have one field, of {', '.join(_BUILDERS)}")
        ((name, inside),) = field.entries()
        return _BUILDERS[name](inside)
    return field.whole() if isinstance(field.value, int) else field.number()


def _build_dict(field: Field) -> dict[Any, Any]:
    result = {}
    for item in field.items():
        pair = [_build_value(part) for part in item.items()]
        if len(pair) != 2 or not isinstance(pair[0], str | bool | int | float):
            item.refuse("be a key, plain, and a value")
        result[pair[0]] = pair[1]
    return result


def _describe_array(array: NDArray[Any], name: str) -> dict[str, Any]:
    type_name = array.dtype.newbyteorder("<").str
    if array.ndim != 1 or not _ARRAY_TYPE.fullmatch(type_name):
        raise ValueError(f"`{name}` cannot be saved: it is an array of type {array.dtype} and shape {array.shape}.")
    values = array.tolist()
    if array.dtype.kind == "U":
        type_name = "|O" if _is_uneven(values) else f"<U{_find_width(values)}"
    return {"type": type_name, "values": [_describe_value(value, name) for value in values]}


def _build_array(field: Field) -> NDArray[Any]:
    """A flat array; values that its type does not hold exactly are refused."""
    fields = field.members("type", "values")
    type_name = fields["type"].text()
    if not _ARRAY_TYPE.fullmatch(type_name):
        fields["type"].refuse("be the type of an array")
    values = [_build_value(item) for item in fields["values"].items()]
    if any(isinstance(value, list | tuple | dict | np.ndarray | Noise) for value in values):
        fields["values"].refuse("hold plain values")
    held = _narrow_type(type_name, values, fields["values"])
    try:
        array = np.array(values, dtype=held)
    except (ValueError, TypeError, OverflowError):
        fields["values"].refuse(f"be of the type {type_name}")
    back = array.tolist()
    if [(type(value), repr(value)) for value in back] != [(type(value), repr(value)) for value in values]:
        fields["values"].refuse(f"be of the type {type_name}")
    return array


def _narrow_type(type_name: str, values: Sequence[Any], field: Field) -> str:
    """The type to allocate for values: of text the narrowest, which the stated one must cover."""
    if type_name[1] != "U":
        return type_name
    if not all(isinstance(value, str) and len(value) <= int(type_name[2:]) for value in values):
        field.refuse(f"be of the type {type_name}")
    if _is_uneven(values):
        field.refuse("hold text of similar lengths: uneven text has the type |O")
    return f"<U{_find_width(values)}"


def _find_width(values: Sequence[str]) -> int:
    return max(map(len, values), default=1) or 1


def _is_uneven(values: Sequence[str]) -> bool:
    """Whether an array as wide as its longest text would be far larger than its text; never of four values or less."""
    return len(values) * _find_width(values) > 4 * sum(len(value) + 16 for value in values)


def _describe_dict(value: dict[Any, Any], name: str) -> list[list[Any]]:
    return [[_describe_value(key, name), _describe_value(item, name)] for key, item in value.items()]


def describe_threat(threat: Threat, name: str) -> dict[str, Any]:
    """A threat by its fields."""
    return {one.name: _describe_value(getattr(threat, one.name), name) for one in dataclasses.fields(threat)}


def build_threat(field: Field) -> Threat:
    """A threat by its fields."""
    fields = field.members(*(one.name for one in dataclasses.fields(Threat)))
    return construct(partial(Threat, **{name: _build_value(one) for name, one in fields.items()}), field)


_BUILDERS: Mapping[str, Callable[[Field], Any]] = {
    "float": lambda field: _STRANGE_FLOATS[field.choice(list(_STRANGE_FLOATS))],
    "tuple": lambda field: tuple(_build_value(item) for item in field.items()),
    "dict": _build_dict,
    "array": _build_array,
    "noise": build_noise,
    "threat": build_threat,
}

_DESCRIBERS: Mapping[type, tuple[str, Callable[[Any, str], Any]]] = {
    float: ("float", lambda value, _: str(value)),
    NamedUnits: ("dict", lambda value, name: _describe_dict(value.by_name, name)),  # before tuple, which it is
    tuple: ("tuple", lambda value, name: [_describe_value(item, name) for item in value]),
    dict: ("dict", _describe_dict),
    np.ndarray: ("array", _describe_array),
    Noise: ("noise", lambda value, _: describe_noise(value)),
    Threat: ("threat", describe_threat),
}
