"""Classifiers as the jobs see them, and trainers by name.

Owns what is asked of a fitted classifier, the loading of a saved one, and how an estimator is made. Must not know files
of data, nor which job asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from derand._arrays import FloatArray
from derand.certificates import Certificates
from derand.estimators import TRAINERS, CertifiedRegressor
from derand.files import PathLike
from derand.frames import Labels, TableEncoding
from derand.jobs._tasks import CLASSES, Spell, list_trainers, quote_parameter, require_parameters
from derand.metrics import RowGrades
from derand.model import Model
from derand.noise import Noise
from derand.storage import load
from derand.threat import Threat


class Classifier(Protocol):
    """What is asked of a fitted classifier."""

    ensemble_: Model
    encoding_: TableEncoding
    noise_: Noise | None
    classes_: Labels
    n_features_in_: int
    rule: str
    n_jobs: int | None

    @property
    def units(self) -> tuple[float, ...] | None: ...

    @property
    def default_threat(self) -> Threat: ...

    def certify(
        self, X: object, *, threat: Threat, rule: str | None, proof: str, noise: Noise | str | float | None
    ) -> Certificates: ...

    def encode_rows(self, X: object) -> FloatArray: ...

    def grade_rows(self, X: object, certificates: Certificates) -> RowGrades: ...

    def certify_encoded(
        self,
        rows: FloatArray,
        threats: Sequence[Threat],
        *,
        rule: str | None,
        proof: str,
        noise: Noise | str | float | None,
        n_jobs: int | None = None,
    ) -> list[Certificates]: ...


OWN = "auto"
"""The scaling that a trainer has by itself: "standard" for those that count in raw numbers unless told otherwise."""


def choose_model() -> str:
    """The trainer to use where none is named: the finest that there is."""
    return "additive" if "additive" in TRAINERS else "stumps"


def find_trainer(name: str, task: str | None = CLASSES) -> type[Any]:
    """The trainer of a name, for a task; where that is None, one of any."""
    known = list_trainers(task)
    if name not in known:
        raise ValueError(f"`model` must be one of {', '.join(known)}, got {name!r}.")
    return known[name]


def make_estimator(
    name: str,
    options: Mapping[str, Any],
    scaling: str | None = OWN,
    *,
    task: str = CLASSES,
    spell: Spell = quote_parameter,
) -> Any:
    """An estimator that is not fitted yet, with what was asked for; what is None is left to the trainer."""
    given = {parameter: value for parameter, value in options.items() if value is not None}
    trainer = find_trainer(name, task)
    require_parameters(name, {spell(parameter): parameter for parameter in given}, task)
    estimator = trainer(**given)
    if scaling != OWN:
        estimator.set_params(scaling=scaling)
    elif estimator.scaling is None:
        estimator.set_params(scaling="standard")
    return estimator


def load_estimator(path: PathLike) -> Classifier | CertifiedRegressor:
    """A saved classifier or regressor."""
    model: Any = load(path)
    if not hasattr(model, "encode_rows"):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    estimator: Classifier | CertifiedRegressor = model
    return estimator


def load_classifier(path: PathLike, numbers: str = "use `certify_numbers_file`") -> Classifier:
    """A saved classifier; a regressor is refused with what to do about its numbers."""
    model = load_estimator(path)
    if isinstance(model, CertifiedRegressor):
        raise ValueError(f"{path} holds a regressor, {type(model).__name__}, whose answers are numbers: {numbers}.")
    return model


def load_regressor(path: PathLike) -> CertifiedRegressor:
    """A saved regressor."""
    model = load_estimator(path)
    if not isinstance(model, CertifiedRegressor):
        raise ValueError(f"{path} holds a classifier, {type(model).__name__}: use `certify_file`, or its `certify`.")
    return model
