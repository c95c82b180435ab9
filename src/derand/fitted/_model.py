"""What was learnt of a table, and what follows from that: units, the threat, the noise to certify under.

Owns which names of estimators a file may hold. Must not know tables of rows, nor how anything is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray, Labels
from derand._core.threads import count_threads
from derand.certificates import LibraryLabels, find_rule
from derand.fitted._cut import Cut, read_costs, read_threshold
from derand.fitted._encoding import encode_table
from derand.metrics import Costs
from derand.model import Model
from derand.noise import Noise, resolve_noise
from derand.tables import TableEncoding
from derand.threat import Column, Threat

CLASSIFIERS = (
    "AdditiveClassifier",
    "StumpClassifier",
    "RobTreeBoostClassifier",
    "RobAdaBoostClassifier",
    "ImportedClassifier",
)
REGRESSORS = ("AdditiveRegressor", "StumpRegressor", "ImportedRegressor")
"""The estimators that can be saved, by name."""


class FittedModel:
    """A model with what tables, noise and labels mean to it. Estimators are such models once they are fitted.

    What training found ends with an underscore. Parameters of training that matter later are read where they are there:
    `norm`, `l0`, `frozen`, `threat` and `radius`, `decision_threshold` and `cost`.
    """

    ensemble_: Model
    noise_: Noise | None
    encoding_: TableEncoding
    units_: FloatArray
    classes_: Labels
    rule: str
    n_jobs: int | None
    _library: LibraryLabels | None = None
    """Answers of the library that it was read from, as long as that is at hand."""

    @property
    def _kind(self) -> str:
        """The name of the estimator."""
        return type(self).__name__

    @property
    def units(self) -> tuple[float, ...] | None:
        """What counts as a change of 1 of each feature; None for 1 everywhere."""
        return tuple(self.units_.tolist()) if self.noise_ is None else self.noise_.units

    @property
    def default_threat(self) -> Threat:
        """What is certified against where nothing is asked for: what it was trained against, or the noise's norm."""
        return Threat()

    def _name_columns(self, threat: Threat) -> Threat:
        """The threat by numbers of columns and codes of categories, counting in the estimator's units."""
        encoding = self.encoding_
        named = threat.name_columns(encoding.names, encoding.categories, self.units, encoding.whole)
        norm = self.default_threat.norm if named.norm == "auto" else named.norm
        return replace(named, norm=norm, units=self.units if named.units is None else named.units)

    def _choose_noise(self, noise: Noise | str | float | None, threat: Threat = Threat()) -> Noise | None:  # noqa: B008
        """The noise to certify under, in the norm of a threat: the model's own for None, none at all for "none"."""
        other = resolve_noise(noise, self.noise_, threat.norm, self.noise_)
        if other is None or other is self.noise_:
            return other
        given = other.units is not None
        return other.name_units(self.encoding_.names, self.units) if given else other.with_units(self.units)

    def _encode_rows(self, X: object) -> FloatArray:
        """Rows to predict or certify as the model reads them."""
        return encode_table(self, X)

    @property
    def _link(self) -> str:
        """What makes probabilities of scores; "none" where nothing does."""
        return str(getattr(self, "link_", "logit" if hasattr(self, "calibration_") else "none"))

    @property
    def _gives_probabilities(self) -> bool:
        """Whether probabilities say how likely each class is, and not a share of noisy copies or a score's place."""
        return self.rule == "mean" and self._link != "none"

    @property
    def _calibration(self) -> FloatArray:
        """Slope and shifts, which make of a score what the link takes."""
        return np.asarray(getattr(self, "calibration_", (1.0, 0.0)))

    def _read_cut(self) -> Cut:
        """What the score of two classes says about probabilities."""
        return Cut(self._link, *self._calibration.tolist())

    @property
    def _asked_threshold(self) -> float | None:
        """The probability that `decision_threshold` or `cost` asks for; None where neither does."""
        return read_threshold(getattr(self, "decision_threshold", None), getattr(self, "cost", None))

    @property
    def _costs(self) -> Costs | None:
        """What mistakes cost, as `cost` or `decision_threshold` says; None where all count the same."""
        return read_costs(getattr(self, "decision_threshold", None), getattr(self, "cost", None))


def make_trained_threat(norm: Any, l0: int, frozen: Sequence[Column], threat: Threat | None) -> Threat:
    """What a model was trained against, by its parameters."""
    if threat is None:
        return Threat(norm=norm, l0=l0, frozen=tuple(frozen))
    return threat if threat.norm != "auto" else replace(threat, norm=norm)


def make_imported_threat(ensemble: Model | None) -> Threat:
    """Changes in the norm of the noise; of trees that join columns in norm inf, which takes least to decide."""
    return Threat(norm=np.inf) if ensemble is not None and ensemble.has_trees else Threat()


class StoredModel(FittedModel):
    """A model as a file holds it: it predicts and certifies, and was checked where that depends on it."""

    def __init__(
        self,
        kind: str,
        ensemble: Model,
        noise: Noise | None,
        encoding: TableEncoding,
        training: Mapping[str, object],
        parameters: Mapping[str, Any],
        *,
        classes: Labels | None = None,
    ) -> None:
        vars(self).update(parameters)
        vars(self).update(training)
        self._stored_kind = kind
        self.ensemble_, self.noise_, self.encoding_ = ensemble, noise, encoding
        if classes is not None:
            self.classes_ = classes
        find_rule(self.rule)
        count_threads(self.n_jobs)
        _ = self.default_threat, self._asked_threshold  # refused where they make no sense

    @property
    def _kind(self) -> str:
        return self._stored_kind

    @property
    def default_threat(self) -> Threat:
        """As of the estimator that it was."""
        own: Any = vars(self)
        if "l0" in own:
            return make_trained_threat(own["norm"], own["l0"], own["frozen"], own["threat"])
        return make_imported_threat(self.ensemble_)
