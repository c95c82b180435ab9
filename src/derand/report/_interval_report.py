"""The user's door to reports on numbers: `IntervalReport`. Summarises on first use, renders on demand."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.certificates import Intervals, ToleranceRadii, certify_interval_checked, certify_radius_checked
from derand.noise import Noise
from derand.report import _interval_render
from derand.report._checksums import Marks, list_checksums
from derand.report._inputs import Subject, check_count, name_features, name_rows
from derand.report._interval_inputs import NumberInputs, NumberOptions
from derand.report._interval_summary import summarize_intervals
from derand.report._interval_types import IntervalSummary
from derand.report._writing import WrittenReport
from derand.threat import Threat


class IntervalReport(WrittenReport):
    """What is proven about the answers of a regressor on some rows, for people to read.

    Parameters
    ----------
    reg : fitted regressor of derand
    X : array or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), optional
        True numbers. Without them, what needs them is left out and the report says so.
    radius : float or None
        Of the intervals; None is what the regressor was trained for, and nothing where limits alone say what may
        change.
    l0 : int, optional
        How many categorical features may change at the same time; not beside `threat`.
    threat : Threat, optional
        What may change; the regressor's `default_threat`.
    rule, noise, proof
        As for `certify_interval` of the regressor.
    title : str, optional
    feature_names : sequence of str, optional
        Names to show, where the regressor was trained without.
    row_names : sequence, optional
        What the rows are called, such as by an id; by default the index of a pandas frame that has one of its own, else
        the number of the row.
    tolerance : float, optional
        By how much answers may move, in units of the target: the report tells within which radius they do not move
        farther, for rows of its table. By default a round number near the mean error, or near half of the moves where
        there are no true numbers.
    max_rows : int
        Rows of the table; of more rows a random sample is listed.
    n_detailed : int
        Rows of the picture, and those whose radius for the tolerance is found; of more rows a random sample.
    seed : int
        Of the samples.
    configuration : str, optional
        The file that says how the report was made, as it is to be named there: `derand run` gives its own.
    what_if : bool
        Whether the page has the part “What if”, which holds the model's tables; False keeps them out of the report.
    marks : mapping, optional
        As for CertificateReport.
    notes, left_out : sequence of str
        What else a reader must know of the model, at the top, and what else is left out: `derand run` tells of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from derand import AdditiveRegressor, IntervalReport
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = AdditiveRegressor(radius=0.25, regularization=10.0).fit(X[:300], y[:300])
    >>> report = IntervalReport(reg, X[300:], y[300:], radius=0.25)
    >>> report.to_dict()["data"]["n_rows"]
    142
    >>> print(report.to_markdown().splitlines()[0])
    # Interval report
    """

    def __init__(
        self,
        reg: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        radius: float | None = None,
        l0: int | None = None,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
        proof: str = "best",
        title: str | None = None,
        feature_names: Sequence[str] | None = None,
        row_names: Sequence[Any] | None = None,
        tolerance: float | None = None,
        max_rows: int = 100_000,
        n_detailed: int = 300,
        seed: int = 0,
        configuration: str | None = None,
        what_if: bool = True,
        marks: Marks | None = None,
        notes: Sequence[str] = (),
        left_out: Sequence[str] = (),
    ) -> None:
        if not hasattr(reg, "certify_interval") or not hasattr(reg, "ensemble_"):
            raise TypeError(f"`reg` must be a fitted regressor of derand, got {type(reg).__name__}.")
        check_count("max_rows", max_rows, 1)
        check_count("n_detailed", n_detailed, 1)
        if tolerance is not None and (isinstance(tolerance, bool) or not 0 < tolerance < math.inf):
            raise ValueError(f"`tolerance` must be a positive, finite number, got {tolerance!r}.")
        start = time.perf_counter()
        found = reg.certify_interval(X, radius, l0=l0, threat=threat, rule=rule, noise=noise, proof=proof)
        seconds = time.perf_counter() - start
        if not len(found):
            raise ValueError("`X` must hold at least one row, got none.")
        names = name_features(reg.ensemble_, reg.encoding_.names if feature_names is None else feature_names)
        subject = Subject(
            reg.ensemble_, found.noise, np.empty(0), names, reg.encoding_.categories, reg, reg.encoding_.whole
        )
        from derand.estimators import encode_rows

        matrix = encode_rows(reg, X)
        self._inputs = NumberInputs(
            subject,
            matrix,
            _read_targets(y, found),
            found,
            partial(_certify_part, reg, found, proof),
            partial(_certify_tolerance, reg, found, proof),
            seconds,
            reg.encoding_.find_whole(matrix),
            name_rows(X, row_names, len(found)),
        )
        self._reg, self._marks = reg, dict(marks or {})
        self._options = NumberOptions(
            title, max_rows, n_detailed, seed, configuration, tolerance, what_if, tuple(notes), tuple(left_out)
        )

    @cached_property
    def _summary(self) -> IntervalSummary:
        found = summarize_intervals(self._inputs, self._options)
        return {**found, "checksums": list_checksums(self._marks, found["data"]["sha256"], self._reg)}

    def to_dict(self) -> IntervalSummary:
        """All that the report says, as plain numbers, text, lists and dicts; computed once."""
        return self._summary

    def to_json(self) -> str:
        """The dict as JSON; infinity is the text "inf"."""
        return _interval_render.to_json(self._summary)

    def to_html(self) -> str:
        """One HTML page with everything inside."""
        return _interval_render.to_html(self._summary)

    def to_markdown(self) -> str:
        """The report in short, as Markdown."""
        return _interval_render.to_markdown(self._summary)

    def to_latex(self) -> str:
        """The table of widths, as LaTeX (needs the package booktabs)."""
        return _interval_render.to_latex(self._summary)

    @property
    def title(self) -> str:
        """What stands above it."""
        return self._summary["title"]

    def __repr__(self) -> str:
        return f"<IntervalReport: {self._inputs.n_rows} rows; write(path), open(), to_dict()>"


def _certify_part(reg: Any, found: Intervals, proof: str, rows: FloatArray, radius: float) -> Intervals:
    """Intervals of encoded rows under the same threat, at another radius."""
    return certify_interval_checked(
        reg.ensemble_, rows, found.noise, found.threat, radius=radius, rule=found.rule, proof=proof, n_jobs=reg.n_jobs
    )


def _certify_tolerance(reg: Any, found: Intervals, proof: str, rows: FloatArray, tolerance: float) -> ToleranceRadii:
    """Radii of encoded rows under the same threat, within which answers move by the tolerance at most."""
    return certify_radius_checked(
        reg.ensemble_,
        rows,
        found.noise,
        found.threat,
        tolerance=tolerance,
        rule=found.rule,
        proof=proof,
        n_jobs=reg.n_jobs,
    )


def _read_targets(y: ArrayLike | None, found: Intervals) -> FloatArray | None:
    if y is None:
        return None
    targets = np.asarray(y, dtype=np.float64)
    if targets.shape != (len(found),) or not np.isfinite(targets).all():
        raise ValueError(
            f"`y` must hold one finite number per row, {len(found)} in all, got shape {targets.shape}"
            f"{'' if np.isfinite(targets).all() else ' with gaps or infinity'}."
        )
    return targets
