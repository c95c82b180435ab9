"""Reasons and promises in words, in the user's names and values. Must not know how they are proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand._core.markup import write_block, write_lines
from derand._core.text import format_percent, format_short, format_short_up, join_words, plural, quote_short
from derand.certificates import REASON_PROOFS, Promise, Promises, Reason
from derand.explain._names import Names

_DIGITS = 3
_SWINGS = 5
WITHIN = "whatever the other entries within their domain"


def describe_reason(names: Names, row: FloatArray, columns: Sequence[int]) -> str:
    """Columns of a row that are enough for its answer, as a sentence.

    Examples
    --------
    >>> describe_reason(Names(("age", "job"), {1: ("cook",)}), np.array([31.0, 0.0]), (0, 1))
    "'age' = 31 and 'job' = 'cook' were enough for this answer, whatever the other entries within their domain."
    """
    if not columns:
        return "No entry was needed: every row of the domain gets this answer."
    told = [f"{names.quote(at)} = {names.quote_value(at, float(row[at]))}" for at in columns]
    return f"{join_words(told)} {'was' if len(told) == 1 else 'were'} enough for this answer, {WITHIN}."


def list_reason_sentences(names: Names, row: FloatArray, reasons: Sequence[Reason]) -> tuple[str, ...]:
    """All sets of columns of a row; of several the first one says how small it is proven to be."""
    if not reasons:
        return ()
    first, *others = (describe_reason(names, row, one.columns) for one in reasons)
    proof = REASON_PROOFS[reasons[0].proof]
    size = len(reasons[0].columns)
    sizes = {"smallest": "No set of fewer columns is enough.", "irreducible": "None of them can be left out."}
    told = f" {sizes[proof]}" if size and proof in sizes else ""
    return (first + told, *(f"Also {other}" for other in others))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelPromises(Promises):
    """What is proven about every row of a domain, in the names of a table. `print` tells it.

    Attributes
    ----------
    promises : tuple of Promise
        What was asked; columns by number, rows as the model reads them (`decode_rows` turns them back).
    swings : tuple of TermSwing
    lowest, highest : float
    change : LargestChange or None
    score_error : float
    names : Names
    classes : array
        Empty for a number as the answer.
    labels : tuple of tuples
        For each promise the answers of its rows.
    unit : str
        What scores are measured in.
    domain_text : str
        The domain in words.
    """

    names: Names
    classes: NDArray[np.generic]
    labels: tuple[tuple[object, ...], ...]
    unit: str
    domain_text: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every promise in words; of classes those that no row was found to get."""
        told = [
            self._describe(promise, labels)
            for promise, labels in zip(self.promises, self.labels, strict=True)
            if promise.kind != "class" or promise.verdict != "counterexample"
        ]
        return (*told, *self._describe_score())

    def _describe(self, promise: Promise, labels: Sequence[object]) -> str:
        if promise.kind == "class":
            name = _quote(self.classes[int(promise.asked)])
            is_proven = promise.verdict == "proven"
            return f"No row gets {name}: proven." if is_proven else f"Whether any row gets {name} is undecided."
        if promise.kind == "monotone":
            return self._describe_direction(promise)
        who = self._name_columns(promise.columns)
        alone, moves = ("alone", "It moves") if len(promise.columns) == 1 else ("together", "They move")
        size = f"{moves} the score by {format_short_up(promise.size, _DIGITS)} {self.unit} at most"
        share = _describe_share(promise.share)
        if promise.verdict == "proven":
            return f"{who} {alone} can never change an answer: proven for every row of the domain."
        if promise.verdict == "undecided":
            return f"Whether {who} {alone} can change an answer is undecided. {size}.{share}"
        assert promise.rows is not None  # a counterexample
        moved = self._describe_moves(promise.rows, promise.columns)
        turned = f"turns {_quote(labels[0])} into {_quote(labels[1])}"
        return f"{who} {alone} can change an answer: there is a row where changing {moved} {turned}. {size}.{share}"

    def _describe_direction(self, promise: Promise) -> str:
        (at,) = promise.columns
        wrong, name = "fall" if promise.asked == "increasing" else "rise", self.names.quote(at)
        score = "The score" if self.classes.size < 3 else "The score of a class against one before it"
        if promise.verdict == "proven":
            return f"{score} never {wrong}s where {name} rises: proven."
        if promise.rows is None:
            return f"Whether the score can {wrong} where {name} rises is undecided."
        low, high = (self.names.write(at, float(row[at])) for row in promise.rows)
        return (
            f"{score} can {wrong} where {name} rises: by {format_short(promise.size, _DIGITS)} {self.unit} from {low} "
            f"to {high}."
        )

    def _describe_moves(self, rows: FloatArray, columns: Sequence[int]) -> str:
        moved = [at for at in columns if rows[0, at] != rows[1, at] and not np.isnan(rows[:, at]).all()]
        told = [
            f"{self.names.quote(at)} from {self.names.quote_value(at, float(rows[0, at]))} to "
            f"{self.names.quote_value(at, float(rows[1, at]))}"
            for at in moved
        ]
        return join_words(told)

    def _describe_score(self) -> list[str]:
        told = []
        if np.isfinite(self.lowest) and np.isfinite(self.highest):
            what = "The score, less its threshold," if self.classes.size else "The score"
            ends = f"{format_short(self.lowest, _DIGITS)} to {format_short(self.highest, _DIGITS)}"
            told.append(f"{what} lies from {ends} {self.unit}.")
        if self.change is not None:
            norm = "inf" if np.isinf(self.change.norm) else f"{self.change.norm:g}"
            reached = "which two rows reach" if self.change.is_exact else "an upper bound"
            size = format_short_up(self.change.size, _DIGITS)
            told.append(
                f"Within {self.change.radius:g} (l{norm}, in the model's units) of any row the score changes by {size} "
                f"{self.unit} at most, {reached}."
            )
        return told

    def _name_columns(self, columns: Sequence[int]) -> str:
        return join_words([self.names.quote(at) for at in columns])

    def __str__(self) -> str:
        swings = [
            f"{self._name_columns(one.columns)} {format_short_up(one.size, _DIGITS)}"
            + (f" ({one.direction})" if one.direction else "")
            for one in self.swings[:_SWINGS]
        ]
        left = len(self.swings) - len(swings)
        more = f", and {plural(left, 'more column or group', 'more columns and groups')}" if left else ""
        parts = [f"For every row of the domain ({self.domain_text}):", *(f"  {one}" for one in self.sentences)]
        if swings:
            parts.append(f"  Largest swings of the score (upper bounds), in {self.unit}: {'; '.join(swings)}{more}.")
        if self.score_error:
            parts.append(
                f"  Proofs hold for every model whose score lies within {format_short_up(self.score_error, _DIGITS)} "
                "of this one's; swings and directions are this one's."
            )
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"<Promises: {'; '.join(f'{one.kind} {one.verdict}' for one in self.promises)}>"

    def _repr_html_(self) -> str:
        head, *lines = str(self).split("\n")
        return write_block(head, write_lines(lines))


def name_promises(
    found: Promises,
    names: Names,
    classes: NDArray[np.generic],
    labels: Sequence[Sequence[object]],
    unit: str,
    domain_text: str,
) -> ModelPromises:
    """Promises in the names of a table."""
    own = {one.name: getattr(found, one.name) for one in fields(Promises)}
    return ModelPromises(
        **own, names=names, classes=classes, labels=tuple(map(tuple, labels)), unit=unit, domain_text=domain_text
    )


def _describe_share(share: tuple[float, float] | None) -> str:
    if share is None:
        return ""
    low, high = format_percent(share[0]), format_percent(share[1], way="up")
    between = format_percent(share[0], way="nearest") if share[0] == share[1] else f"between {low} and {high}"
    return f" That changes the answer of {between} of the rows of the table."


def _quote(label: object) -> str:
    return quote_short(str(label)) if isinstance(label, str) else str(label)
