"""From files to files: train on a table, certify a table, report on it. Plain dicts out.

Owns which columns of a file are used and how. Must not know the command line or how results are printed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from derand.certificates import Certificates
from derand.estimators import StumpClassifier
from derand.files import PathLike, require_writable
from derand.frames import _files as tables
from derand.frames._files import ColumnKind
from derand.metrics import average_certified_radius, certified_accuracy
from derand.noise import Noise, as_noise
from derand.report import CertificateReport
from derand.storage import load, save

if TYPE_CHECKING:
    import pyarrow as pa

_MANY_CATEGORIES = 0.5
"""A text column is taken for a name or a number of the row where more than this share of its cells differ ..."""
_FEW_CATEGORIES = 20
"""... and more than this many do."""


def train_file(
    data: PathLike,
    target: str,
    output: PathLike,
    *,
    noise: Noise | str = "gaussian:0.25",
    scaling: str | None = "standard",
    class_weight: str | None = None,
    categorical: Collection[str] = (),
    ignored: Collection[str] = (),
) -> dict[str, Any]:
    """Train a StumpClassifier on a CSV or Parquet file and save it.

    Number columns become numerical features, text columns categorical ones. Columns that are empty, constant, dates, or
    text of which nearly every cell is another are left out.

    Parameters
    ----------
    data : path-like
    target : str
        Name of the column with the labels, of two kinds.
    output : path-like
        Where the model is saved.
    noise, scaling, class_weight
        As for StumpClassifier.
    categorical : collection of str
        Columns to be taken as categorical though they hold numbers.
    ignored : collection of str
        Columns to be left out.

    Returns
    -------
    dict
        What was done with every column, and how the model does on the training rows.
    """
    start = time.perf_counter()
    noise = as_noise(noise)
    require_writable(output, data)
    table = tables.read_table(data, as_text=categorical)
    tables.require_columns(data, table.column_names, [target, *ignored])
    if target in categorical or target in ignored:
        raise ValueError(f"The column {target!r} is the target: it cannot be categorical or ignored as well.")
    labels = _read_labels(data, table, target)
    features = [name for name in table.column_names if name != target]
    uses = {name: _plan_column(table, name, name in categorical, name in ignored) for name in features}
    used = [name for name, reason in uses.items() if reason is None]
    if not used:
        raise ValueError(f"{data} has no column to learn from: {_describe_uses(uses)}.")
    numbers = [name for name in used if tables.kind_of(table, name) is ColumnKind.NUMBER]
    words = [name for name in used if name not in numbers]
    tables.require_complete(data, table, numbers)
    tables.require_numbers_or_text(data, table, [name for name in words if name not in categorical])
    rows = _select(table, used, numbers)
    model = StumpClassifier(noise=noise, scaling=scaling, class_weight=class_weight)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, labels)
        certificates = model.certify(rows)
    save(model, output)
    messages = [str(warning.message) for warning in caught]
    if (certificates.label == certificates.label[0]).all():
        messages.append(
            f"Every row gets the label {certificates.label[0]}: smoothed, no stump outweighs the larger class. "
            "Try --class-weight balanced, or less noise."
        )
    return {
        "model": os.fspath(output),
        "rows": table.num_rows,
        "target": target,
        "classes": {str(name): int((labels == name).sum()) for name in model.classes_.tolist()},
        "noise": str(noise),
        "norm": noise.norm,
        "scaling": scaling,
        "columns": [{"name": name, **_report_column(model, name, uses[name])} for name in features],
        "training_accuracy": float((certificates.label == labels).mean()),
        "training_certified_accuracy": float(certified_accuracy(labels, certificates, [0.0])[0]),
        "warnings": messages,
        "seconds": time.perf_counter() - start,
    }


def _read_labels(path: PathLike, table: pa.Table, target: str) -> NDArray[Any]:
    """The labels as whole numbers or text."""
    tables.require_complete(path, table, [target])
    column, kind = table.column(target), tables.kind_of(table, target)
    if kind not in (ColumnKind.NUMBER, ColumnKind.TEXT):
        raise ValueError(f"{path} has labels in the column {target!r} that are {kind.value}: use numbers or text.")
    values = column.to_pylist()
    if kind is ColumnKind.NUMBER:
        values = [int(value) for value in values] if all(value == int(value) for value in values) else values
    labels = np.array(values)
    found = np.unique(labels)
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:5].tolist())) + (", ..." if len(found) > 5 else "")
        raise ValueError(
            f"{path} has {len(found)} different labels in the column {target!r} ({shown}): there must be two."
        )
    return labels if np.issubdtype(labels.dtype, np.integer) else labels.astype(str)


def _plan_column(table: pa.Table, name: str, categorical: bool, ignored: bool) -> str | None:
    """Why a column is left out; None for one that is used."""
    kind, column = tables.kind_of(table, name), table.column(name)
    if ignored:
        return "as asked"
    if not name:
        return "has no name"
    if kind not in (ColumnKind.NUMBER, ColumnKind.TEXT):
        return f"holds {kind.value}"
    present = column.drop_null()
    distinct = len(present.unique())
    if distinct <= 1 and not (kind is ColumnKind.NUMBER and column.null_count):
        return "constant"
    many = distinct > max(_FEW_CATEGORIES, _MANY_CATEGORIES * len(present))
    if kind is ColumnKind.TEXT and many and not categorical and not _mostly_numbers(present):
        return f"text with {distinct} different values in {table.num_rows} rows"
    return None


def _mostly_numbers(column: Any) -> bool:
    """Whether most cells read as numbers: then stray text is the trouble, which gets an error of its own."""
    return 2 * sum(map(tables.reads_as_number, column.to_pylist())) > len(column)


def _describe_uses(uses: Mapping[str, str | None]) -> str:
    return "; ".join(f"{name!r} {reason}" for name, reason in list(uses.items())[:8]) or "only the target is there"


def _select(table: pa.Table, names: Sequence[str], numbers: Collection[str]) -> pa.Table:
    """Some columns of a table, numbers as float64."""
    import pyarrow as pa

    columns = [
        table.column(name).cast("float64", safe=False) if name in numbers else table.column(name) for name in names
    ]
    return pa.table(columns, names=list(names))


def _report_column(model: Any, name: str, reason: str | None) -> dict[str, Any]:
    ignored = reason or model.ignored_features_.get(name)
    if ignored is not None:
        return {"use": "ignored", "detail": ignored}
    feature = list(model.feature_names_in_).index(name)
    if feature in model.encoding_.categories:
        return {"use": "categorical", "detail": f"{len(model.encoding_.categories[feature])} categories"}
    edges = [edge for term in model.ensemble_.step_functions if term.feature == feature for edge in term.edges.tolist()]
    return {"use": "numerical", "detail": "split at " + ", ".join(f"{edge:.6g}" for edge in edges)}


def certify_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    radii: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
    l0: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> dict[str, Any]:
    """Certify every row of a CSV or Parquet file, batch by batch, and write row, label, failure and radius.

    Parameters
    ----------
    model : path-like
        A saved classifier.
    data : path-like
        Columns are matched by name (by position, where the classifier was trained without names); others are not read.
    output : path-like
        .csv or .parquet; rows count from 1.
    target : str or None
        Column with the true labels.
    radii : sequence of float
        Where certified accuracy is measured, with a target.
    l0 : int
        How many categorical features may change at the same time.
    advance : callable
        Called with the number of rows of each batch that is done.

    Returns
    -------
    dict
        What was read, what was not, and the results in short.
    """
    start = time.perf_counter()
    require_writable(output, model, data)
    columns = _MatchedColumns.find(_load_classifier(model), data, target)
    tally = _Tally(radii)
    with tables.write_batches(output) as write:
        for batch in tables.read_batches(data, columns.kinds):
            certificates, labels = columns.certify(batch, l0, first_row=tally.n_rows + 1)
            write(
                {
                    "row": np.arange(tally.n_rows + 1, tally.n_rows + 1 + batch.num_rows),
                    "label": certificates.label,
                    "failure": certificates.failure,
                    "radius": certificates.radius,
                }
            )
            tally.add(certificates, labels)
            advance(batch.num_rows)
        if not tally.n_rows:
            raise ValueError(f"{data} has a header line but no rows.")
    noise = columns.classifier.noise_
    return {
        "output": os.fspath(output),
        "columns_not_used": [name for name in tables.read_names(data) if name not in columns.kinds],
        "unseen_categories": columns.unseen,
        "noise": str(noise),
        "norm": noise.norm,
        "l0": l0,
        **tally.summarize(),
        "seconds": time.perf_counter() - start,
    }


def report_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    train: PathLike | None = None,
    groups: Sequence[str] = (),
    radius: float | None = None,
    l0: int | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    """Certify the rows of a CSV or Parquet file and write a CertificateReport about them.

    Parameters
    ----------
    model : path-like
        A saved classifier.
    data : path-like
        Columns are matched as for `certify_file`.
    output : path-like
        .html, .md, .tex or .json.
    target : str or None
        Column with the true labels.
    train : path-like or None
        The training table, with the target: a twin trained on it without noise becomes a baseline.
    groups : sequence of str
        Columns whose groups are compared; they need not be features.
    radius, l0, title
        As for CertificateReport.

    Returns
    -------
    dict
        Where the report is, and its guarantee.
    """
    start = time.perf_counter()
    if train is not None and target is None:
        raise ValueError("The training table needs the target, to train the baseline: name it.")
    require_writable(output, model, data, *([] if train is None else [train]))
    classifier = _load_classifier(model)
    columns = _MatchedColumns.find(classifier, data, target)
    table = columns.read_all(groups)
    rows, labels = columns.read(table, first_row=1)
    X_train, y_train = None, None
    if train is not None:
        known = _MatchedColumns.find(classifier, train, target)
        X_train, y_train = known.read(known.read_all(), first_row=1)
    report = CertificateReport(
        classifier,
        rows,
        labels,
        X_train=X_train,
        y_train=y_train,
        groups={name: name if name in columns.names else table.column(name).to_pylist() for name in groups} or None,
        radius=radius,
        l0=l0,
        title=title or f"Certificate report: {Path(data).name}",
        feature_names=columns.names,
    )
    report.write(output)
    return {
        "output": os.fspath(output),
        "rows": table.num_rows,
        "guarantee": report.to_dict()["guarantee"]["paragraph"],
        "unseen_categories": columns.unseen,
        "seconds": time.perf_counter() - start,
    }


def _load_classifier(path: PathLike) -> Any:
    model = load(path)
    if not hasattr(model, "certify"):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    return model


@dataclass(frozen=True, slots=True, eq=False)
class _MatchedColumns:
    """The columns of a file that a classifier reads."""

    classifier: Any
    path: PathLike
    names: tuple[str, ...]
    kinds: Mapping[str, ColumnKind]
    target: str | None
    unseen: dict[str, int] = field(default_factory=dict)

    @classmethod
    def find(cls, classifier: Any, path: PathLike, target: str | None) -> _MatchedColumns:
        """Match by name, or by position where the classifier was trained without names."""
        present = tables.read_names(path)
        names = classifier.encoding_.names
        if names is None:
            names = tuple(name for name in present if name != target)
            if len(names) != classifier.n_features_in_:
                raise ValueError(
                    f"{path} has {len(names)} columns of features, but the model was trained on "
                    f"{classifier.n_features_in_}, without names: give these alone, in the same order."
                )
        if target is not None and target in names:
            raise ValueError(f"The column {target!r} is a feature of the model: it cannot be the target.")
        tables.require_columns(path, present, [*names, *([] if target is None else [target])])
        kinds = {name: cls._kind_of_feature(classifier, feature) for feature, name in enumerate(names)}
        if target is not None:
            kinds[target] = _kind_of_values(classifier.classes_.tolist())
        return cls(classifier, path, names, kinds, target)

    @staticmethod
    def _kind_of_feature(classifier: Any, feature: int) -> ColumnKind:
        return _kind_of_values(classifier.encoding_.categories.get(feature, ()))

    @property
    def _categorical(self) -> dict[str, tuple[Any, ...]]:
        return {self.names[feature]: values for feature, values in self.classifier.encoding_.categories.items()}

    def certify(self, batch: pa.Table, l0: int, first_row: int) -> tuple[Certificates, NDArray[Any] | None]:
        """Certificates of a batch of rows, and their labels where there is a target."""
        rows, labels = self.read(batch, first_row)
        return self.classifier.certify(rows, l0=l0), labels

    def read_all(self, others: Sequence[str] = ()) -> pa.Table:
        """The whole file, with other columns as text beside those of the classifier."""
        import pyarrow as pa

        tables.require_columns(self.path, tables.read_names(self.path), others)
        kinds = {**dict.fromkeys(others, ColumnKind.TEXT), **self.kinds}
        batches = list(tables.read_batches(self.path, kinds))
        if not batches:
            raise ValueError(f"{self.path} has a header line but no rows.")
        return pa.concat_tables(batches)

    def read(self, batch: pa.Table, first_row: int) -> tuple[Any, NDArray[Any] | None]:
        """A batch as the classifier takes it, and the labels where there is a target."""
        numerical = [name for name in self.names if name not in self._categorical]
        tables.require_complete(self.path, batch, numerical, first_row)
        self._count_unseen(batch)
        rows = batch.select(list(self.names))
        if self.classifier.encoding_.names is None:
            rows = np.array([column.to_pylist() for column in rows.columns], dtype=object).T
        return rows, None if self.target is None else self._read_labels(batch, self.target, first_row)

    def _count_unseen(self, batch: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        for name, values in self._categorical.items():
            present = batch.column(name).drop_null()
            known = pc.sum(pc.is_in(present, value_set=pa.array(values, type=present.type))).as_py() or 0
            if known < len(present):
                self.unseen[name] = self.unseen.get(name, 0) + len(present) - known

    def _read_labels(self, batch: pa.Table, target: str, first_row: int) -> NDArray[Any]:
        tables.require_complete(self.path, batch, [target], first_row)
        classes = self.classifier.classes_
        codes = {label: code for code, label in enumerate(classes.tolist())}
        values = batch.column(target).to_pylist()
        for row, value in enumerate(values, start=first_row):
            if value not in codes:
                raise ValueError(
                    f"{self.path} has the label {value!r} in row {row} of the column {target!r}: "
                    f"the model knows {', '.join(map(repr, classes.tolist()))}."
                )
        return np.asarray(classes[[codes[value] for value in values]])


def _kind_of_values(values: Sequence[Any]) -> ColumnKind:
    """Kind of the column in which these labels or categories stand; of numbers, where there are none."""
    if isinstance(next(iter(values), None), str):
        return ColumnKind.TEXT
    return ColumnKind.TRUTH if isinstance(next(iter(values), None), bool) else ColumnKind.NUMBER


class _Tally:
    """Results of all batches so far."""

    def __init__(self, radii: Sequence[float]) -> None:
        self.radii = list(radii)
        self.n_rows = self.n_certified = self.n_infinite = self.n_labelled = self.n_correct = 0
        self.held = np.zeros(len(self.radii))
        self.radius_of_correct = 0.0

    def add(self, certificates: Certificates, labels: NDArray[Any] | None) -> None:
        self.n_rows += len(certificates)
        self.n_certified += int((certificates.radius > 0).sum())
        self.n_infinite += int(np.isinf(certificates.radius).sum())
        if labels is None:
            return
        self.n_labelled += len(labels)
        self.n_correct += int((labels == certificates.label).sum())
        self.held += np.rint(certified_accuracy(labels, certificates, self.radii) * len(labels))
        self.radius_of_correct += average_certified_radius(labels, certificates) * len(labels)

    def summarize(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "rows": self.n_rows,
            "certified_rows": self.n_certified,
            "rows_of_infinite_radius": self.n_infinite,
        }
        if self.n_labelled:
            result["accuracy"] = self.n_correct / self.n_labelled
            result["certified_accuracy"] = [
                {"radius": radius, "share": held / self.n_labelled}
                for radius, held in zip(self.radii, self.held.tolist(), strict=True)
            ]
            result["average_certified_radius"] = self.radius_of_correct / self.n_labelled
        return result
