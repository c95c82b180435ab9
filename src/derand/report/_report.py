"""The user's door: `CertificateReport`. Summarises on first use, renders on demand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from derand.noise import Noise
from derand.report import _render
from derand.report._checksums import Marks
from derand.report._groups import find_groups
from derand.report._inputs import Groups, Request, Training, check_count, read_inputs, read_subject
from derand.report._other import read_other
from derand.report._summarize import Options, summarize
from derand.report._types import ReportSummary
from derand.report._writing import WrittenReport
from derand.threat import Threat


class CertificateReport(WrittenReport):
    """What is proven about a model on some rows, for people to read.

    Parameters
    ----------
    clf : fitted classifier of derand, AdditiveEnsemble or WeightedVote
    X : array or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), optional
        True labels. Without them, what needs them is left out and the report says so.
    X_train, y_train : training rows and labels, optional
        Then a twin of the classifier is trained on them without noise, as a baseline. Otherwise the baseline is the
        most frequent label.
    groups : column name or number, list of those, or dict, optional
        For which subgroups robustness is compared. The values of a dict are one group per row, or a column.
    radius : float, optional
        The radius that the text speaks of; by default 0.25, and 1 in norm 0, whatever the model and the rows, so that
        reports can be compared.
    l0 : int, optional
        Up to how many categorical features may change; 3, or as many as there are. Not beside `threat`.
    title : str, optional
    noise : Noise or str
        For a bare model only: a classifier has its own. "none", for both, is the model as deployed, by the rule
        "mean".
    rule : {"vote", "mean"}, optional
        How the answer is found; the classifier's own, "vote" for a bare model.
    proof : {"best", "paper"}
        What may prove the radius of a vote.
    threat : Threat, optional
        What may change: norm, units, number of categories, frozen columns, limits and domains. With
        `Threat(norm=None, limits=...)` the report says which answers can be flipped within the limits, and how.
    feature_names : sequence of str, optional
        Names to show, where the model was trained without.
    row_names : sequence, optional
        What the rows are called, such as by an id; by default the index of a pandas frame that has one of its own, else
        the number of the row.
    max_rows : int
        Rows of the interactive table; of more rows the weakest and a random sample are shown.
    n_detailed : int
        How many of them have the law of their score and what pushes them in the page: the weakest, and a random sample.
    n_explained : int
        How many of the weakest rows are explained in full.
    n_shapes : int
        Of how many features the shapes are shown, the most important first.
    seed : int
        Of the sample.
    configuration : str, optional
        The file that says how the report was made, as it is to be named there: `derand run` gives its own.
    what_if : bool
        Whether the page has the part “What if”, which holds the model's tables; False keeps them out of the report.
    compare : fitted classifier of derand, optional
        A second model that stands beside the first: on the same rows, against the same changes.
    compare_name : str, optional
        What it is called.
    marks : mapping, optional
        Files that the report was made from, as `derand.storage.mark_file` returns them, by what they hold: "model",
        "data", "training data", "other model". Their checksums are told; without, that of the model as it would be
        saved.
    notes, left_out : sequence of str
        What else a reader must know of the model, at the top, and what else is left out: `derand run` tells of columns.

    Examples
    --------
    >>> from derand import StumpClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"]
    >>> report = CertificateReport(StumpClassifier(noise="gaussian:0.5").fit(X, y), X, y)
    >>> report.to_dict()["radii"]["accuracy"]
    1.0
    >>> print(report.to_markdown().splitlines()[0])
    # Certificate report
    """

    def __init__(
        self,
        clf: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        X_train: Any = None,
        y_train: ArrayLike | None = None,
        groups: Groups | None = None,
        radius: float | None = None,
        l0: int | None = None,
        title: str | None = None,
        noise: Noise | str | float | None = None,
        rule: str | None = None,
        proof: str = "best",
        threat: Threat | None = None,
        feature_names: Sequence[str] | None = None,
        row_names: Sequence[Any] | None = None,
        max_rows: int = 100_000,
        n_detailed: int = 300,
        n_explained: int = 5,
        n_shapes: int = 24,
        seed: int = 0,
        configuration: str | None = None,
        what_if: bool = True,
        compare: Any = None,
        compare_name: str | None = None,
        marks: Marks | None = None,
        notes: Sequence[str] = (),
        left_out: Sequence[str] = (),
    ) -> None:
        if (X_train is None) != (y_train is None):
            missing = "y_train" if y_train is None else "X_train"
            raise ValueError(f"`X_train` and `y_train` go together, but `{missing}` is missing.")
        check_count("max_rows", max_rows, 1)
        check_count("n_detailed", n_detailed, 1)
        check_count("n_explained", n_explained, 0)
        check_count("n_shapes", n_shapes, 0)
        request = Request(l0, rule, proof, threat)
        subject = read_subject(clf, noise, feature_names)
        if groups is not None:  # refused before any work
            find_groups(subject.names, groups, X.shape[0] if hasattr(X, "shape") else len(X))
        self._inputs = read_inputs(subject, X, y, request=request, row_names=row_names)
        other = None if compare is None else read_other(compare, X, self._inputs, request, compare_name)
        self._options = Options(
            title=title,
            training=None if y_train is None else Training(X_train, y_train),
            groups=groups,
            radius=_as_radius(radius),
            max_rows=max_rows,
            n_detailed=n_detailed,
            n_explained=min(n_explained, max_rows),
            n_shapes=n_shapes,
            seed=seed,
            configuration=configuration,
            compare=other,
            marks=dict(marks or {}),
            what_if=what_if,
            notes=tuple(notes),
            left_out=tuple(left_out),
        )

    @cached_property
    def _summary(self) -> ReportSummary:
        return summarize(self._inputs, self._options)

    def to_dict(self) -> ReportSummary:
        """All that the report says, as plain numbers, text, lists and dicts; computed once."""
        return self._summary

    def to_json(self) -> str:
        """The dict as JSON; infinity is the text "inf"."""
        return _render.to_json(self._summary)

    def to_html(self) -> str:
        """One HTML page with everything inside."""
        return _render.to_html(self._summary)

    def to_markdown(self) -> str:
        """The report in short, as Markdown."""
        return _render.to_markdown(self._summary)

    def to_latex(self) -> str:
        """The table of certified accuracy, as LaTeX (needs the package booktabs)."""
        return _render.to_latex(self._summary)

    @property
    def title(self) -> str:
        """What stands above it."""
        return self._summary["title"]

    def __repr__(self) -> str:
        inputs = self._inputs
        return f"<CertificateReport: {inputs.n_rows} rows; write_html(path), open(), to_dict()>"


def _as_radius(radius: object) -> float | None:
    if radius is None:
        return None
    if isinstance(radius, bool) or not isinstance(radius, int | float) or not (math.isfinite(radius) and radius > 0):
        raise ValueError(f"`radius` must be a positive, finite number, got {radius!r}.")
    return float(radius)
