"""Models of other libraries as fitted estimators of ours: `from_model`.

Owns the comparison of both on the spot: a model that does not answer as the library's is never handed out. Must not
know any library (`derand.convert`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from derand._core.arrays import FloatArray
from derand._core.origin import Fitted, Frame
from derand._core.text import Facts
from derand.certificates import expect_margins, measure_margins, refuse_noise_on_trees
from derand.convert import (
    Reading,
    adopt_table,
    compare_scores,
    decode_rows,
    has_own_threshold,
    is_explained,
    probe_rows,
    read_model,
    unwrap_threshold,
)
from derand.estimators._base import CertifiedEstimator, Columns, Training
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._inside import assemble
from derand.estimators._library import Predictor, ask_library
from derand.estimators._regressor import CertifiedRegressor
from derand.fitted import Cut, FittedModel, compute_probabilities, make_imported_threat, read_threshold
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.tables import as_rows, take_rows
from derand.threat import Threat
from derand.train import SCALINGS, RegressionTable, RegressionTraining, TrainingTable, measure_units

_NOT_MOVED = {"decision_threshold": None, "cost": None}
_FEW_PROBES = 200
_PROBES = 2_000
"""Rows on which every import is compared with the library."""


class ImportedEstimator(CertifiedEstimator):
    """What classifiers and regressors that `from_model` made share: they are not trained here."""

    ensemble_: Any
    scaling: str | None = None
    categorical_features: Columns = None
    _needs_noise = False

    def __init__(
        self,
        *,
        noise: Noise | str | float | None = None,
        rule: str = "mean",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.noise = noise
        self.rule = rule
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def default_threat(self) -> Threat:
        """Changes in the norm of the noise; of trees that join columns in norm inf, which takes least to decide."""
        return make_imported_threat(getattr(self, "ensemble_", None))

    @property
    def _default_noise(self) -> Noise | None:
        return None

    def __getstate__(self) -> Facts:
        """Without the library's own object: copies and pickles do not ask it."""
        state: Facts = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_library"}

    def _refuse_training(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} is a model that was trained elsewhere and cannot be fitted: train it with its own "
            "library and call `from_model` again, or let SmoothedClassifier or SmoothedRegressor train it."
        )

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        self._refuse_training()


