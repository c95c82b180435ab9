"""What all estimators share: reading tables, the noise's units, threats by the names of columns, fitting as a whole.

Owns scikit-learn's habits, and what is certified where a noise, a rule or a threat is not given. What is asked of a
table's labels stands in `_classifier.py`; a trainer's face is one more file with a subclass and its `_train`, which
hands a table to a function of `derand.train`. Must not know labels or how anything is trained.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from derand._core.arrays import Cells, FloatArray, PlotAxes, Targets
from derand._core.finite import refuse_masked
from derand._core.origin import Frame, Origin, refuse_other_rows
from derand._core.progress import listen, print_line, tell
from derand._core.text import Facts
from derand._core.threads import count_threads
from derand._core.units import NamedUnits
from derand.auditing import Audit, audit
from derand.certificates import (
    Certificates,
    Intervals,
    ToleranceRadii,
    TreeSearch,
    check_request,
    find_rule,
    read_budget,
)
from derand.estimators._inputs import (
    check_whole,
    hint_columns,
    is_row_mapping,
    read_weights,
    refuse_double_names,
    refuse_one_row,
)
from derand.estimators._showing import as_table, draw_estimator, keep_densities, write_fitted
from derand.fitted import FittedModel
from derand.model import Model
from derand.noise import Gaussian, Noise, resolve_noise
from derand.perturbation import describe_unused
from derand.tables import ColumnWarning, TableEncoding, as_rows, describe_data_checks, is_frame, make_unseen, take_rows
from derand.threat import Threat, as_threats
from derand.train import SCALINGS, TrainingTable, measure_units

Columns = str | Sequence[str | int | bool] | Cells | None
"""Which columns are categorical: "from_dtype", None, names, numbers or a mask."""

DEFAULT_NOISE = Gaussian(0.25)


class Training(Protocol):
    """What a training function gives back, at least."""

    @property
    def model(self) -> Model: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


class Request(NamedTuple):
    """What is asked to be certified, in the words of the model; what was not given is the estimator's own."""

    rows: FloatArray
    noise: Noise | None
    threats: list[Threat]
    rule: str
    proof: str
    n_jobs: int | None
    search: TreeSearch

    @property
    def how(self) -> Facts:
        """By which rule, proof and threads, and how models with trees are searched."""
        return {"rule": self.rule, "proof": self.proof, "n_jobs": self.n_jobs, "search": self.search}


