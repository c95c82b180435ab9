"""Watching a model in use: whether what was proven of its answers still holds on later batches of rows.

Owns what is counted of each batch, and which changes since the first one are beyond chance. Must not know how it looks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import BoolArray, FloatArray
from derand._core.files import PathLike, replace_when_done
from derand._core.origin import Fitted
from derand._core.text import Facts, format_count, format_percent_interval, join_words, plural
from derand.metrics import EstimateSummary, adjust_chances, compare_shares, compute_wilson_interval, subtract_shares
from derand.report import _page
from derand.report._facts import NoiseFacts
from derand.report._inputs import read_inputs, read_subject
from derand.report._settings import Groups, ReportSettings
from derand.report.sections.accuracy import DEFAULT_RADIUS
from derand.report.sections.computed import describe_noise
from derand.report.sections.subgroups import read_groups, resolve_groups
from derand.report.sections.threat import list_words
from derand.storage import FileMark, hash_model

if TYPE_CHECKING:
    import pandas as pd

    from derand.threat import Threat

MeasureKind = Literal["holds", "class", "group", "outside", "right", "answer", "column"]
_TESTED: tuple[MeasureKind, ...] = ("holds", "class", "group", "outside", "right", "answer")
"""What an alarm may come from; how often columns flip says why, and is compared by itself."""
_LEAST_ROWS = 2


class Counted(TypedDict):
    """How many rows of a batch count, of how many, and how that differs from the first batch."""

    kind: MeasureKind
    title: str
    count: int
    total: int
    share: EstimateSummary | None
    """With its 95 % interval; null where the batch has no such rows."""
    text: str
    difference: EstimateSummary | None
    """From the first batch."""
    chance: float | None
    """The probability of so large a difference by chance, raised for the number of comparisons of the batch."""
    mark: Literal["", "more", "less"]


class Batch(TypedDict):
    """A batch of rows, and what is counted of it."""

    name: str
    n_rows: int
    flips: int | None
    undecided: int | None
    measures: list[Counted]
    outside: dict[str, int]
    """By column, how many of its values training did not see."""
    alarm: bool
    sentence: str


class MonitorSummary(TypedDict):
    """All that a page about batches says."""

    title: str
    sentence: str
    held: str
    """What "hold" means here."""
    rate: float
    n_comparisons: int
    threat: list[str]
    norm: float | None
    radius: float | None
    rule: str
    noise: NoiseFacts
    names: list[str]
    has_ranges: bool
    batches: list[Batch]
    checksums: list[tuple[str, str]]


class _Measure(NamedTuple):
    """Which rows are looked at, and which of them count."""

    kind: MeasureKind
    title: str
    among: BoolArray
    counts: BoolArray


class Monitor:
    """Whether a guarantee still holds on later batches of rows: what is proven of each, beside the first one.

    An alarm says that a share differs from that of the first batch by more than chance: how many answers hold within
    the threat, of all rows, by answer and by subgroup, how often each answer is given, and how many rows lie outside of
    what training saw. Where nothing has changed, a batch gives an alarm with at most the probability `rate`, however
    many shares there are, as long as rows are drawn independently of each other (Fisher's exact test, Holm's method).

    Parameters
    ----------
    model : fitted classifier of derand
    batches : mapping of name to table, or sequence of tables
        The first one is what the others are compared with.
    y : mapping of name to labels, or sequence of labels, optional
        True labels of each batch: right answers are compared, too.
    threat : Threat, optional
        What may change; by default what the model was trained against.
    radius : float, optional
        Where the threat has a ball: what counts as "holds" is a certified radius of at least this. By default 0.25, in
        norm 0 one column.
    rule, noise : optional
        As for `Report`.
    subgroups : column name or number, list of those, or dict, optional
        Whose groups are looked at. The values of a dict are a column, or for each batch one group per row.
    X_train : table, optional
        Training rows: numbers beyond their range are counted, too. Values of categories that training did not see are
        known without.
    rate : float
        Highest probability of an alarm of a batch where nothing has changed.
    title : str, optional
    marks : mapping of text to FileMark, optional
        Files whose checksums are told.

    Attributes
    ----------
    alarms : list of str
        Names of the batches that give one.

    Examples
    --------
    >>> import numpy as np
    >>> from derand import Monitor, StumpClassifier
    >>> rng = np.random.default_rng(1)
    >>> january = rng.normal(size=(500, 2))
    >>> clf = StumpClassifier(noise="gaussian:0.25").fit(january, (january[:, 0] > 0).astype(int))
    >>> february, march = rng.normal(size=(500, 2)), rng.normal(scale=0.3, size=(500, 2))
    >>> found = Monitor(clf, [january, february, march])
    >>> found.alarms
    ['batch 3']
    """

    def __init__(
        self,
        model: Fitted,
        batches: Mapping[str, Any] | Sequence[Any],
        *,
        y: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
        threat: Threat | None = None,
        radius: float | None = None,
        rule: str | None = None,
        noise: Any = None,
        subgroups: Groups | None = None,
        X_train: Any = None,
        rate: float = 0.05,
        title: str | None = None,
        marks: Mapping[str, FileMark] | None = None,
    ) -> None:
        if hasattr(model, "certify_interval"):
            raise TypeError(
                f"`model` must be a classifier, got {type(model).__name__}: whether numbers hold needs a tolerance; "
                "compare the widths of `certify_interval` instead."
            )
        tables = _name_batches(batches)
        truths = _match_labels(y, tables)
        self._rate = _read_rate(rate)
        subject = read_subject(model, noise, None)
        settings = ReportSettings(
            threat=getattr(model, "default_threat", None) if threat is None else threat, rule=rule, radius=radius
        )
        settings.require_for(regressor=False)
        self._inputs = {name: read_inputs(subject, rows, truths.get(name), settings) for name, rows in tables.items()}
        self._title, self._marks, self._model = title or "Monitor", dict(marks or {}), model
        every = list(self._inputs.values())
        self._norm = every[0].threat.norm
        self._radius = _choose_radius(radius, self._norm)
        n_rows = [one.n_rows for one in every]
        self._batch = np.repeat(np.arange(len(every)), n_rows)
        self._pooled = replace(every[0], matrix=np.concatenate([one.matrix for one in every]), truth=None)
        self._groups = read_groups(self._pooled, _pool_groups(subgroups, n_rows, subject.names))
        self._ranges = None if X_train is None else _find_ranges(model, X_train)

    @cached_property
    def _summary(self) -> MonitorSummary:
        first = next(iter(self._inputs.values()))
        outside = self._find_outside()
        measures = self._list_measures(outside)
        batches = [self._describe_batch(at, name, measures, outside) for at, name in enumerate(self._inputs)]
        n_comparisons = sum(one.kind in _TESTED for one in measures)
        found: MonitorSummary = {
            "title": self._title,
            "sentence": _conclude([one for one in batches if one["alarm"]], len(batches)),
            "held": self._say_held(),
            "rate": self._rate,
            "n_comparisons": n_comparisons,
            "threat": list_words(replace(first, has_threat=True)),
            "norm": None if self._norm is None else float(self._norm),
            "radius": self._radius,
            "rule": first.rule,
            "noise": describe_noise(first),
            "names": list(self._inputs),
            "has_ranges": self._ranges is not None,
            "batches": batches,
            "checksums": self._list_checksums(),
        }
        return found

    @property
    def alarms(self) -> list[str]:
        """Names of the batches that give one."""
        return [one["name"] for one in self._summary["batches"] if one["alarm"]]

    def to_dict(self) -> MonitorSummary:
        """All that the page says, as plain numbers, text, lists and dicts."""
        return self._summary

    def to_json(self) -> str:
        """The dict as JSON."""
        return json.dumps(self._summary, allow_nan=False, ensure_ascii=False)

    def to_pandas(self) -> pd.DataFrame:
        """One line per batch and share: kind, title, count, total, share, low, high, chance and mark."""
        import pandas as pd

        lines = []
        for batch in self._summary["batches"]:
            for one in batch["measures"]:
                share = one["share"] or {"value": math.nan, "low": math.nan, "high": math.nan}
                told = {name: one[name] for name in ("kind", "title", "count", "total")}
                ends = {"share": share["value"], "low": share["low"], "high": share["high"]}
                lines.append({"batch": batch["name"], **told, **ends, "chance": one["chance"], "mark": one["mark"]})
        return pd.DataFrame(lines)

    def to_html(self) -> str:
        """One HTML page with everything inside."""
        return _page.to_monitor_html(self._summary)

    def to_markdown(self) -> str:
        """The same as Markdown."""
        return _page.to_monitor_markdown(self._summary)

    def write(self, path: PathLike) -> None:
        """Write it to a file, in the format that the end of its name says: .html, .md or .json.

        Parameters
        ----------
        path : path-like
        """
        formats = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        ending = Path(path).suffix.lower()
        if ending not in formats:
            raise ValueError(f"`path` must end with one of {', '.join(formats)}, got {str(path)!r}.")
        with replace_when_done(path) as draft:
            draft.write_text(formats[ending](), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Monitor: {plural(len(self._inputs), 'batch', 'batches')}, {len(self.alarms)} with an alarm>"

    def _list_measures(self, outside: BoolArray) -> list[_Measure]:
        """What is counted, of the rows of all batches."""
        every = [one.plain for one in self._inputs.values()]
        label = np.concatenate([one.label for one in every])
        holds = self._find_holding()
        always = np.ones(holds.size, dtype=bool)
        measures = [_Measure("holds", "all rows", always, holds)]
        for name in every[0].classes.tolist():
            measures.append(_Measure("class", f"answer {str(name)!r}", np.asarray(label == name), holds))
        for grouping in self._groups:
            for name in grouping.order:
                measures.append(
                    _Measure("group", f"{grouping.title}: {name}", np.asarray(grouping.names == name), holds)
                )
        names = every[0].classes.tolist()
        for name in names[1:] if len(names) == 2 else names:  # of two answers one says the other
            measures.append(_Measure("answer", f"answer {str(name)!r}", always, np.asarray(label == name)))
        measures.append(_Measure("outside", "outside of what training saw", always, np.asarray(outside.any(axis=1))))
        correct = [one.correct for one in self._inputs.values()]
        if all(one is not None for one in correct):
            right = np.concatenate([one for one in correct if one is not None])
            measures.append(_Measure("right", "right answers", always, right))
        return measures + self._list_column_measures(always)

    def _list_column_measures(self, always: BoolArray) -> list[_Measure]:
        """How often each column has a part in a flip, where limits alone say what may change."""
        changes = [one.plain.changed for one in self._inputs.values()]
        if any(one is None for one in changes):
            return []
        moved = np.concatenate([one for one in changes if one is not None])
        return [
            _Measure("column", name, always, moved[:, at])
            for at, name in enumerate(self._pooled.subject.names)
            if moved[:, at].any()
        ]

    def _find_holding(self) -> BoolArray:
        found = np.concatenate([one.plain.radius for one in self._inputs.values()])
        return np.asarray(found > 0 if self._radius is None else found >= self._radius)

    def _find_outside(self) -> BoolArray:
        """Which values training did not see, (n_rows, n_features)."""
        encoding, matrix = self._model.encoding_, self._pooled.matrix
        outside = np.zeros(matrix.shape, dtype=bool)
        for column in encoding.categories:
            outside[:, column] = matrix[:, column] < 0
        ends = {column: (float(least), float(most)) for column, (least, most) in encoding.whole.items()}
        for column, (least, most) in {**ends, **(self._ranges or {})}.items():
            outside[:, column] = (matrix[:, column] < least) | (matrix[:, column] > most)
        return outside

    def _describe_batch(self, at: int, name: str, measures: Sequence[_Measure], outside: BoolArray) -> Batch:
        here, first = self._batch == at, self._batch == 0
        chances: dict[int, float] = {}
        for kinds in (_TESTED, ("column",)):
            tests = {
                k: compare_shares(*_count(one, here), *_count(one, first))
                for k, one in enumerate(measures)
                if at and one.kind in kinds and _count(one, here)[1] and _count(one, first)[1]
            }
            chances |= dict(zip(tests, adjust_chances(list(tests.values())), strict=True))
        counted = [
            _describe(one, here, first if at else None, chances.get(k), self._rate) for k, one in enumerate(measures)
        ]
        marked = [one for one in counted if one["mark"] and one["kind"] in _TESTED]
        verdict = list(self._inputs.values())[at].plain.verdict
        names = self._pooled.subject.names
        beyond = outside[here].sum(axis=0)
        return {
            "name": name,
            "n_rows": int(here.sum()),
            "flips": None if verdict is None else int((verdict == "flips").sum()),
            "undecided": None if verdict is None else int((verdict == "undecided").sum()),
            "measures": counted,
            "outside": {names[column]: int(beyond[column]) for column in np.flatnonzero(beyond).tolist()},
            "alarm": bool(marked),
            "sentence": _say_marked(marked),
        }

    def _say_held(self) -> str:
        if self._norm is None:
            return "An answer holds where it is proven that no change within the limits flips it."
        if self._norm == 0:
            numbers = plural(int(self._radius or 1), "number")
            return f"An answer holds where it is proven that no change of {numbers} flips it."
        return f"An answer holds where it is proven that no change smaller than {self._radius:g} flips it."

    def _list_checksums(self) -> list[tuple[str, str]]:
        if self._marks:
            return [(f"{what}, {mark.file}", mark.sha256) for what, mark in self._marks.items()]
        return [("model, as it would be saved", hash_model(self._model))]


def _name_batches(batches: Mapping[str, Any] | Sequence[Any]) -> Facts:
    if isinstance(batches, Mapping):
        named = {str(name): rows for name, rows in batches.items()}
    elif isinstance(batches, list | tuple):
        named = {f"batch {number}": rows for number, rows in enumerate(batches, start=1)}
    else:
        raise TypeError(
            f"`batches` must be a list of tables or a dict of names to tables, got {type(batches).__name__}."
        )
    if len(named) < _LEAST_ROWS:
        raise ValueError(f"`batches` must hold two tables or more: the first is compared with, got {len(named)}.")
    return named


def _match_labels(y: Any, tables: Mapping[str, Any]) -> Facts:
    """True labels by the name of their batch."""
    if y is None:
        return {}
    named = dict(y) if isinstance(y, Mapping) else dict(zip(tables, y, strict=False))
    if set(named) != set(tables) or len(y) != len(tables):
        raise ValueError(f"`y` must hold labels for each of the {len(tables)} batches, got {len(y)}.")
    return named


def _read_rate(rate: float) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
        raise ValueError(f"`rate` must be a probability between 0 and 1, such as 0.05, got {rate!r}.")
    return float(rate)


def _choose_radius(radius: float | None, norm: Any) -> float | None:
    if norm is not None:
        return float(radius or (1 if norm == 0 else DEFAULT_RADIUS))
    if radius is not None:
        raise ValueError(f"`radius` must be left out where limits alone say what may change, got {radius!r}.")
    return None


def _pool_groups(groups: Groups | None, n_rows: Sequence[int], names: Sequence[str]) -> Groups | None:
    """The same for the rows of all batches: one group per row of each becomes one list."""
    if not isinstance(groups, Mapping):
        resolve_groups(names, groups, 0)  # refused before any work
        return groups
    pooled: Facts = {}
    for title, values in groups.items():
        if isinstance(values, str | int | np.integer):
            pooled[title] = values
            continue
        parts = list(values.values()) if isinstance(values, Mapping) else list(values)  # type: ignore[arg-type]
        if [np.shape(one) for one in parts] != [(count,) for count in n_rows]:
            raise ValueError(
                f"`subgroups[{title!r}]` must hold, for each batch, one group per row: {list(n_rows)} in all, got "
                f"{[np.size(one) for one in parts]}."
            )
        pooled[title] = [value for one in parts for value in np.asarray(one, dtype=object).tolist()]
    return pooled


def _find_ranges(model: Fitted, X_train: Any) -> dict[int, tuple[float, float]]:
    """The least and the largest number of each column in training."""
    from derand.fitted import encode_rows

    matrix: FloatArray = encode_rows(model, X_train)
    found = {}
    for column in model.encoding_.numerical:
        values = matrix[:, column][~np.isnan(matrix[:, column])]
        if values.size:
            found[int(column)] = float(values.min()), float(values.max())
    return found


def _count(measure: _Measure, rows: BoolArray) -> tuple[int, int]:
    among = measure.among & rows
    return int((among & measure.counts).sum()), int(among.sum())


def _describe(
    measure: _Measure, rows: BoolArray, first: BoolArray | None, chance: float | None, rate: float
) -> Counted:
    count, total = _count(measure, rows)
    share = compute_wilson_interval(count, total) if total else None
    difference, mark = None, ""
    if first is not None and share is not None and _count(measure, first)[1]:
        difference = subtract_shares(share, compute_wilson_interval(*_count(measure, first)))
        if chance is not None and chance <= rate:
            mark = "more" if difference.value > 0 else "less"
    return {
        "kind": measure.kind,
        "title": measure.title,
        "count": count,
        "total": total,
        "share": None if share is None else share.to_dict(),
        "text": "\N{EN DASH}" if share is None else format_percent_interval(*share),
        "difference": None if difference is None else difference.to_dict(),
        "chance": chance,
        "mark": mark,  # type: ignore[typeddict-item]
    }


_SAID: dict[MeasureKind, tuple[str, str]] = {
    "holds": ("more answers hold", "fewer answers hold"),
    "class": ("more of {} hold", "fewer of {} hold"),
    "group": ("more of {} hold", "fewer of {} hold"),
    "answer": ("{} is given more often", "{} is given less often"),
    "outside": ("more rows are outside of what training saw", "fewer rows are outside of what training saw"),
    "right": ("more answers are right", "fewer answers are right"),
}
_MOST_SAID = 6


def _say_marked(marked: Sequence[Counted]) -> str:
    """What differs from the first batch."""
    if not marked:
        return "nothing differs from the first batch by more than chance"
    said = [_SAID[one["kind"]][one["mark"] == "less"].format(one["title"]) for one in marked[:_MOST_SAID]]
    more = len(marked) - len(said)
    return join_words([*said, *([f"{format_count(more)} more differences"] if more else [])])


def _conclude(alarms: Sequence[Batch], n_batches: int) -> str:
    """Whether the guarantee still holds, in a sentence."""
    if not alarms:
        others = "The other batch does" if n_batches == 2 else f"The other {n_batches - 1} batches do"
        return f"{others} not differ from the first one by more than chance."
    told = "; ".join(f"{one['name']}: {one['sentence']}" for one in alarms[:3])
    return f"{plural(len(alarms), 'batch differs', 'batches differ')} from the first one by more than chance. {told}."
