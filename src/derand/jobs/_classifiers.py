"""Classifiers as the jobs see them.

Owns what is asked of a fitted one, the loading of a saved one, and trainers by name. Must not know files of data, nor
which job asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from derand._arrays import FloatArray
from derand.certificates import Certificates
from derand.estimators import TRAINERS
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
    noise_: Noise
    classes_: Labels
    n_features_in_: int

    def certify(
        self, X: object, *, threat: Threat, rule: str | None, proof: str, noise: Noise | str | None
    ) -> Certificates: ...

    def certify_encoded(
        self,
        rows: FloatArray,
        threats: Sequence[Threat],
        *,
        rule: str | None,
        proof: str,
        noise: Noise | str | None,
    ) -> list[Certificates]: ...


def choose_model() -> str:
    """The trainer to tune where none is named: the finest that there is."""
    return "additive" if "additive" in TRAINERS else "stumps"


def find_trainer(name: str) -> type[Any]:
    """The trainer of a name of TRAINERS."""
    if name not in TRAINERS:
        raise ValueError(f"`model` must be one of {', '.join(TRAINERS)}, got {name!r}.")
    return TRAINERS[name]


def load_classifier(path: PathLike) -> Classifier:
    model: Any = load(path)
    if not hasattr(model, "certify"):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    classifier: Classifier = model
    return classifier
