"""Classifiers as the jobs see them.

Owns what is asked of a fitted one, the loading of a saved one, and trainers by name. Must not know files of data, nor
which job asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from derand._arrays import FloatArray
from derand.certificates import Certificates
from derand.estimators import TRAINERS, CertifiedClassifier
from derand.files import PathLike
from derand.frames import Labels, TableEncoding
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

    @property
    def units(self) -> tuple[float, ...] | None: ...

    @property
    def default_threat(self) -> Threat: ...

    def certify(
        self, X: object, *, threat: Threat, rule: str | None, proof: str, noise: Noise | str | None
    ) -> Certificates: ...

    def encode_rows(self, X: object) -> FloatArray: ...

    def certify_encoded(
        self,
        rows: FloatArray,
        threats: Sequence[Threat],
        *,
        rule: str | None,
        proof: str,
        noise: Noise | str | None,
    ) -> list[Certificates]: ...


OWN = "auto"
"""The scaling that a trainer has by itself: "standard" for those that count in raw numbers unless told otherwise."""


def choose_model() -> str:
    """The trainer to use where none is named: the finest that there is."""
    return "additive" if "additive" in TRAINERS else "stumps"


def find_trainer(name: str) -> type[Any]:
    """The trainer of a name of TRAINERS."""
    if name not in TRAINERS:
        raise ValueError(f"`model` must be one of {', '.join(TRAINERS)}, got {name!r}.")
    return TRAINERS[name]


def require_parameters(name: str, given: Mapping[str, str]) -> None:
    """Refuse options that a trainer does not have.

    Parameters
    ----------
    name : str
        Of TRAINERS.
    given : mapping of str to str
        The options that were given, as the user writes them, with the parameter that each one sets.
    """
    known = find_trainer(name)().get_params(deep=False)
    for option, parameter in given.items():
        if parameter not in known:
            owners = [one for one, kind in TRAINERS.items() if parameter in kind().get_params(deep=False)]
            models = f"the model{'' if len(owners) == 1 else 's'} {', '.join(owners)}"
            raise ValueError(f"{option} belongs to {models}; {name} has nothing of the kind: leave it out.")


def make_estimator(name: str, options: Mapping[str, Any], scaling: str | None = OWN) -> CertifiedClassifier:
    """A classifier that is not fitted yet, with what was asked for; what is None is left to the trainer."""
    given = {parameter: value for parameter, value in options.items() if value is not None}
    require_parameters(name, {f"`{parameter}`": parameter for parameter in given})
    estimator: CertifiedClassifier = find_trainer(name)(**given)
    if scaling != OWN:
        estimator.set_params(scaling=scaling)
    elif estimator.scaling is None:
        estimator.set_params(scaling="standard")
    return estimator


def load_classifier(path: PathLike) -> Classifier:
    model: Any = load(path)
    if hasattr(model, "certify_interval"):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, whose answers are numbers: load it with `derand.load` and use its "
            "`certify_interval`. This command takes classifiers."
        )
    if not hasattr(model, "certify"):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    classifier: Classifier = model
    return classifier