class ImportedClassifier(ImportedEstimator, CertifiedClassifier):
    """A fitted classifier of another library, to be certified as it is, or smoothed; `from_model` makes it.

    Parameters
    ----------
    noise : Noise, str or None
        Such as "gaussian:0.25", which smooths it; "none", which is also the default, for the model as deployed.
    rule : {"mean", "vote"}
        How `predict` answers; without noise "mean" is the model's own answer.
    n_jobs : int or None
    verbose : bool
        Say on standard error what is being done.
    decision_threshold : float or None
        From which probability of `classes_[1]` on it is the answer, of two classes; None is where the model cuts.
    cost : dict or None
        The same by what mistakes cost, such as {"false_positive": 1, "false_negative": 5}.

    Attributes
    ----------
    ensemble_ : AdditiveEnsemble
        Its raw score is the library's within `ensemble_.score_error / ensemble_.levels`, which certificates cover.
    classes_ : array of shape (n_classes,)
    noise_ : Noise or None
    link_ : {"logit", "share", "none"}
        What probabilities are made of raw scores.
    source_ : str
        What was read, such as "xgboost.XGBClassifier".
    calibration_ : array of shape (2,)
        Slope and shift from the decision's score to that of `predict_proba`; only where they are not 1 and 0, as of a
        threshold that was moved.
    decision_threshold_ : float
        The probability of `classes_[1]` from which on it is the answer; only where the score is one (`link_`).
    """

    class_weight = None
    _takes_several_classes = True
    link_: str
    source_: str

    def __init__(
        self,
        *,
        noise: Noise | str | float | None = None,
        rule: str = "mean",
        n_jobs: int | None = None,
        verbose: bool = False,
        decision_threshold: float | None = None,
        cost: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(noise=noise, rule=rule, n_jobs=n_jobs, verbose=verbose)
        self.decision_threshold = decision_threshold
        self.cost = cost

    def _read_cut(self) -> Cut:
        """What the library makes of raw scores."""
        if self.classes_.size > 2:
            raise ValueError(
                f"Thresholds are moved of two classes, got {self.classes_.size}: weigh the classes in training."
            )
        if self.link_ == "none":
            raise ValueError(
                f"The threshold of {self.source_} cannot be moved to a probability: its raw score is none, since it "
                "has no probabilities or makes them in another way. Weigh the classes in training, or take a model "
                "whose scores are logarithms of odds, such as LogisticRegression or AdditiveClassifier."
            )
        return FittedModel._read_cut(self)

    @property
    def score_is_log_odds(self) -> bool:  # type: ignore[override]
        """Whether raw scores are logarithms of odds: reports name their unit."""
        return bool(self.link_ == "logit")

    def _train(self, table: TrainingTable, noise: Any) -> Training:
        self._refuse_training()

    def decision_function(self, X: object) -> FloatArray:
        """The raw score, expected under noise; by the rule "vote" the signed radius.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of several classes (n_rows, n_classes)
        """
        if self.rule != "mean":
            return super().decision_function(X)
        rows = self._encode_rows(X)
        measure = measure_margins if self.classes_.size == 2 else expect_margins
        return measure(self.ensemble_, rows, self.noise_)

    def predict_proba(self, X: object) -> FloatArray:
        """Probabilities as the library makes them of raw scores, those expected under noise: as calibrated as its own.

        By the rule "vote" they are shares of noisy copies, no probabilities of the classes. Where the library
        has no probabilities, or makes them in another way than by a logistic function, a softmax or shares of trees
        (`link_` is "none"), they say where the score stands between its extremes; of several classes they are a softmax
        of raw scores.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        if self.rule != "mean" or (self.link_ == "none" and self.classes_.size == 2):
            return super().predict_proba(X)
        return compute_probabilities(self, self._encode_rows(X))


class ImportedRegressor(ImportedEstimator, CertifiedRegressor):
    """A fitted regressor of another library, to be certified as it is, or smoothed; `from_model` makes it.

    Parameters and attributes are those of ImportedClassifier, without classes.
    """

    def _train(self, table: RegressionTable, noise: Any) -> RegressionTraining:
        self._refuse_training()


def from_model(
    model: object,
    X: object = None,
    *,
    noise: Noise | str | float | None = None,
    rule: str = "mean",
    scaling: str | None = "auto",
    classes: ArrayLike | None = None,
    n_jobs: int | None = None,
    decision_threshold: float | None = None,
    cost: Mapping[str, float] | None = None,
) -> Any:
    """A fitted model of another library as an estimator of ours, which certifies it.

    Parameters
    ----------
    model : fitted model
        Of interpret, XGBoost, LightGBM, CatBoost or scikit-learn; see docs/import.md for what can be read exactly. What
        cannot is refused with the reason. A Pipeline is read in the columns that it is given, where its steps act on
        each of them by itself. An estimator of this package is given back as it is. A fitted TunedThresholdClassifierCV
        or FixedThresholdClassifier is read with the threshold that it found, also around an AdditiveClassifier.
    X : array or frame of shape (n_rows, n_features), or None
        Rows such as those it was trained on. They give names to columns where the library keeps none, tell text from
        numbers where it keeps the text of categories alone (interpret), give the units in which radii and noise count
        (`scaling`), and raw scores are compared on them, too.
    noise : Noise, str or None
        "none", which is also the default, for the model as deployed; `certify` takes another one.
    rule : {"mean", "vote"}
    scaling : {"auto", "standard", "range", "robust"} or None
        What counts as a change of 1 of each column, measured on X; None for 1 in its own units. "auto" is "standard",
        standard deviations, where X is given, else None.
    classes : array-like of shape (n_classes,), or None
        Labels in the order of the classes, where the library knows 0, 1, ... alone.
    n_jobs : int or None
    decision_threshold : float or None
        From which probability of `classes_[1]` on it is the answer, for two classes and models whose scores are
        probabilities; None is where the model cuts. The score's threshold is moved, before anything is certified.
    cost : dict or None
        The same by what mistakes cost, such as {"false_positive": 1, "false_negative": 5}.

    Returns
    -------
    ImportedClassifier or ImportedRegressor
        Fitted: `certify`, `attack`, `explain`, `audit`, `save` and reports work.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from derand import Threat, from_model
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = from_model(GradientBoostingClassifier(max_depth=1, random_state=0).fit(X, y))
    >>> certificates = model.certify(X, threat=Threat(norm=None, limits={"mean radius": "5%"}))
    >>> bool(certificates.label.shape == y.shape)
    True
    """
    asked: Facts = {"decision_threshold": decision_threshold, "cost": cost}
    if isinstance(model, CertifiedEstimator):
        return _cut_own(_give_back(model, noise, rule, scaling), asked)
    wrapped = unwrap_threshold(model)
    if wrapped is not None and isinstance(wrapped.inner, CertifiedClassifier):
        moved = wrapped.inner._cut_as_wrapped(wrapped, type(model).__name__)
        return _cut_own(_give_back(moved, noise, rule, scaling), asked)
    reading = read_model(model)
    if wrapped is not None and reading.noise is not None:
        raise ValueError(
            f"{type(model).__name__} moves the threshold of {reading.source}, which is smoothed: give the pipeline "
            "itself, and `decision_threshold` or `cost` beside it."
        )
    own_classes = reading.classes
    if classes is not None:
        reading = _name_classes(reading, classes)
    if scaling == "auto":
        scaling = None if X is None else "standard"
    estimator = from_reading(reading, X, noise=noise, rule=rule, scaling=scaling, n_jobs=n_jobs, **asked)
    if has_own_threshold(model):
        _require_labels(model, reading, X)
    if own_classes is not None and estimator.ensemble_.has_trees and asked == _NOT_MOVED:
        probes = probe_rows(reading, estimator.ensemble_, _FEW_PROBES)
        estimator._library = ask_library(
            cast(Predictor, model), reading.encoding, own_classes, estimator.ensemble_, probes
        )
    return estimator


def _cut_own(model: CertifiedEstimator, asked: Mapping[str, Any]) -> CertifiedEstimator:
    """A fitted estimator of this package, or a copy that cuts where it is asked to."""
    if read_threshold(**asked) is None:
        return model
    if not isinstance(model, CertifiedClassifier):
        raise ValueError(f"`decision_threshold` and `cost` are for classes: a {type(model).__name__} gives numbers.")
    return model._with_cut(**asked)


def _give_back(model: CertifiedEstimator, noise: object, rule: str, scaling: str | None) -> CertifiedEstimator:
    """An estimator of this package, fitted, as it is."""
    check_is_fitted(model)
    if (noise, rule, scaling) != (None, "mean", "auto"):
        raise ValueError(
            f"`model` is a {type(model).__name__} of this package, which keeps the noise, rule and scaling that it was "
            "fitted with: leave them out, and give others to `certify` or to a new fit."
        )
    return model


def _name_classes(reading: Reading, classes: ArrayLike) -> Reading:
    """The same model with other labels."""
    labels = np.asarray(classes)
    count = 0 if reading.classes is None else reading.classes.size
    if labels.shape != (count,) or np.unique(labels).size != count:
        what = f"{count} different labels, in the order of the classes" if count else "None for a regressor"
        raise ValueError(f"`classes` must be {what}, got {classes!r}.")
    return replace(reading, classes=labels)


def from_reading(
    reading: Reading,
    X: Frame,
    *,
    noise: Noise | str | float | None,
    rule: str,
    scaling: str | None,
    n_jobs: int | None,
    decision_threshold: float | None = None,
    cost: Mapping[str, float] | None = None,
) -> ImportedClassifier | ImportedRegressor:
    """The estimator of what an importer read, compared with the library on the spot."""
    if reading.classes is None and read_threshold(decision_threshold, cost) is not None:
        raise ValueError(f"`decision_threshold` and `cost` are for classes: {reading.source} gives numbers.")
    if X is not None:
        reading = adopt_table(reading, X)
    ensemble, encoding = reading.build(), reading.encoding
    noise = reading.noise if noise is None else noise
    kind: Any = ImportedRegressor if reading.classes is None else ImportedClassifier
    training = {"link_": reading.link, "source_": reading.source, **_list_refusals(reading)}
    if reading.calibration != (1.0, 0.0):
        training["calibration_"] = np.array(reading.calibration)
    parameters: Facts = {"noise": noise, "rule": rule, "n_jobs": n_jobs}
    if reading.classes is not None:
        parameters |= {"decision_threshold": decision_threshold, "cost": cost}
    estimator: ImportedClassifier | ImportedRegressor = assemble(
        kind, ensemble, None, encoding, training, parameters, classes=reading.classes
    )
    rows = None if X is None else estimator._encode_rows(X)
    if rows is not None:
        estimator.encoding_ = encoding.learn_whole(rows)
    units = _choose_units(estimator, rows, scaling)
    own = estimator._make_noise()
    if own is not None:
        refuse_noise_on_trees(ensemble)
        given = own.units is not None or units is None
        own = own.name_units(encoding.names, units) if given else own.with_units(units)
    estimator.noise_ = own
    estimator.units_ = np.ones(encoding.n_features) if units is None else np.array(units)
    _require_parity(reading, ensemble, rows)
    if isinstance(estimator, ImportedClassifier):
        estimator._move_as_asked()
    return estimator


def _list_refusals(reading: Reading) -> dict[str, object]:
    """What the library refuses in a table, where it refuses anything."""
    found = {
        "refuses_unseen_": [column for column, is_gap in reading.refused if not is_gap],
        "refuses_gaps_": [column for column, is_gap in reading.refused if is_gap],
        "precise_columns_": list(reading.precise),
    }
    return {name: np.array(columns) for name, columns in found.items() if columns}


def _require_parity(reading: Reading, ensemble: AdditiveEnsemble, rows: FloatArray | None) -> None:
    """Refuse a reading whose raw scores are not the library's, on every edge and one step beside it."""
    if reading.raw_scores is None:
        return
    for probes in (probe_rows(reading, ensemble, _PROBES), rows):
        if probes is None:
            continue
        if not is_explained(reading, ensemble, probes[:_PROBES]):
            found = compare_scores(reading, ensemble, probes[:_PROBES])
            raise ValueError(
                f"The raw scores of {reading.source} differ by {found:.3g} from what was read of it, more than "
                "arithmetic explains: this model has something that the importer does not know, and cannot be "
                "certified. Please report it with the versions of both libraries."
            )


def _require_labels(model: Fitted, reading: Reading, X: object) -> None:
    """Refuse a reading whose side of the threshold is not the answer of the library, wherever arithmetic decides it."""
    ensemble, tables = reading.build(), []
    if X is not None:
        table = as_rows(X)
        tables.append(take_rows(table, np.arange(min(table.shape[0], _PROBES))))
    if not reading.encoding.categories:  # libraries want their own kinds of columns for these
        tables.append(decode_rows(reading.encoding, probe_rows(reading, ensemble, _PROBES)))
    for table in tables:
        rows = reading.encoding.encode(table)
        lead = ensemble.score(rows) - (ensemble.threshold or 0)
        is_sure = np.abs(lead) > ensemble.bound_errors(rows)
        is_one = np.asarray(model.predict(table)) == model.classes_[1]
        if ((lead > 0) != is_one)[is_sure].any():
            raise ValueError(
                f"{type(model).__name__} answers otherwise than the scores of {reading.source} above its threshold: "
                "it cannot be certified. Please report it with the version of scikit-learn."
            )


def _choose_units(
    estimator: CertifiedEstimator, rows: FloatArray | None, scaling: str | None
) -> tuple[float, ...] | None:
    if scaling is None:
        return None
    if scaling not in SCALINGS:
        raise ValueError(f"`scaling` must be None or one of {', '.join(map(repr, SCALINGS))}, got {scaling!r}.")
    if rows is None:
        raise ValueError(f"`scaling` is {scaling!r}, which is measured on rows: give `X`, such as the training rows.")
    codes = {column: len(values) for column, values in estimator.encoding_.categories.items()}
    table = TrainingTable(rows, np.zeros(len(rows), dtype=np.uint8), np.ones(2), None, codes, None)
    units = tuple(measure_units(table, scaling).tolist())
    assert all(map(math.isfinite, units))
    return units
