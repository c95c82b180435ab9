"""Why decisions flip within limits: counts by column and direction, of the changes that were found.

Owns how a change is told in kinds (up, down, to a category that training saw, ...) and how such counts are added up and
said. Must not know models or searches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, Labels
from derand._core.markup import write_block, write_lines, write_table
from derand._core.origin import Frame, Origin
from derand._core.text import Facts, format_count, plural, quote_short

DIRECTIONS = ("", "down", "up", "to a seen value", "to a new value", "goes missing", "appears")
"""What may happen to a column: a number moves, goes missing or appears; a category becomes one that training saw, or
any other. A column that stays has the first."""
_DOWN, _UP, _SEEN, _NEW, _GONE, _APPEARS = range(1, 7)
_MOST_LISTED = 3

Label = Any
"""One label: a number, text or a boolean."""
Answer = tuple[Label, Label]
"""A predicted and a true label; the true one None where it is not known."""
Pattern = tuple[Label, Label, Label, tuple[tuple[int, int], ...]]
"""Predicted and true label, label after the change, and each changed column with the place of its direction."""


def code_changes(before: FloatArray, after: FloatArray, categorical: Collection[int]) -> NDArray[np.int8]:
    """For each cell the place of its direction in DIRECTIONS.

    Examples
    --------
    >>> before, after = np.array([[1.0, 2.0, 0.0]]), np.array([[0.5, 2.0, -1.0]])
    >>> code_changes(before, after, [2]).tolist()
    [[1, 0, 4]]
    """
    codes = np.select([after < before, after > before], [_DOWN, _UP], 0).astype(np.int8)
    codes[np.isnan(after) & ~np.isnan(before)] = _GONE
    codes[np.isnan(before) & ~np.isnan(after)] = _APPEARS
    for column in categorical:
        own = codes[:, column]
        codes[:, column] = np.where(own == 0, 0, np.where(after[:, column] >= 0, _SEEN, _NEW))
    return codes


@dataclass(frozen=True, slots=True)
class AnswerFlips:
    """How many rows with an answer can get another one.

    Attributes
    ----------
    label, true, flipped : labels
        The answer, the true class (None where it is not known) and the answer after the change that was found.
    n_rows : int
        Rows with this answer, of this true class.
    n_flips : int
        Those that can get the answer `flipped`.
    n_alone : int
        Those of them of which one column changes alone.
    n_new : int
        Those of them for which no change was found but to a category that training did not see.
    """

    label: Label
    true: Label
    flipped: Label
    n_rows: int
    n_flips: int
    n_alone: int
    n_new: int


@dataclass(frozen=True, slots=True)
class ColumnFlips:
    """How many answers flip by a column that changes in a direction.

    Attributes
    ----------
    column : str or int
    direction : str
        "down", "up", "to a seen value", "to a new value", "goes missing" or "appears".
    label, true, flipped : labels
        As in AnswerFlips.
    n_rows : int
        Rows with this answer, of this true class.
    n_alone, n_together : int
        Rows that flip by this column alone, and those that flip by it together with others.
    others : mapping of column to int
        With which columns, in how many rows, the most frequent first.
    """

    column: str | int
    direction: str
    label: Label
    true: Label
    flipped: Label
    n_rows: int
    n_alone: int
    n_together: int
    others: Mapping[str | int, int]


@dataclass(frozen=True, slots=True, eq=False)
class FlipSummary:
    """Which columns flip decisions within limits, in which direction, and towards which answer.

    Each row is counted once, by the change that was found for it: another one may flip it, too. Changes have no column
    that the flip does not need, and go to categories that training saw where that was found to flip.

    Attributes
    ----------
    totals : mapping of (label, true label) to int
        How many rows there are, whether they flip or not.
    patterns : mapping
        How many rows flip by each set of changed columns: see `columns` and `answers`.
    names : tuple of str, or None
        Names of the columns; None for their numbers.
    unseen : bool
        Whether categories might change to values that training did not see.
    """

    totals: Mapping[Answer, int]
    patterns: Mapping[Pattern, int]
    names: tuple[str, ...] | None = None
    unseen: bool = True

    @classmethod
    def count(
        cls,
        labels: tuple[Labels, Labels | None, Labels],
        flips: NDArray[np.bool_],
        changes: NDArray[np.int8],
        names: tuple[str, ...] | None,
        *,
        unseen: bool,
    ) -> FlipSummary:
        """Count rows by their labels (predicted, true or None, after the change) and the codes of their changes."""
        label, true, flipped = (None if one is None else one.tolist() for one in labels)
        assert label is not None
        assert flipped is not None
        truth = [None] * len(label) if true is None else true
        patterns: Counter[Pattern] = Counter()
        for row in np.flatnonzero(flips).tolist():
            moved = np.flatnonzero(changes[row])
            told = tuple(zip(moved.tolist(), changes[row, moved].tolist(), strict=True))
            patterns[label[row], truth[row], flipped[row], told] += 1
        return cls(Counter(zip(label, truth, strict=True)), patterns, names, unseen)

    def __add__(self, other: FlipSummary) -> FlipSummary:
        """The summary of these rows and of others."""
        totals, patterns = Counter(self.totals), Counter(self.patterns)
        totals.update(other.totals)
        patterns.update(other.patterns)
        return FlipSummary(totals, patterns, self.names, self.unseen)

    @property
    def n_flips(self) -> int:
        """How many rows flip."""
        return sum(self.patterns.values())

    @property
    def answers(self) -> tuple[AnswerFlips, ...]:
        """How many rows of each answer can get which other one, the most frequent first."""
        found: dict[tuple[Label, Label, Label], list[int]] = {}
        for (label, true, flipped, moved), count in self.patterns.items():
            counts = found.setdefault((label, true, flipped), [0, 0, 0])
            is_new = any(code == _NEW for _, code in moved)
            for at, one in enumerate((count, count * (len(moved) == 1), count * is_new)):
                counts[at] += one
        made = [AnswerFlips(*key, self.totals[key[:2]], *counts) for key, counts in found.items()]
        return tuple(sorted(made, key=lambda one: (-one.n_flips, str((one.label, one.true, one.flipped)))))

    @property
    def columns(self) -> tuple[ColumnFlips, ...]:
        """How many answers flip by each column and direction, the most frequent first."""
        counts: dict[tuple[str | int, str, Label, Label, Label], list[int]] = {}
        others: dict[tuple[str | int, str, Label, Label, Label], Counter[str | int]] = {}
        for (*answer, moved), count in self.patterns.items():
            label, true, flipped = answer
            for column, code in moved:
                key = (self._name(column), DIRECTIONS[code], label, true, flipped)
                counts.setdefault(key, [0, 0])[len(moved) > 1] += count
                others.setdefault(key, Counter()).update({self._name(at): count for at, _ in moved if at != column})
        made = [
            ColumnFlips(*key, self.totals[key[2], key[3]], alone, together, dict(others[key].most_common()))
            for key, (alone, together) in counts.items()
        ]
        return tuple(sorted(made, key=lambda one: (-one.n_alone - one.n_together, -one.n_alone, str(one))))

    def _name(self, column: int) -> str | int:
        return column if self.names is None else self.names[column]

    def merge_truth(self) -> FlipSummary:
        """The same without true classes."""
        totals: Counter[Answer] = Counter()
        patterns: Counter[Pattern] = Counter()
        for (label, _), count in self.totals.items():
            totals[label, None] += count
        for (label, _, *rest), count in self.patterns.items():
            patterns[label, None, *rest] += count
        return FlipSummary(totals, patterns, self.names, self.unseen)

    def list_sentences(self, class_names: Mapping[str, str] | None = None) -> list[str]:
        """What can become of each answer, in words.

        Parameters
        ----------
        class_names : mapping of str, or None
            How classes are called, such as {"1": "approved"}.
        """
        called = {} if class_names is None else class_names
        return [_describe_answer(one, called) for one in self.answers]

    def to_pandas(self) -> Frame:
        """A pandas frame: one line per column, direction, answer, true class where it is known, and new answer."""
        lines = [asdict(one) for one in self.columns]
        names = [name for name in ColumnFlips.__dataclass_fields__ if name != "true" or self._has_truth]
        columns = {name: _as_column([line[name] for line in lines]) for name in names if name != "others"}
        columns["others"] = _as_column([describe_others(one) for one in self.columns])
        return Origin().make_table(columns)

    @property
    def _has_truth(self) -> bool:
        return any(true is not None for _, true in self.totals)

    def to_dict(self) -> Facts:
        """All figures as plain numbers and text, for JSON."""
        return {
            "unseen": self.unseen,
            "flips": self.n_flips,
            "answers": [_as_text(asdict(one)) for one in self.answers],
            "columns": [_as_text(asdict(one)) for one in self.columns],
            "sentences": self.list_sentences(),
        }

    def __repr__(self) -> str:
        rows = plural(sum(self.totals.values()), "row")
        return f"<FlipSummary: {format_count(self.n_flips)} of {rows} flip, by {len(self.columns)} kinds of change>"

    def _repr_html_(self) -> str:
        """For notebooks: the sentences and the table."""
        lines = []
        for one in self.merge_truth().columns:
            counts = (one.n_alone, one.n_together, describe_others(one))
            lines.append((one.column, one.direction, f"{one.label} → {one.flipped}", *counts))
        head = ("column", "direction", "answer", "alone", "with others", "others")
        return write_block("Flips", write_lines(self.merge_truth().list_sentences()), write_table(head, lines))


def describe_others(one: ColumnFlips) -> str:
    """With which columns, the most frequent first."""
    listed = [f"{name} {count:,}" for name, count in list(one.others.items())[:_MOST_LISTED]]
    more = len(one.others) - len(listed)
    return ", ".join([*listed, f"{more} more"] if more else listed)


def _describe_answer(one: AnswerFlips, called: Mapping[str, str]) -> str:
    """One kind of flip as a sentence.

    Examples
    --------
    >>> _describe_answer(AnswerFlips("yes", None, "no", 1204, 87, 60, 0), {"yes": "approved", "no": "refused"})
    "Of 1,204 rows with the answer 'approved', 87 can become 'refused': 60 by one column alone."
    """
    labels = (one.label, one.true, one.flipped)
    label, true, flipped = (quote_short(called.get(str(name), str(name))) for name in labels)
    rows = f"{plural(one.n_rows, 'row')} with the answer {label}{'' if one.true is None else f', truly {true}'}"
    parts = [f"{format_count(one.n_alone)} by one column alone"]
    parts += [f"{format_count(one.n_new)} only by a category that training did not see"] if one.n_new else []
    return f"Of {rows}, {format_count(one.n_flips)} can become {flipped}: {'; '.join(parts)}."


def _as_text(line: Facts) -> Facts:
    """A line of figures for JSON: labels as text."""
    told = {name: None if line[name] is None else str(line[name]) for name in ("label", "true", "flipped")}
    return {**line, **told}


def _as_column(values: Iterable[Any]) -> Labels:
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    kinds = {type(value) for value in listed}
    return array.astype(np.int64) if kinds == {int} else array
