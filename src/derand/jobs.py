"""From files to files: train on a table, certify a table, report on it. Plain dicts out.

Owns the way from a file to a classifier and back to a file, and what is told of it. Must not know the command line or
how results are printed, nor how files are read and which columns are useful: `derand.frames` does.
"""

from __future__ import annotations

import difflib
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from derand._arrays import FloatArray, IntArray
from derand.certificates import Certificates, find_labels
from derand.estimators import TRAINERS
from derand.files import PathLike, require_writable
from derand.frames import (
    ColumnCheck,
    ColumnKind,
    ColumnUse,
    Labels,
    MatchedFile,
    TableEncoding,
    TableFile,
    check_columns,
    inspect_file,
    kind_of_arrow_type,
    match_file,
    write_batches,
)
from derand.metrics import ShareAtRadius, average_certified_radius, certified_accuracy
from derand.model import Model
from derand.noise import Noise, as_noise, as_noise_or_none
from derand.report import CertificateReport
from derand.storage import load, save
from derand.text import quote_short
from derand.threat import Column, Limit, Threat, as_threats
from derand.threat_text import read_threat

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_EDGES = 8


class ColumnSummary(TypedDict):
    """What became of a column of a training table."""

    name: str
    use: str
    """"numerical", "categorical" or "ignored"."""
    detail: str


class TrainingSummary(TypedDict):
    """What `train_file` did with every column, and how the model does on the training rows."""

    model: str
    """Where it was saved."""
    trainer: str
    rows: int
    target: str
    classes: dict[str, int]
    noise: str
    norm: int
    scaling: str | None
    rule: str
    columns: list[ColumnSummary]
    training_accuracy: float
    training_certified_accuracy: float
    """Right, and certified for some radius above 0."""
    warnings: list[str]
    seconds: float


class _TallySummary(TypedDict):
    """Results of all batches in short; accuracies where there is a target, radii where there is a ball."""

    rows: int
    certified_rows: int
    proofs: dict[str, int]
    """How many rows are certified by which proof; "none" where nothing is."""
    rows_of_infinite_radius: NotRequired[int]
    verdicts: NotRequired[dict[str, int]]
    """Where limits alone say what may change: how many rows hold, flip, or are undecided."""
    accuracy: NotRequired[float]
    certified_accuracy: NotRequired[list[ShareAtRadius]]
    average_certified_radius: NotRequired[float]
    proven_accuracy: NotRequired[float]
    """Where limits alone say what may change: right, and proven to hold within them."""


class ThreatSummary(TypedDict):
    """What may change, with columns by name."""

    norm: float | None
    l0: int
    unseen: bool
    units: dict[str, float] | None
    """Of the numerical columns, in a ball; None where all are 1."""
    frozen: list[str]
    limits: dict[str, Limit]
    domain: dict[str, tuple[float, float]]
    steps: dict[str, float]
    may_become: dict[str, list[Any]]
    missing: int
    """How many numbers may go missing or appear."""
    fixed: list[str]
    """Numerical columns that cannot change: frozen ones and, without a ball, those without limits and domain."""


class CertifyingSummary(_TallySummary):
    """What `certify_file` read and what it did not, and the results in short."""

    output: str
    witness: str | None
    columns_not_used: list[str]
    unseen_categories: dict[str, int]
    empty_columns: list[str]
    """Categorical ones without any value, which count like values that training did not see."""
    rule: str
    proof: str
    """Which proofs were allowed."""
    noise: str
    norm: float | None
    l0: int
    threat: ThreatSummary
    seconds: float


class ReportSummary(TypedDict):
    """Where the report of `report_file` is, and its guarantee."""

    output: str
    rows: int
    guarantee: str
    unseen_categories: dict[str, int]
    empty_columns: list[str]
    seconds: float


class _Classifier(Protocol):
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


def train_file(
    data: PathLike,
    target: str,
    output: PathLike,
    *,
    model: str = "stumps",
    noise: Noise | str = "gaussian:0.25",
    scaling: str | None = "standard",
    class_weight: str | None = None,
    rule: str = "vote",
    categorical: Collection[str] = (),
    ignored: Collection[str] = (),
) -> TrainingSummary:
    """Train a classifier on a CSV or Parquet file and save it.

    Number columns become numerical features, text columns categorical ones. Columns that are empty, constant, dates, or
    text of which nearly every cell is another are left out: see `derand.frames.check_columns`.

    Parameters
    ----------
    data : path-like
    target : str
        Name of the column with the labels, of two kinds.
    output : path-like
        Where the model is saved.
    model : str
        A trainer of `derand.estimators.TRAINERS`: "stumps", "tree-boost" or "ada-boost".
    noise, scaling, class_weight, rule
        As for the classifiers.
    categorical : collection of str
        Columns to be taken as categorical though they hold numbers.
    ignored : collection of str
        Columns to be left out.

    Returns
    -------
    TrainingSummary
        A dict: what was done with every column, and how the model does on the training rows.
    """
    start = time.perf_counter()
    trainer = _find_trainer(model)
    noise = as_noise(noise)
    require_writable(output, data)
    file = inspect_file(data)
    table = file.read(as_text=categorical)
    file.require_columns([target, *ignored])
    if target in categorical or target in ignored:
        raise ValueError(f"The column {target!r} is the target: it cannot be categorical or ignored as well.")
    labels = _read_labels(file, table, target)
    features = _read_features(table, target)
    checks = check_columns(features, categorical=categorical, ignored=ignored)
    used = [str(check.name) for check in checks if check.use is not ColumnUse.IGNORED]
    if not used:
        raise ValueError(f"{data} has no column to learn from: {_describe_reasons(checks)}.")
    file.require_usable(checks, table.num_rows)
    rows = features.select(used)
    classifier = trainer(noise=noise, scaling=scaling, class_weight=class_weight, rule=rule)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.fit(rows, labels)
        certificates = classifier.certify(rows)
    save(classifier, output)
    return {
        "model": os.fspath(output),
        "trainer": model,
        "rows": table.num_rows,
        "target": target,
        "classes": {str(name): int((labels == name).sum()) for name in classifier.classes_.tolist()},
        "noise": str(noise),
        "norm": noise.norm,
        "scaling": scaling,
        "rule": rule,
        "columns": _summarize_columns(checks, classifier),
        "training_accuracy": float((certificates.label == labels).mean()),
        "training_certified_accuracy": float(certified_accuracy(labels, certificates, [0.0])[0]),
        "warnings": [*(str(warning.message) for warning in caught), *_warn_of_one_label(certificates)],
        "seconds": time.perf_counter() - start,
    }


def _find_trainer(name: str) -> type[Any]:
    if name not in TRAINERS:
        raise ValueError(f"`model` must be one of {', '.join(TRAINERS)}, got {name!r}.")
    return TRAINERS[name]


def _warn_of_one_label(certificates: Certificates) -> list[str]:
    if (certificates.label != certificates.label[0]).any():
        return []
    return [
        f"Every row gets the label {certificates.label[0]}: smoothed, no stump outweighs the larger class. "
        "Try --class-weight balanced, or less noise."
    ]


def _read_labels(file: TableFile, table: pa.Table, target: str) -> Labels:
    """The labels as whole numbers or text."""
    file.require_complete(table, [target])
    column = table.column(target)
    kind = kind_of_arrow_type(column.type)
    if kind not in (ColumnKind.NUMBER, ColumnKind.TEXT):
        raise ValueError(f"{file.path} has labels in the column {target!r} that are {kind.value}: use numbers or text.")
    values = column.to_pylist()
    if kind is ColumnKind.NUMBER:
        values = [int(value) for value in values] if all(value == int(value) for value in values) else values
    labels = np.array(values)
    found = np.unique(labels)
    if len(found) != 2:
        shown = ", ".join(map(quote_short, found[:5].tolist())) + (", ..." if len(found) > 5 else "")
        raise ValueError(
            f"{file.path} has {len(found)} different labels in the column {target!r} ({shown}): there must be two."
        )
    return labels if np.issubdtype(labels.dtype, np.integer) else labels.astype(str)


def _read_features(table: pa.Table, target: str) -> pa.Table:
    """All columns but the target, numbers as float64."""
    import pyarrow as pa

    features = table.drop_columns([target])
    columns = [
        column.cast("float64", safe=False) if kind_of_arrow_type(column.type) is ColumnKind.NUMBER else column
        for column in features.columns
    ]
    return pa.table(columns, names=features.column_names) if columns else features


def _describe_reasons(checks: Iterable[ColumnCheck]) -> str:
    reasons = [f"{quote_short(check.name)} {check.reason}" for check in checks]
    return "; ".join(reasons[:8]) or "only the target is there"


def _summarize_columns(checks: Iterable[ColumnCheck], classifier: _Classifier) -> list[ColumnSummary]:
    """What became of every column: left out by the check or by training, or how the model reads it."""
    left_out: Mapping[str | int, str] = getattr(classifier, "ignored_features_", {})
    features = {classifier.encoding_.name(feature): feature for feature in range(classifier.encoding_.n_features)}
    edges: dict[int, set[float]] = {feature: set() for feature in features.values()}
    for term in classifier.ensemble_.member_terms:
        for axis in term.axes:
            edges[axis.feature].update(axis.edges.tolist())
    summaries: list[ColumnSummary] = []
    for check in checks:
        reason = check.reason or left_out.get(check.name)
        use, detail = "ignored", reason or ""
        if not reason:
            feature = features[check.name]
            use, detail = _describe_feature(classifier.encoding_, feature, sorted(edges[feature]))
        summaries.append({"name": str(check.name), "use": use, "detail": detail})
    return summaries


def _describe_feature(encoding: TableEncoding, feature: int, edges: Sequence[float]) -> tuple[str, str]:
    """How the model reads a feature: as what, and in which cells."""
    if feature in encoding.categories:
        return "categorical", f"{len(encoding.categories[feature])} categories"
    if not edges:
        return "ignored", "the model does not split it"
    more = f" and {len(edges) - _SHOWN_EDGES} more" if len(edges) > _SHOWN_EDGES else ""
    return "numerical", "split at " + ", ".join(f"{edge:.6g}" for edge in edges[:_SHOWN_EDGES]) + more


def certify_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    radii: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
    l0: int | None = None,
    rule: str | None = None,
    proof: str = "best",
    noise: Noise | str | None = None,
    threat: Threat | PathLike | None = None,
    witness: PathLike | None = None,
    safe_csv: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
) -> CertifyingSummary:
    """Certify every row of a CSV or Parquet file, batch by batch, and write row, label, failure, radius and proof.

    Where limits alone say what may change (`norm=None` of the threat), there is a verdict instead of a radius.

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
    l0 : int or None
        How many categorical features may change at the same time. None is 0.
    rule, proof, noise
        As for `certify` of the classifier.
    threat : Threat, path-like or None
        What may change, instead of `l0`, with columns by their names in the file; or a TOML file that says it.
    witness : path-like or None
        .csv or .parquet, for a threat without norm: one line per row that flips, with row, label, new_label and the
        classifier's columns, changed so that they get the new label.
    safe_csv : bool
        Put an apostrophe before text that a spreadsheet would take for a formula; for .csv alone.
    advance : callable
        Called with the number of rows of each batch that is done.

    Returns
    -------
    CertifyingSummary
        A dict: what was read, what was not, and the results in short.
    """
    start = time.perf_counter()
    as_noise_or_none(noise)  # refused before any file is looked at
    inputs = [model, data, *([threat] if threat is not None and not isinstance(threat, Threat) else [])]
    require_writable(output, *inputs)
    if witness is not None:
        require_writable(witness, *inputs)
        if os.path.realpath(witness) == os.path.realpath(output):
            raise ValueError(f"The witnesses cannot go to {os.fspath(output)} as well: name another file.")
    classifier = _load_classifier(model)
    source = match_file(data, classifier.encoding_, target=target, classes=classifier.classes_)
    request = _Request(classifier, source, l0, threat, rule=rule, proof=proof, noise=noise)
    if witness is not None and request.resolved.norm is not None:
        raise ValueError(
            "Witnesses are written only where limits alone say what may change (norm none), got norm "
            f"{request.resolved.norm}."
        )
    tally = _Tally(radii)
    with ExitStack() as files:
        write = files.enter_context(write_batches(output, safe_csv=safe_csv))
        write_flips = None if witness is None else files.enter_context(write_batches(witness, safe_csv=safe_csv))
        for batch in source.read_batches():
            first_row = tally.n_rows + 1
            rows, labels = source.split(batch, first_row=first_row)
            with source.name_gaps(batch, first_row=first_row):
                certificates = request.certify(rows, batch, first_row)
            write(_list_results(certificates, first_row))
            if write_flips is not None:
                flips = _find_flips(certificates)
                if flips.size or not tally.n_rows:  # a file without witnesses has a header line
                    write_flips(_list_flips(classifier, source, batch, certificates, flips, first_row))
            tally.add(certificates, labels, source.count_unseen(batch), source.find_empty(batch))
            advance(batch.num_rows)
        if not tally.n_rows:
            raise ValueError(f"{data} has a header line but no rows.")
    return {
        "output": os.fspath(output),
        "witness": None if witness is None else os.fspath(witness),
        "columns_not_used": [name for name in source.file.names if name not in source.kinds],
        "unseen_categories": dict(tally.unseen),
        "empty_columns": sorted(tally.empty or ()),
        "rule": request.rule,
        "proof": proof,
        "noise": "none" if request.noise is None else str(request.noise),
        "norm": request.resolved.ball_norm,
        "l0": request.resolved.l0,
        "threat": request.summarize(),
        **tally.summarize(),
        "seconds": time.perf_counter() - start,
    }


class _Request:
    """What is asked about the rows of a file; refused before any row is read where it makes no sense."""

    def __init__(
        self,
        classifier: _Classifier,
        source: MatchedFile,
        l0: int | None,
        threat: Threat | PathLike | None,
        *,
        rule: str | None,
        proof: str,
        noise: Noise | str | None,
    ) -> None:
        self._classifier, self._source = classifier, source
        self._asked: _Asked = {"rule": rule, "proof": proof, "noise": noise}
        if threat is not None and not isinstance(threat, Threat):
            units = None if (own := self._ask_nothing(Threat()).noise) is None else own.units
            threat = read_threat(threat, source.names, units)
        (self.given,) = as_threats(l0, None, threat)
        _refuse_categories(self.given, source)
        self.named = self.given.name_columns(source.names)
        _refuse_unseen(self.named, source)
        facts = self._ask_nothing(self.named)
        self.rule, self.noise, self.resolved = facts.rule, facts.noise, facts.threat

    def _ask_nothing(self, threat: Threat) -> Certificates:
        """The certificates of no rows: they know what was asked for, and are refused as those of rows would be."""
        nothing = np.empty((0, self._classifier.encoding_.n_features))
        return self._classifier.certify_encoded(nothing, [threat], **self._asked)[0]

    def certify(self, rows: object, batch: pa.Table, first_row: int) -> Certificates:
        """The certificates of a batch."""
        for column, ends in self.named.domain.items():
            assert isinstance(column, int)  # `name_columns` saw to that
            self._source.require_between(batch, column, ends, first_row)
        return self._classifier.certify(rows, threat=self.named, **self._asked)

    def summarize(self) -> ThreatSummary:
        """What may change, with columns by name."""
        names, numerical = self._source.names, self._classifier.encoding_.numerical

        def by_name(values: Mapping[Column, Any]) -> dict[str, Any]:
            return {names[at] if isinstance(at, int) else at: value for at, value in values.items()}

        units, threat = self.resolved.units, self.given
        free = self.named.find_free(numerical)
        return {
            "norm": self.resolved.ball_norm,
            "l0": threat.l0,
            "unseen": bool(threat.unseen),
            "units": None if units is None else {names[at]: units[at] for at in numerical},
            "frozen": list(by_name(dict.fromkeys(threat.frozen))),
            "limits": by_name(threat.limits),
            "domain": by_name(threat.domain),
            "steps": by_name(threat.steps),
            "may_become": {name: list(values) for name, values in by_name(threat.may_become).items()},
            "missing": threat.missing_budget,
            "fixed": [names[at] for at, can_move in zip(numerical, free.tolist(), strict=True) if not can_move],
        }


class _Asked(TypedDict):
    rule: str | None
    proof: str
    noise: Noise | str | None


def _refuse_categories(threat: Threat, source: MatchedFile) -> None:
    """Refuse limits of categorical columns by the names that the user knows."""
    categorical = {source.names[at] for at in source.encoding.categorical}
    for field in ("limits", "domain", "steps"):
        for column in getattr(threat, field):
            if column in categorical:
                raise ValueError(
                    f"`{field}` of Threat must name numerical columns, got {column!r}, which is categorical: `l0` says "
                    "how many of those may change, `frozen` which may not."
                )


def _refuse_unseen(threat: Threat, source: MatchedFile) -> None:
    """Refuse values that training did not see among those that a category may become: in a file they are slips."""
    for column, values in threat.may_become.items():
        known = source.encoding.categories.get(int(column), ())
        for value in values if known else ():
            if value not in known:
                near = difflib.get_close_matches(str(value), [one for one in known if isinstance(one, str)], n=1)
                more = ", ..." if len(known) > _SHOWN_EDGES else ""
                listed = f": its values are {', '.join(map(quote_short, known[:_SHOWN_EDGES]))}{more}."
                meant = f"; did you mean {quote_short(near[0])}?" if near else listed
                raise ValueError(
                    f"`may_become` of Threat names {quote_short(value)} for {quote_short(source.names[int(column)])}, "
                    f"which training did not see{meant}"
                )


def _list_results(certificates: Certificates, first_row: int) -> dict[str, NDArray[Any]]:
    """What is written of a batch, by column."""
    held = {"radius": certificates.radius} if certificates.verdict is None else {"verdict": certificates.verdict}
    return {
        "row": np.arange(first_row, first_row + len(certificates)),
        "label": certificates.label,
        "failure": certificates.failure,
        **held,
        "proof": certificates.proof,
    }


def _find_flips(certificates: Certificates) -> IntArray:
    assert certificates.flips is not None  # without a norm there are flips, and witnesses of them
    return np.flatnonzero(certificates.flips)


def _list_flips(
    classifier: _Classifier,
    source: MatchedFile,
    batch: pa.Table,
    certificates: Certificates,
    at: IntArray,
    first_row: int,
) -> dict[str, Any]:
    """What is written of the rows of a batch that flip, by column; ours give way to columns of the same name."""
    import pyarrow as pa

    assert certificates.witness is not None
    changed = certificates.witness[at]
    codes = find_labels(classifier.ensemble_, changed, certificates.noise, rule=certificates.rule)
    classes = classifier.classes_.tolist()
    kind = pa.array(classes).type
    own: dict[str, Any] = {
        "row": at + first_row,
        "label": pa.array(certificates.label[at].tolist(), type=kind),
        "new_label": pa.array([classes[code] for code in codes.tolist()], type=kind),
    }
    for name in list(own):
        free = name
        while free in source.names:
            free = f"_{free}"
        own[free] = own.pop(name)
    return {**own, **source.decode(batch.take(at), changed)}


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
    rule: str | None = None,
    noise: str | None = None,
    threat: Threat | PathLike | None = None,
) -> ReportSummary:
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
    radius, l0, title, rule, noise
        As for CertificateReport.
    threat : Threat, path-like or None
        What may change, or a TOML file that says so; instead of `l0`.

    Returns
    -------
    ReportSummary
        A dict: where the report is, and its guarantee.
    """
    start = time.perf_counter()
    if train is not None and target is None:
        raise ValueError("The training table needs the target, to train the baseline: name it.")
    require_writable(output, model, data, *([] if train is None else [train]))
    classifier = _load_classifier(model)
    source = match_file(data, classifier.encoding_, target=target, classes=classifier.classes_)
    table = source.read_all(groups)
    rows, labels = source.split(table, first_row=1)
    X_train, y_train = None, None
    if train is not None:
        known = match_file(train, classifier.encoding_, target=target, classes=classifier.classes_)
        training = known.read_all()
        known.require_finite(training)
        X_train, y_train = known.split(training, first_row=1)
    if threat is not None and not isinstance(threat, Threat):
        threat = read_threat(threat, source.names, classifier.noise_.units)
    with source.name_gaps(table, first_row=1):
        report = CertificateReport(
            classifier,
            rows,
            labels,
            X_train=X_train,
            y_train=y_train,
            groups={name: name if name in source.names else table.column(name).to_pylist() for name in groups} or None,
            radius=radius,
            l0=l0,
            title=title or f"Certificate report: {Path(data).name}",
            feature_names=source.names,
            rule=rule,
            noise=noise,
            threat=threat,
        )
        report.write(output)
    return {
        "output": os.fspath(output),
        "rows": table.num_rows,
        "guarantee": report.to_dict()["guarantee"]["paragraph"],
        "unseen_categories": source.count_unseen(table),
        "empty_columns": sorted(source.find_empty(table)),
        "seconds": time.perf_counter() - start,
    }


def _load_classifier(path: PathLike) -> _Classifier:
    model: Any = load(path)
    if not hasattr(model, "certify"):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    classifier: _Classifier = model
    return classifier


class _Tally:
    """Results of all batches so far."""

    def __init__(self, radii: Sequence[float]) -> None:
        self.radii = list(radii)
        self.n_rows = self.n_certified = self.n_infinite = self.n_labelled = self.n_correct = self.n_proven = 0
        self.held = np.zeros(len(self.radii))
        self.radius_of_correct = 0.0
        self.proofs: Counter[str] = Counter()
        self.verdicts: Counter[str] | None = None
        """None where there are radii."""
        self.unseen: Counter[str] = Counter()
        self.empty: set[str] | None = None
        """Columns that were empty in every batch; None before the first."""

    def add(
        self, certificates: Certificates, labels: Labels | None, unseen: Mapping[str, int], empty: set[str]
    ) -> None:
        self.unseen.update(unseen)
        self.empty = empty if self.empty is None else self.empty & empty
        self.n_rows += len(certificates)
        self.n_certified += int((certificates.radius > 0).sum())
        self.n_infinite += int(np.isinf(certificates.radius).sum())
        self.proofs.update(_count(certificates.proof))
        if certificates.verdict is not None:
            self.verdicts = (self.verdicts or Counter()) + _count(certificates.verdict)
        if labels is None:
            return
        correct = labels == certificates.label
        self.n_labelled += len(labels)
        self.n_correct += int(correct.sum())
        self.n_proven += int((correct & (certificates.radius > 0)).sum())
        if certificates.verdict is None:
            self.held += np.rint(certified_accuracy(labels, certificates, self.radii) * len(labels))
            self.radius_of_correct += average_certified_radius(labels, certificates) * len(labels)

    def summarize(self) -> _TallySummary:
        result: _TallySummary = {
            "rows": self.n_rows,
            "certified_rows": self.n_certified,
            "proofs": dict(sorted(self.proofs.items())),
        }
        if self.verdicts is None:
            result["rows_of_infinite_radius"] = self.n_infinite
        else:
            result["verdicts"] = {verdict: self.verdicts[verdict] for verdict in ("holds", "flips", "undecided")}
        if not self.n_labelled:
            return result
        result["accuracy"] = self.n_correct / self.n_labelled
        if self.verdicts is not None:
            result["proven_accuracy"] = self.n_proven / self.n_labelled
            return result
        result["certified_accuracy"] = [
            {"radius": radius, "share": held / self.n_labelled}
            for radius, held in zip(self.radii, self.held.tolist(), strict=True)
        ]
        result["average_certified_radius"] = self.radius_of_correct / self.n_labelled
        return result


def _count(values: NDArray[np.str_]) -> Counter[str]:
    found, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))
