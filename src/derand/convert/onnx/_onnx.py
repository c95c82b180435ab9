"""Models as ONNX: the score without smoothing, in plain operations on doubles and whole numbers.

Owns which operations a model consists of. Tree operators of ONNX compare in single precision, in which edges of doubles
cannot be told from their neighbours; here every comparison is one of doubles, every sum one of whole numbers (of a
linear model, of doubles in the model's own order), and the score equals that of the model to the last bit. Must not
know noise or certificates.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from derand import __version__
from derand._core.arrays import EPSILON, FloatArray, IntArray, Numbers
from derand._core.files import PathLike, replace_when_done
from derand._core.later import import_extra
from derand._core.origin import Fitted
from derand.convert import Reading, probe_rows
from derand.convert.onnx._columns import MATRIX, Column, list_columns
from derand.convert.onnx._graph import LABEL_ENCODER, Graph
from derand.convert.onnx._lookups import Cells, Lookup, tabulate
from derand.model import AdditiveEnsemble, Model, Slope, is_model
from derand.tables import TableEncoding

_FEWEST_PROBES, _MOST_PROBES = 2_000, 20_000
_LARGEST_ERROR = 1e-12
"""Of probabilities: runtimes have exponential functions of their own."""
_ABOUT = (
    "The base score of a model of derand, without smoothing. Radii that were certified under noise speak of the "
    "smoothed model; those of the rule mean without noise speak of this one."
)


@dataclass(frozen=True, slots=True)
class OnnxExport:
    """What `export_onnx` wrote.

    Attributes
    ----------
    inputs : tuple of str
        Names of the inputs: "X" alone, a matrix of doubles, or one per column.
    outputs : tuple of str
        "score" and "label", and "probability" where the score says how likely each class is; or "value".
    n_bytes : int
        Size of the file.
    checked_rows : int
        On how many rows onnxruntime gave the same scores and labels, to the last bit; 0 where it is not installed.
    probability_error : float or None
        By how much probabilities differed there at most; None without probabilities or rows.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    n_bytes: int
    checked_rows: int
    probability_error: float | None = None


def export_onnx(model: Fitted, path: PathLike) -> OnnxExport:
    """Write the base score of a model, without smoothing, as ONNX, for those who serve it elsewhere.

    Needs onnx (the extra "onnx"). Where onnxruntime is installed, scores and labels are compared with the model's own
    on every edge and beside it, and nothing is written unless they are the same to the last bit; probabilities may
    differ by 1e-12.

    Parameters
    ----------
    model : AdditiveEnsemble, WeightedVote or a fitted classifier or regressor of derand
    path : path-like

    Returns
    -------
    OnnxExport
        Inputs: where no column is a category, "X", a matrix of doubles in the order of the training columns; else one
        matrix of one column per column, by its name: text for categories of text (the empty text where it is missing),
        doubles for all else (NaN where it is missing; truth values are 0 and 1). A bare model has "X" with codes.
        Outputs: "score", of two classes above 0 for the second one, of several one per class; "label"; "probability",
        (n_rows, n_classes), of classifiers by the rule "mean" that have some: what `predict_proba` makes of that score.
        "value" for a number. The score of a vote is how far the second class is ahead, as a share of all weight. A
        missing number that the model refuses is an error of the runtime: an index out of bounds.

    Examples
    --------
    >>> import tempfile
    >>> from derand import AdditiveEnsemble, export_onnx
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(model, f"{folder}/model.onnx").outputs
    ('score', 'label')
    """
    import_extra("onnx", "onnx", "Writing ONNX")
    subject = _open_model(model)
    graph, outputs = _draw(subject)
    content = graph.serialize(_tell_facts(subject), __version__, _ABOUT)
    checked, error = _check(content, subject, outputs)
    with replace_when_done(path) as draft:
        draft.write_bytes(content)
    names = (MATRIX,) if subject.columns is None else tuple(column.name for column in subject.columns)
    return OnnxExport(names, outputs, len(content), checked, error)