class CertifiedEstimator(FittedModel, BaseEstimator, ABC):
    """An estimator that is smoothed by noise and certified.

    Subclasses take the parameters `noise`, `scaling`, `categorical_features`, `rule` and `n_jobs`, refuse what makes no
    sense in `_check_parameters`, and train in `_fit`.
    """

    noise: Any
    scaling: str | None
    categorical_features: Columns
    verbose: bool = False
    min_rows_per_category: int | None = None
    _needs_noise = True
    """Whether it is trained under noise."""

    @property
    def _default_noise(self) -> Noise | None:
        """The noise where none is given."""
        return DEFAULT_NOISE

    @abstractmethod
    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        """Train, and say what there is to warn of."""

    def fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            Numbers, and categories (text, booleans) in categorical columns. Numbers must be finite or missing (NaN,
            null, an empty cell): a missing one is a cell of its own, on which noise does not act. A missing category
            teaches nothing.
        y : array-like of shape (n_rows,)
            Labels, of two kinds or more; finite numbers for a regressor.
        sample_weight : array-like of shape (n_rows,), optional
            Not negative; scaled to mean 1. Rows of weight 0 are left out.

        Returns
        -------
        self
        """
        return self._fit_or_leave(X, y, sample_weight, doubts=True)

    def _fit_or_leave(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None, *, doubts: bool) -> Self:
        """Train and warn; an interrupted fit, too, leaves the estimator as it was."""
        before = vars(self).copy()
        try:
            with self._listen():
                told = self._fit(X, y, sample_weight)
            for text in told:
                warnings.warn(text, stacklevel=3)  # the one place that warns: it points at the call of `fit`
            unfinished = self._describe_unfinished()
            if unfinished is not None:
                warnings.warn(unfinished, ConvergenceWarning, stacklevel=3)
            doubtful = self._doubt_columns(X, y) if doubts else None
            if doubtful is not None:
                warnings.warn(doubtful, ColumnWarning, stacklevel=3)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _describe_unfinished(self) -> str | None:
        """What is left to gain where training ended before it was done."""
        return None

    def _listen(self) -> AbstractContextManager[None]:
        """While a block runs, print what it tells of its progress, where that is asked for."""
        return listen(print_line if self.verbose else None)

    def _doubt_columns(self, X: object, y: ArrayLike) -> str | None:
        """What is doubtful about the columns of a frame: identifiers, dates and numbers as text, leaks."""
        if not is_frame(X):
            return None
        named = () if isinstance(self.categorical_features, str) else self.encoding_.categorical
        return describe_data_checks(X, y, named)

    def _begin_fit(self, X: object, y: ArrayLike, wanted: str) -> object:
        """The table to train on; parameters, targets and tables that make no sense are refused."""
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: give {type(self).__name__} {wanted}.")
        self._check_parameters()
        return self._check_table(X, reset=True)

    @staticmethod
    def _keep_weighted(
        X: object, target: Targets, sample_weight: ArrayLike | None
    ) -> tuple[object, Targets, FloatArray | None]:
        """The rows of positive weight, their targets and weights; all of them where there are no weights."""
        if sample_weight is None:
            return X, target, None
        weights = read_weights(sample_weight, target.size)
        counted = np.flatnonzero(weights)
        return take_rows(X, counted), target[counted], weights[counted]

    def _learn_encoding(self, X: object) -> tuple[TableEncoding, FloatArray]:
        """How a table that was checked is read, and its rows as the model is to read them."""
        encoding = TableEncoding.learn(X, self.categorical_features)
        matrix = encoding.encode_finite(X, may_miss=encoding.numerical)
        encoding.require_some(matrix)
        columns = f"{len(encoding.numerical):,} of numbers, {len(encoding.categories):,} of categories"
        tell(f"read {matrix.shape[0]:,} rows; columns: {columns}")
        return encoding.learn_whole(matrix), matrix

    def _keep_table(self, table: TrainingTable, encoding: TableEncoding) -> Noise | None:
        """Keep how tables are read and the noise in units of this one; the noise."""
        noise, units = self._scale_noise(table)
        self.encoding_, self.noise_ = encoding, noise
        self._seen = keep_densities(table.X, encoding)
        if noise is None:
            self.units_ = np.ones(table.n_features) if units is None else np.array(units)
        return noise

    def _ask_threats(self, l0: int | Sequence[int] | None, unseen: bool | None, threat: Threat | None) -> list[Threat]:
        """The threats that are asked for; what is not said is as in `default_threat`."""
        if threat is not None or (l0 is None and unseen is None):
            return as_threats(l0, unseen, self.default_threat if threat is None else threat)
        own = self.default_threat
        return [
            replace(own, l0=own.l0 if l0 is None else one.l0, unseen=own.unseen if unseen is None else one.unseen)
            for one in as_threats(l0, unseen, None)
        ]

    def decode_rows(self, rows: FloatArray, like: object = None) -> Frame:
        """Rows as the model reads them, such as witnesses, back in the words of the table that it was trained on.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
        like : certificates, attacks or a table of as many rows, or None
            Whose index is kept, and whose library makes the table (pandas, polars or pyarrow): the table that was
            certified, or what came of it, such as `certificates` for `certificates.witness`.

        Returns
        -------
        pandas DataFrame, or that of the library of `like`; an array of objects where the table had no names
            A category that training did not see, or a missing one, is None. Columns that held whole numbers alone in
            training, and do so here, are integers.
        """
        check_is_fitted(self)
        return self.encoding_.decode(rows, None if like is None else Origin.find(like))

    def _ask(
        self,
        X: object,
        threats: Sequence[Threat],
        rule: str | None,
        noise: Noise | str | float | None,
        proof: str = "best",
        n_jobs: int | None = None,
        budget: int | None = None,
    ) -> Request:
        """What is asked, refused before rows are read where it makes no sense."""
        check_is_fitted(self)
        search = TreeSearch(read_budget(budget), self._library)
        named = [self._name_columns(one) for one in threats]
        chosen = self._choose_noise(noise, *named[:1])
        check_request(rule or self.rule, proof, chosen, named)
        threads = self.n_jobs if n_jobs is None else n_jobs
        unused = describe_unused(named[0], self.ensemble_, self.encoding_.names) if named else None
        if unused is not None:
            warnings.warn(unused, stacklevel=3)
        return Request(self._encode_rows(X), chosen, named, rule or self.rule, proof, threads, search)

    def audit(
        self,
        X: object,
        certificates: Certificates | Intervals | ToleranceRadii,
        *,
        rows: int | None = 200,
        random_state: int = 0,
    ) -> Audit:
        """Prove once more, by other code and in ball arithmetic, what was certified about these rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows that were certified.
        certificates : Certificates, Intervals or ToleranceRadii
            As `certify`, `certify_interval` or `certify_radius` gave them.
        rows, random_state
            As for `derand.audit`.

        Returns
        -------
        Audit
        """
        refuse_other_rows(X, certificates, "X")
        with self._listen():
            return audit(self.ensemble_, self._encode_rows(X), certificates, rows=rows, random_state=random_state)

    def _name_changed(self, rows: FloatArray, origin: Origin | None) -> object:
        """Changed rows in the words of the table that they came from, where that is known."""
        encoding = self.encoding_
        if encoding.names is None and not encoding.categories:
            return rows
        return encoding.decode(rows, origin, unseen=make_unseen)  # a missing category may be told apart

    def _encode_rows(self, X: object) -> FloatArray:
        """Rows to predict or certify as the model reads them; one row may be a mapping of columns to values."""
        check_is_fitted(self)
        table = as_table(X, self.encoding_) if is_row_mapping(X) else X
        return super()._encode_rows(self._check_table(table, reset=False))

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before any data is read."""
        if self.scaling is not None and self.scaling not in SCALINGS:
            known = ", ".join(map(repr, SCALINGS[:-1]))
            raise ValueError(f"`scaling` must be None, {known} or {SCALINGS[-1]!r}, got {self.scaling!r}.")
        if not isinstance(self.verbose, bool | int):
            raise ValueError(f"`verbose` must be True or False, got {self.verbose!r}.")
        if self.min_rows_per_category is not None:
            check_whole("min_rows_per_category", self.min_rows_per_category, 1)
        count_threads(self.n_jobs)
        find_rule(self.rule)
        self._check_noise()

    def _check_noise(self) -> None:
        """Refuse what is no noise, and that there is none where there must be one."""
        if self._make_noise() is not None:
            return
        if self._needs_noise:
            raise ValueError(
                f"`noise` of {type(self).__name__} must be a noise, got 'none': it is trained under noise. To certify "
                "the model without smoothing, fit it and use `certify(X, noise='none', rule='mean')`."
            )
        if self.rule == "vote":
            default = "" if self.noise is not None else " It was not given, which is none here."
            raise ValueError(
                "`noise` must not be 'none' under the rule 'vote', which counts noisy copies: give a noise such as "
                f"'gaussian:0.25', or use rule='mean'.{default}"
            )

    def _make_noise(self) -> Noise | None:
        """The noise that is asked for, without the units of `scaling`."""
        return resolve_noise(self.noise, self._default_noise, self.default_threat.norm)

    def _check_table(self, X: Frame, reset: bool) -> object:
        """X as a frame, or as an array of two dimensions whose cells are not looked at yet."""
        refuse_masked(X)
        if is_frame(X):
            refuse_double_names(X)
            try:
                validate_data(self, X, reset=reset, skip_check_array=True)
            except ValueError as error:
                raise ValueError(f"{error}{hint_columns(X, getattr(self, 'feature_names_in_', None))}") from None
            if 0 in X.shape:
                raise ValueError(f"Found array with 0 sample(s) or 0 feature(s) (shape={X.shape}) in `X`.")
            return X
        refuse_one_row(X)
        return validate_data(self, as_rows(X), reset=reset, dtype=None, ensure_all_finite=False)

    def _scale_noise(self, table: TrainingTable) -> tuple[Noise | None, tuple[float, ...] | None]:
        """The noise with the units that `scaling` asks for, and these units."""
        noise = self._make_noise()
        own = None if noise is None else noise.units
        if noise is not None and isinstance(own, NamedUnits):
            measured = None if self.scaling is None else measure_units(table, self.scaling).tolist()
            noise = noise.name_units(table.names, measured)
            return noise, noise.units
        if self.scaling is None:
            if own is not None and len(own) != table.n_features:
                raise ValueError(
                    f"`units` of the noise must have one entry per column of `X`, {table.n_features} in all, "
                    f"got {len(own)}."
                )
            return noise, own
        if own is not None:
            raise ValueError(
                f"`scaling` is {self.scaling!r} and the noise has `units` of its own: give one of the two."
            )
        units = tuple(measure_units(table, self.scaling).tolist())
        return (None if noise is None else noise.with_units(units)), units

    @property
    @abstractmethod
    def _points(self) -> float:
        """How many whole scores are one unit of what is shown."""

    @property
    @abstractmethod
    def _height(self) -> str:
        """What that unit is called."""

    def plot(
        self,
        columns: str | int | Sequence[str | int] | None = None,
        X: object = None,
        *,
        max_columns: int = 12,
        radius: float | None = None,
        threat: Threat | None = None,
    ) -> PlotAxes:
        """Draw what the model does with each column, the most important first.

        A number is a line, its mean under noise where there is any; a category is bars, two columns that interact are
        a map. Heights are measured so that all columns add up to the distance from the threshold; of a number as the
        answer, from what the column adds on average.

        Parameters
        ----------
        columns : name, number, sequence of these, or None
            Which columns, in this order; None for all that matter.
        X : array or frame of shape (n_rows, n_features), or None
            Rows whose density is drawn beneath, and by which columns are ranked; None for the training rows, of which
            `fit` keeps counts in forty bins (`save` does not write them).
        max_columns : int
            How many functions are drawn at most.
        radius : float or None
            Of the band: between the least and the largest height that a change of the column alone by less than this
            can reach. None is what the estimator was trained for, or else the magnitude of its noise.
        threat : Threat or None
            Its norm, units, limits and frozen columns hold for the band; None is `default_threat`.

        Returns
        -------
        array of matplotlib Axes
            Their figure is `axes[0].figure`.
        """
        check_is_fitted(self)
        asked = self._name_columns(threat or self.default_threat)
        return draw_estimator(self, columns, X, max_columns=max_columns, radius=radius, threat=asked)

    def _repr_html_inner(self) -> str:
        """scikit-learn's page, and what was learnt beneath it."""
        return self._add_fitted(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: object) -> dict[str, object]:
        bundle: Facts = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._add_fitted(bundle["text/html"])
        return bundle

    def _add_fitted(self, page: str) -> str:
        return page + write_fitted(self) if hasattr(self, "ensemble_") else page

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags
