"""Limits alone: how many answers hold within them, how many flip, and the changes that flip the first rows."""

from __future__ import annotations

import math

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import format_count, format_exactly, format_move, format_short
from derand.certificates import Verifier, certify, find_labels, refine_change
from derand.explaining import Names, say_change
from derand.report._inputs import Inputs
from derand.report._text import join_words, plural, shorten
from derand.report._types import VerdictCount, Verdicts, Witness, WitnessChange

MAX_WITNESSES = 20
_DIGITS = 6
_SAID = 5
_NAMED = 12


def summarize_verdicts(inputs: Inputs) -> Verdicts | None:
    """Counts for all rows and each class, and witnesses of the first rows that flip; None where there is a ball."""
    flips = inputs.plain.flips
    if flips is None:
        return None
    counts = [_count(inputs, "all rows", np.ones(inputs.n_rows, dtype=bool))]
    if inputs.labels is not None:
        chosen = [(str(name), np.asarray(inputs.labels == name)) for name in inputs.subject.classes.tolist()]
        counts += [_count(inputs, name, at) for name, at in chosen if at.any()]
    return {
        "sentence": _say_verdicts(counts[0]),
        "counts": counts,
        "held": _list_held(inputs, "holds"),
        "undecided": _list_held(inputs, "undecided"),
        "witnesses": [describe_witness(inputs, row) for row in np.flatnonzero(flips)[:MAX_WITNESSES].tolist()],
    }


def _count(inputs: Inputs, name: str, at: BoolArray) -> VerdictCount:
    verdict = inputs.plain.verdict
    assert verdict is not None  # limits alone: see `summarize_verdicts`
    holds, flips, undecided = (int((verdict[at] == what).sum()) for what in ("holds", "flips", "undecided"))
    return {"name": name, "n_rows": int(at.sum()), "holds": holds, "flips": flips, "undecided": undecided}


def _say_verdicts(count: VerdictCount) -> str:
    """The split in one sentence.

    Examples
    --------
    >>> _say_verdicts({"name": "all rows", "n_rows": 9, "holds": 6, "flips": 1, "undecided": 2})
    '1 of 9 decisions can be flipped within these limits; 6 are proven to hold; 2 are undecided.'
    """
    holds, undecided = (
        f"{format_count(number)} {'is' if number == 1 else 'are'} {what}"
        for number, what in ((count["holds"], "proven to hold"), (count["undecided"], "undecided"))
    )
    total = plural(count["n_rows"], "decision")
    return f"{format_count(count['flips'])} of {total} can be flipped within these limits; {holds}; {undecided}."


def describe_witness(inputs: Inputs, row: int) -> Witness:
    """The witness of a row that flips."""
    changed = choose_witness(inputs, row)
    changes, other = list_changes(inputs, inputs.matrix[row], changed), name_answer(inputs, changed)
    return {
        "row": row + 1,
        "name": inputs.name_row(row),
        "label": str(inputs.plain.label[row]),
        "other": other,
        "changes": changes,
        "sentence": _say_witness(inputs, row, changed, [change["feature"] for change in changes], other),
    }


def _say_witness(inputs: Inputs, row: int, changed: FloatArray, features: list[int], other: str) -> str:
    """A change that flips a row, as a sentence in the user's values."""
    subject = inputs.subject
    names = Names(subject.names, subject.categories, subject.dates)
    told = [say_change(names, at, float(inputs.matrix[row, at]), float(changed[at])) for at in features[:_SAID]]
    if len(features) > _SAID:
        told.append(f"{plural(len(features) - _SAID, 'more column')} moved")
    return f"It would get “{shorten(other, 40)}” if {join_words(told)}."


def _list_held(inputs: Inputs, verdict: str) -> list[str]:
    """The first rows of a verdict, by their names or numbers."""
    assert inputs.plain.verdict is not None
    rows = np.flatnonzero(inputs.plain.verdict == verdict)[:_NAMED].tolist()
    return [inputs.name_row(at) or format_count(at + 1) for at in rows]


def name_answer(inputs: Inputs, changed: FloatArray) -> str:
    """The answer that a changed row gets."""
    plain = inputs.plain
    (code,) = find_labels(inputs.subject.model, changed[None], plain.noise, rule=plain.rule).tolist()
    return str(plain.classes[code])


def holds_fractions(inputs: Inputs, rows: FloatArray) -> bool:
    """Whether some changed row has a fraction where training, and the rows themselves, hold whole numbers alone."""
    values = rows[:, list(inputs.whole)]
    return bool((np.rint(values) != values)[~np.isnan(values)].any())


def choose_witness(inputs: Inputs, row: int) -> FloatArray:
    """The witness of a row that flips, numbers near their own; whole numbers stay whole where that is known to flip."""
    plain, subject = inputs.plain, inputs.subject
    assert plain.witness is not None  # limits alone
    found: FloatArray = plain.witness[row]
    if holds_fractions(inputs, found[None]):
        threat = plain.threat.with_whole(inputs.whole)
        other = certify(subject.model, inputs.matrix[[row]], subject.noise, rule=plain.rule, threat=threat)
        assert other.flips is not None
        assert other.witness is not None
        found = np.asarray(other.witness[0]) if other.flips[0] else found
    home = np.searchsorted(plain.classes, plain.label[[row]])
    verifier = Verifier(
        subject.model,
        plain.noise,
        plain.rule,
        inputs.perturbation,
        inputs.matrix[[row]],
        np.asarray(home, dtype=np.int64),
        with_error=True,
    )
    return refine_change(verifier, 0, found, whole=inputs.whole, dates=subject.dates)


def list_changes(inputs: Inputs, before: FloatArray, after: FloatArray) -> list[WitnessChange]:
    """Columns of a row that differ, from the largest move in units to the smallest; categories and numbers that go
    missing or appear come first."""
    differ = np.flatnonzero(~((before == after) | (np.isnan(before) & np.isnan(after))))
    order = sorted(differ.tolist(), key=lambda at: -_measure(inputs, before, after, at))
    return [_describe_change(inputs, before, after, feature) for feature in order]


def _measure(inputs: Inputs, before: FloatArray, after: FloatArray, feature: int) -> float:
    if feature in inputs.subject.categories or np.isnan(before[feature]) or np.isnan(after[feature]):
        return math.inf
    return float(abs(after[feature] - before[feature]) / inputs.units[feature])


def _describe_change(inputs: Inputs, before: FloatArray, after: FloatArray, feature: int) -> WitnessChange:
    subject, old, new = inputs.subject, float(before[feature]), float(after[feature])
    if feature in subject.categories or math.isnan(old) or math.isnan(new):
        return {
            "feature": feature,
            "name": subject.names[feature],
            "before": subject.describe_value(feature, old),
            "after": subject.describe_value(feature, new),
            "move": "",
            "before_value": None,
            "after_value": None,
        }
    is_date = feature in subject.dates
    texts = [subject.describe_value(feature, value) if is_date else write_number(value) for value in (old, new)]
    if texts[0] == texts[1]:  # a move below the shown digits
        texts = [format_exactly(value) for value in (old, new)]
    return {
        "feature": feature,
        "name": subject.names[feature],
        "before": texts[0],
        "after": texts[1],
        "move": format_move(old, new) + (" days" if is_date else ""),
        "before_value": old,
        "after_value": new,
    }


def write_number(value: float) -> str:
    """A whole number in full, any other with some digits.

    Examples
    --------
    >>> write_number(1250000.0), write_number(12.3456789), write_number(-0.0)
    ('1250000', '12.3457', '0')
    """
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return format_short(value, _DIGITS)