class Link(NamedTuple):
    """What makes probabilities of scores: "logit" or "share" of `slope * score + shift`, of several classes a shift
    each."""

    kind: str
    slope: float
    shift: FloatArray

    @classmethod
    def find(cls, model: Fitted, ensemble: Model) -> Link | None:
        """That of a fitted classifier; None where its score says nothing about probabilities."""
        kind = getattr(model, "link_", "logit" if getattr(model, "score_is_log_odds", False) else "none")
        n_classes, n_outputs = ensemble.n_classes, ensemble.members[0].n_outputs
        if getattr(model, "rule", None) != "mean" or kind == "none" or ensemble.weights is not None:
            return None
        if not n_classes or n_outputs != (1 if n_classes == 2 else n_classes):
            return None
        slope, *shift = np.asarray(getattr(model, "calibration_", (1.0, *np.zeros(n_outputs)))).tolist()
        return cls(kind, slope, np.array(shift))

    def read(self, scores: FloatArray) -> FloatArray:
        """Probabilities of scores, (n_rows, n_classes)."""
        places = self.slope * scores.reshape(len(scores), -1) + self.shift
        if places.shape[1] > 1:
            return np.asarray(softmax(places, axis=1) if self.kind == "logit" else places)
        if self.kind == "logit":
            return np.concatenate([expit(-places), expit(places)], axis=1)
        share = np.clip(places + 0.5, 0.0, 1.0)
        return np.concatenate([1 - share, share], axis=1)

    def draw(self, graph: Graph, score: str) -> str:
        """The same as operations."""
        matrix = graph.apply("Reshape", score, graph.hold(np.array([-1, self.shift.size])))
        places = graph.apply("Add", graph.apply("Mul", matrix, graph.hold(self.slope)), graph.hold(self.shift[None, :]))
        if self.shift.size > 1:
            return graph.apply("Softmax", places, axis=1) if self.kind == "logit" else places
        if self.kind == "logit":
            ways = [graph.apply("Sigmoid", graph.apply("Neg", places)), graph.apply("Sigmoid", places)]
            return graph.apply("Concat", *ways, axis=1)
        moved = graph.apply("Add", places, graph.hold(0.5))
        share = graph.apply("Max", graph.apply("Min", moved, graph.hold(1.0)), graph.hold(0.0))
        return graph.apply("Concat", graph.apply("Sub", graph.hold(1.0), share), share, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """A model, how its columns are given, and what its classes are called."""

    model: Model
    columns: list[Column] | None
    """None for one matrix."""
    classes: Numbers
    names: list[str]
    """Of the columns, where they have names."""
    link: Link | None = None

    @property
    def n_outputs(self) -> int:
        """Scores of a row."""
        return self.model.members[0].n_outputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return _name_outputs(self.model, self.link)


def _name_outputs(model: Model, link: Link | None) -> tuple[str, ...]:
    first = model.members[0]
    if first.offset is not None:
        return ("value",)
    chances = () if link is None else ("probability",)
    return ("score", "label", *chances) if model.n_classes else ("score",)


def _open_model(model: Fitted) -> _Subject:
    subject = _open(model)
    if subject.model.has_trees:
        raise ValueError(
            "Trees that join many columns are not written as ONNX, whose trees compare and add in single precision: "
            "export the model by its own library."
        )
    return subject


def _open(model: Fitted) -> _Subject:
    if is_model(model):
        return _Subject(model, None, np.arange(model.n_classes), [])
    ensemble, encoding = getattr(model, "ensemble_", None), getattr(model, "encoding_", None)
    if not is_model(ensemble) or not isinstance(encoding, TableEncoding):
        raise TypeError(
            "`model` must be an AdditiveEnsemble, a WeightedVote or a fitted classifier or regressor of derand, got "
            f"a {type(model).__name__}."
        )
    link = Link.find(model, ensemble)
    columns = list_columns(encoding, _name_outputs(ensemble, link)) if encoding.categories else None
    return _Subject(ensemble, columns, np.asarray(getattr(model, "classes_", [])), list(encoding.names or ()), link)


def _tell_facts(subject: _Subject) -> dict[str, str]:
    """What is written beside the graph."""
    facts = {"derand": __version__, "columns": json.dumps(subject.names)}
    if subject.classes.size:
        facts["classes"] = json.dumps(subject.classes.tolist())
    return facts


def _draw(subject: _Subject) -> tuple[Graph, tuple[str, ...]]:
    """The graph of a model, and the names of its outputs."""
    graph = Graph()
    reader = _Reader(graph, subject)
    members, outputs = subject.model.members, subject.outputs
    totals = [_add_up(reader, member) for member in members]
    if subject.model.weights is None:
        n_columns = None if subject.n_outputs == 1 else subject.n_outputs
        score = graph.apply("Div", graph.cast(totals[0], np.float64), graph.hold(float(members[0].levels)))
        graph.add_output(outputs[0], score, np.dtype(np.float64), n_columns)
        chosen = _choose(graph, totals[0], members[0]) if "label" in outputs else ""
    else:
        sizes = np.abs(subject.model.weights)
        says = [_is_above(graph, *one) for one in zip(totals, members, strict=True)]
        lead = _add_votes(graph, says, subject.model.weights)
        score = graph.apply("Div", lead, graph.hold(max(math.fsum(sizes.tolist()), np.finfo(np.float64).tiny)))
        graph.add_output(outputs[0], score, np.dtype(np.float64), None)
        chosen = graph.cast(graph.apply("Greater", lead, graph.hold(_compute_tie_margin(sizes))), np.int64)
    if "label" in outputs:
        label = graph.apply("Gather", graph.hold(subject.classes), chosen, axis=0)
        graph.add_output("label", label, subject.classes.dtype, None)
    if subject.link is not None:
        chances = subject.link.draw(graph, score)
        graph.add_output("probability", chances, np.dtype(np.float64), subject.classes.size)
    return graph, outputs


def _add_up(reader: _Reader, member: AdditiveEnsemble) -> str:
    """The score of a sum with what is added to it, in grid units: whole numbers, of a linear model doubles."""
    graph, shift = reader.graph, compute_shift(member)
    first = np.zeros_like(shift) if member.is_linear else shift
    total = graph.apply("Expand", graph.hold(first), reader.shape_scores(member.n_outputs))
    for term in member.terms:
        (feature, *_) = term.features
        total = graph.apply("Add", total, reader.look_up(tabulate(term, reader.count_codes(feature))))
    if not member.is_linear:
        return total
    total = graph.cast(total, np.float64)
    for slope in member.slopes:
        total = graph.apply("Add", total, reader.multiply(slope))
    return graph.apply("Add", total, graph.hold(shift.astype(np.float64)))


def compute_shift(member: AdditiveEnsemble) -> IntArray:
    """What is added to scores, in grid units, so that the decision is made at 0, or by the largest."""
    if member.offsets:
        return np.array(member.offsets, dtype=np.int64)
    shift = member.offset if member.threshold is None else -member.threshold
    return np.array([shift or 0], dtype=np.int64)


def _choose(graph: Graph, total: str, member: AdditiveEnsemble) -> str:
    """The number of the class: the lower one of equal scores."""
    if member.n_outputs > 1:
        return graph.apply("ArgMax", total, axis=1, keepdims=0, select_last_index=0)
    return graph.cast(_is_above(graph, total, member), np.int64)


def _is_above(graph: Graph, total: str, member: AdditiveEnsemble) -> str:
    """Whether a sum decides for the second class."""
    return graph.apply("Greater", total, graph.hold(np.float64(0) if member.is_linear else np.int64(0)))


def _add_votes(graph: Graph, says: Sequence[str], weights: FloatArray) -> str:
    """By how much weight the second class is ahead."""
    lead = ""
    for one, weight in zip(says, weights.tolist(), strict=True):
        vote = graph.apply("Where", one, graph.hold(weight), graph.hold(-weight))
        lead = graph.apply("Add", lead, vote) if lead else vote
    return lead


def _compute_tie_margin(sizes: FloatArray) -> float:
    """What a lead must exceed: less is a tie that rounding tells apart, as in certificates of votes."""
    return float(4 * EPSILON * sizes.size * math.fsum(sizes.tolist()))


class _Reader:
    """Reads columns of the inputs: the cell of a value, and the scores of cells."""

    def __init__(self, graph: Graph, subject: _Subject) -> None:
        self.graph = graph
        self._columns = subject.columns
        if subject.columns is None:
            self._inputs = [graph.add_input(MATRIX, subject.model.n_features, is_text=False)]
        else:
            self._inputs = [graph.add_input(one.name, 1, is_text=one.is_text) for one in subject.columns]
        if not subject.model.n_features:
            raise ValueError("`model` must read at least one column to be written, got one that reads none.")

    def count_codes(self, feature: int) -> int | None:
        """How many categories a column has, where they have names."""
        if self._columns is None or self._columns[feature].values is None:
            return None
        return len(self._columns[feature].values or ())

    def shape_scores(self, n_outputs: int) -> str:
        """The shape of the scores of all rows."""
        graph = self.graph
        rows = graph.apply("Gather", graph.apply("Shape", self._inputs[0]), graph.hold(np.array([0])), axis=0)
        return rows if n_outputs == 1 else graph.apply("Concat", rows, graph.hold(np.array([n_outputs])), axis=0)

    def look_up(self, lookup: Lookup) -> str:
        """The scores of a term: of one output a vector, else a matrix."""
        graph, n_cells = self.graph, lookup.scores.shape[0]
        place, stride = "", n_cells
        for axis in lookup.axes:
            stride //= axis.size
            cell = self._number_cell(axis, refused=n_cells)
            if stride != 1:
                cell = graph.apply("Mul", cell, graph.hold(np.int64(stride)))
            place = graph.apply("Add", place, cell) if place else cell
        flat = graph.apply("Reshape", place, graph.hold(np.array([-1])))
        scores = lookup.scores[:, 0] if lookup.scores.shape[1] == 1 else lookup.scores
        return graph.apply("Gather", graph.hold(scores), flat, axis=0)

    def multiply(self, slope: Slope) -> str:
        """A number times its slopes, or what it adds where it is missing: of one output a vector, else a matrix."""
        graph, number = self.graph, self._read(slope.feature)
        products = graph.apply("Mul", number, graph.hold(slope.values[None, :]))
        if slope.missing is not None:
            gaps = graph.apply("IsNaN", number)
            products = graph.apply("Where", gaps, graph.hold(slope.missing[None, :]), products)
        return products if slope.values.size > 1 else graph.apply("Reshape", products, graph.hold(np.array([-1])))

    def _number_cell(self, axis: Cells, refused: int) -> str:
        """Number of the cell of a column's value; what is refused lies beyond all cells: an error of the runtime."""
        column = None if self._columns is None else self._columns[axis.feature]
        if column is not None and column.is_text:
            return self._encode_text(column)
        graph, value = self.graph, self._read(axis.feature)
        places = axis.places if column is None or column.values is None else np.array(column.values, dtype=np.float64)
        missing = graph.hold(np.int64(refused if axis.missing is None else axis.missing))
        cell = graph.hold(np.full((1, 1), places.size if axis.is_category else 0))
        if places.size:
            compare = "Equal" if axis.is_category else "GreaterOrEqual"
            held = graph.cast(graph.apply(compare, value, graph.hold(places[None, :])), np.int64)
            if axis.is_category:  # one is equal at most: what is added to k makes it the number of that one
                steps = graph.hold(np.arange(places.size)[None, :] - places.size)
                held = graph.apply("Mul", held, steps)
            count = graph.apply("ReduceSum", held, graph.hold(np.array([1])), keepdims=1)
            cell = graph.apply("Add", cell, count)
        return graph.apply("Where", graph.apply("IsNaN", value), missing, cell)

    def _encode_text(self, column: Column) -> str:
        values = [str(value) for value in column.values or ()]
        cells = dict(zip(values, range(len(values)), strict=True))
        cells.setdefault("", len(values) + 1)
        return self.graph.apply(
            LABEL_ENCODER,
            column.name,
            keys_strings=list(cells),
            values_int64s=list(cells.values()),
            default_int64=len(values),
        )

    def _read(self, feature: int) -> str:
        if self._columns is not None:
            return self._inputs[feature]
        return self.graph.apply("Gather", MATRIX, self.graph.hold(np.array([feature])), axis=1)


def _check(content: bytes, subject: _Subject, outputs: Sequence[str]) -> tuple[int, float | None]:
    """Compare the graph with the model on every edge; the number of rows, 0 where there is no runtime, and by how much
    probabilities differ."""
    try:
        import onnxruntime
    except ImportError:
        return 0, None
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    rows = _probe(subject)
    given = dict(zip(outputs, session.run(list(outputs), _as_feed(subject, rows)), strict=True))
    error = None
    for name, ours in compute_outputs(subject.model, subject.classes, rows, subject.link).items():
        is_equal = np.array_equal(given[name], ours)
        if name == "probability":
            error = float(np.abs(given[name] - ours).max(initial=0.0))
            is_equal = error <= _LARGEST_ERROR
        if not is_equal:
            raise ValueError(
                f"`model` cannot be written: onnxruntime {onnxruntime.__version__} computes another {name} than the "
                "model itself. Please report it with the versions of onnx and onnxruntime."
            )
    return len(rows), error


def compute_outputs(
    model: Model, classes: NDArray[np.generic], rows: FloatArray, link: Link | None = None
) -> dict[str, Numbers]:
    """What the outputs must be on encoded rows, computed by the model itself."""
    sums = [member.score(rows) + compute_shift(member) for member in model.members]
    outputs = _name_outputs(model, link)
    if model.weights is None:
        score = sums[0] / model.members[0].levels
        chosen = sums[0].argmax(axis=1) if sums[0].ndim == 2 else (sums[0] > 0).astype(np.int64)
    else:
        sizes = np.abs(model.weights)
        lead = np.zeros(len(rows))
        for one, weight in zip(sums, model.weights.tolist(), strict=True):
            lead = lead + np.where(one > 0, weight, -weight)
        score = lead / max(math.fsum(sizes.tolist()), np.finfo(np.float64).tiny)
        chosen = (lead > _compute_tie_margin(sizes)).astype(np.int64)
    found = {outputs[0]: np.asarray(score)}
    if "label" in outputs:
        found["label"] = np.asarray(classes[chosen])
    if link is not None:
        found["probability"] = link.read(found["score"])
    return found


def _probe(subject: _Subject) -> FloatArray:
    """Encoded rows on every edge and beside it, with missing and unseen values where these are taken."""
    parts = []
    for member in subject.model.members:
        codes = {term.features[0]: tuple(range(term.codes.size)) for term in member.terms if not term.axes}
        if subject.columns is not None:
            codes = {at: one.values for at, one in enumerate(subject.columns) if one.values is not None}
        most = max((axis.edges.size for term in member.terms for axis in term.axes), default=0)
        n_rows = int(np.clip(8 * most, _FEWEST_PROBES, _MOST_PROBES)) // len(subject.model.members)
        reading = Reading(TableEncoding(member.n_features, None, codes))
        parts.append(probe_rows(reading, member, max(n_rows, 1)))
    rows = np.concatenate(parts)
    refused = list(subject.model.refuses_missing)
    rows[:, refused] = np.nan_to_num(rows[:, refused])  # a member may take what another one refuses
    for at, column in enumerate(subject.columns or ()):
        if "" in (column.values or ()):  # a missing value cannot be given there: the empty text is a category
            rows[np.isnan(rows[:, at]), at] = -1.0
    return rows


def _as_feed(subject: _Subject, rows: FloatArray) -> dict[str, NDArray[np.generic]]:
    if subject.columns is None:
        return {MATRIX: rows}
    return {column.name: column.decode(rows[:, at]) for at, column in enumerate(subject.columns)}
