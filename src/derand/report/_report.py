"""The user's door: `Report`. Reads at once, summarises on first use, renders on demand."""

from __future__ import annotations

import html
import json
import tempfile
import webbrowser
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from derand._core.files import PathLike, replace_when_done
from derand._core.origin import Frame
from derand.report import _page
from derand.report._class_names import rename_classes, rename_labels
from derand.report._inputs import IntervalInputs, LabelInputs, read_inputs, read_regression_inputs, read_subject
from derand.report._printing import print_pdf, require_browser
from derand.report._settings import ReportSettings
from derand.report._summary import summarize_classification, summarize_regression
from derand.report.sections.compare import OtherModel, read_other
from derand.report.sections.subgroups import resolve_groups


def require_format(path: PathLike, *, one_page: bool = False) -> str:
    """The end of a file's name, where a report can be written so; a page to sign is HTML or PDF."""
    known = (".html", ".pdf") if one_page else (".html", ".pdf", ".md", ".tex", ".json")
    ending = Path(path).suffix.lower()
    if ending not in known:
        raise ValueError(f"`path` must end with one of {', '.join(known)}, got {str(path)!r}.")
    if ending == ".pdf":
        require_browser(path)
    return ending


class Report:
    """What is proven about a model on some rows, for people to read.

    Of a classifier it tells which answers are proven to stay the same, of a regressor by how much answers can move.

    Parameters
    ----------
    model : fitted classifier or regressor of derand, AdditiveEnsemble or WeightedVote
    X : array or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), optional
        True labels or numbers. Without them, what needs them is left out and the report says so.
    settings : ReportSettings, optional
        What is asked for.
    **options
        Fields of `ReportSettings`, which replace those of `settings`.

    Examples
    --------
    >>> from derand import StumpClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"]
    >>> report = Report(StumpClassifier(noise="gaussian:0.5").fit(X, y), X, y)
    >>> report.to_dict()["radii"]["accuracy"]
    1.0
    >>> print(report.to_markdown().splitlines()[0])
    # Certificate report

    Of a regressor it is about intervals:

    >>> from sklearn.datasets import load_diabetes
    >>> from derand import AdditiveRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = AdditiveRegressor(radius=0.25, regularization=10.0).fit(X[:300], y[:300])
    >>> report = Report(reg, X[300:], y[300:], radius=0.25)
    >>> report.to_dict()["data"]["n_rows"]
    142
    >>> print(report.to_markdown().splitlines()[0])
    # Interval report
    """

    def __init__(
        self,
        model: object,
        X: Frame,
        y: ArrayLike | None = None,
        *,
        settings: ReportSettings | None = None,
        **options: Any,
    ) -> None:
        asked = replace(settings or ReportSettings(), **options)
        is_regressor = hasattr(model, "certify_interval") and hasattr(model, "ensemble_")
        asked.require_for(regressor=is_regressor)
        self._settings = asked
        self._other: OtherModel | None = None
        self._inputs: LabelInputs | IntervalInputs
        if is_regressor:
            self._inputs = read_regression_inputs(model, X, y, asked)
            resolve_groups(self._inputs.subject.names, asked.subgroups, self._inputs.n_rows)
            return
        if asked.class_names is not None:
            renamed = rename_classes(model, asked.class_names)
            y = None if y is None else rename_labels(y, model, renamed)
            other = None if asked.compare is None else rename_classes(asked.compare, asked.class_names)
            model, asked = renamed, replace(asked, compare=other)
        subject = read_subject(model, asked.noise, asked.feature_names)
        if asked.subgroups is not None:  # refused before any work
            resolve_groups(subject.names, asked.subgroups, X.shape[0] if hasattr(X, "shape") else len(X))
        self._inputs = read_inputs(subject, X, y, asked)
        if asked.compare is not None:
            self._other = read_other(asked.compare, X, self._inputs, asked)

    @cached_property
    def _summary(self) -> Any:
        if isinstance(self._inputs, IntervalInputs):
            return summarize_regression(self._inputs, self._settings)
        return summarize_classification(self._inputs, self._settings, self._other)

    def to_dict(self) -> Any:
        """All that the report says, as plain numbers, text, lists and dicts; computed once.

        Returns
        -------
        ReportSummary or IntervalSummary
            The second one of a regressor.
        """
        return self._summary

    def to_json(self) -> str:
        """The dict as JSON; infinity is the text "inf"."""
        return json.dumps(self._summary, allow_nan=False, ensure_ascii=False)

    def to_html(self, *, one_page: bool = False) -> str:
        """One HTML file with everything inside.

        Parameters
        ----------
        one_page : bool
            Only the page to sign, which prints to one A4 page: question, answer, quality, what flips answers, subgroup
            differences beyond chance, what is not guaranteed, checksums and a line for a signature.
        """
        return _page.to_html(self._summary, one_page=one_page)

    def to_markdown(self) -> str:
        """The report in short, as Markdown."""
        return _page.to_markdown(self._summary)

    def to_latex(self) -> str:
        """Its main table, of certified accuracy or of widths, as LaTeX (needs the package booktabs)."""
        return _page.to_latex(self._summary)

    def write(self, path: PathLike, *, one_page: bool = False) -> None:
        """Write the report to a file, in the format that the end of its name says: .html, .pdf, .md, .tex or .json.

        Parameters
        ----------
        path : path-like
            A .pdf is the page as chromium prints it, which must be installed.
        one_page : bool
            As for `to_html`: only the page to sign, .html or .pdf.
        """
        ending = require_format(path, one_page=one_page)
        if ending == ".pdf":
            print_pdf(self.to_html(one_page=one_page), path)
            return
        texts = {".md": self.to_markdown, ".tex": self.to_latex, ".json": self.to_json}
        _write_text(texts.get(ending, partial(self.to_html, one_page=one_page))(), path)

    def write_html(self, path: PathLike) -> None:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : path-like
        """
        _write_text(self.to_html(), path)

    def open(self) -> Path:
        """Write the page to a temporary file and show it in the browser.

        Returns
        -------
        Path
            Where the page lies; it is left there.
        """
        path = Path(tempfile.mkdtemp(prefix="derand-")) / "report.html"
        self.write_html(path)
        webbrowser.open(path.as_uri())
        return path

    def __repr__(self) -> str:
        return f"<Report: {self._inputs.n_rows} rows; write(path), open(), to_dict()>"

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks: neither it nor the notebook changes the other's styles."""
        return (
            f'<iframe srcdoc="{html.escape(self.to_html(), quote=True)}" title="{html.escape(self._summary["title"])}" '
            'style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 8px"></iframe>'
        )


def _write_text(content: str, path: PathLike) -> None:
    with replace_when_done(path) as draft:
        draft.write_text(content, encoding="utf-8")
