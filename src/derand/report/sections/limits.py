"""Limits alone: how many answers hold within them, how many flip, and the changes that flip the first rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypedDict

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import format_count, format_exactly, format_move, format_short, join_words, plural, shorten
from derand.certificates import Certificates, Verifier, certify, find_labels, refine_changes
from derand.explain import Names, describe_change
from derand.metrics import encode_labels
from derand.report import _blocks as ui
from derand.report._inputs import LabelInputs
from derand.report._markup import name_row, render
from derand.report.sections import accuracy
from derand.tables import count_decimals


class VerdictCount(TypedDict):
    """What is known of some rows where limits alone say what may change; those of one class by its name."""

    name: str
    n_rows: int
    holds: int
    flips: int
    undecided: int


class Change(TypedDict):
    """How a flip moves one feature."""

    name: str
    before: str
    after: str
    move: str


class WitnessChange(Change):
    """How a witness changes one column, its numbers in full; no numbers for a category."""

    feature: int
    before_value: float | None
    after_value: float | None


class Witness(TypedDict):
    """A change within the limits that flips a row, from the largest move in units to the smallest."""

    row: int
    name: str | None
    label: str
    other: str
    changes: list[WitnessChange]
    sentence: str


class FlipCount(TypedDict):
    """As AnswerFlips."""

    label: str
    true: str | None
    flipped: str
    n_rows: int
    n_flips: int
    n_alone: int
    n_new: int


class ColumnFlipCount(TypedDict):
    """As ColumnFlips; with which other columns in text."""

    column: str
    direction: str
    label: str
    true: str | None
    flipped: str
    n_rows: int
    n_alone: int
    n_together: int
    others: list[str]


class Flips(TypedDict):
    """Why answers flip, of all rows; with labels the sentences tell true classes apart."""

    unseen: bool
    flips: int
    answers: list[FlipCount]
    columns: list[ColumnFlipCount]
    sentences: list[str]


class Verdicts(TypedDict):
    """What is known where limits alone say what may change; the first count is of all rows, others are of classes."""

    sentence: str
    counts: list[VerdictCount]
    held: list[str]
    """The first rows that are proven to hold, and below those that are undecided, by name or number."""
    undecided: list[str]
    witnesses: list[Witness]
    flips: Flips


class Parts(accuracy.Parts):
    """What this section reads."""

    verdicts: Verdicts


MAX_WITNESSES = 20
_DIGITS = 6
_SAID = 5
_NAMED = 12
_LISTED_FLIPS, _NAMED_OTHERS, _FEW, _SHORT = 12, 2, 6, 18
_LISTED_CHANGES = 6


def compute(inputs: LabelInputs) -> Verdicts | None:
    """Counts for all rows and each class, and witnesses of the first rows that flip; None where there is a ball."""
    flips = inputs.plain.flips
    if flips is None:
        return None
    counts = [_count(inputs, "all rows", np.ones(inputs.n_rows, dtype=bool))]
    if inputs.truth is not None:
        chosen = [(str(name), np.asarray(inputs.truth == name)) for name in inputs.subject.classes.tolist()]
        counts += [_count(inputs, name, at) for name, at in chosen if at.any()]
    return {
        "sentence": _describe_verdicts(counts[0]) + _explain_undecided(inputs.plain),
        "counts": counts,
        "held": _list_held(inputs, "holds"),
        "undecided": _list_held(inputs, "undecided"),
        "flips": _summarize_flips(inputs),
        "witnesses": [describe_witness(inputs, row) for row in np.flatnonzero(flips)[:MAX_WITNESSES].tolist()],
    }


def _summarize_flips(inputs: LabelInputs) -> Flips:
    """By which columns answers flip, in which direction and towards which answer."""
    every = replace(inputs.plain.summary(inputs.truth), names=tuple(inputs.subject.names))
    found = every.merge_truth().to_dict()
    for one in found["columns"]:
        one["others"] = [f"{shorten(name, 30)} {count:,}" for name, count in one["others"].items()]
    return {
        "unseen": found["unseen"],
        "flips": found["flips"],
        "answers": found["answers"],
        "columns": found["columns"],
        "sentences": every.list_sentences(),
    }


def list_flips(flips: Flips, most: int) -> list[ui.Block]:
    """By which columns and directions answers flip, the most frequent first."""
    if not flips["columns"]:
        return []
    lines: list[ui.Line] = []
    for one in flips["columns"][:most]:
        answers = f"{shorten(one['label'], 20)} → {shorten(one['flipped'], 20)}"
        counts = [format_count(one["n_alone"]), format_count(one["n_together"])]
        name = ui.name_cell(f"{shorten(one['column'], 40)} {one['direction']}", 40)
        lines.append([name, ui.Cell(answers, kind="short" if len(answers) <= _SHORT else ""), *counts])
        if most > _FEW:
            lines[-1].append(", ".join(one["others"][:_NAMED_OTHERS]))
    head = ["column and direction", "answer", "alone", "with others", *(["which others"] if most > _FEW else [])]
    told = "Each row is counted once, by the change that was found."
    if any(one["direction"].startswith("to ") for one in flips["columns"]):
        seen = "also to values that training did not see" if flips["unseen"] else "to values that training saw alone"
        told += f" Categories may change {seen}."
    table = ui.Table(head, lines, "What flips answers", "What flips answers", "flip-table", "numeric worded-first")
    return [ui.Group("said", [table, ui.Paragraph(told, "fine")])]


def _count(inputs: LabelInputs, name: str, at: BoolArray) -> VerdictCount:
    verdict = inputs.plain.verdict
    assert verdict is not None  # limits alone: see `compute`
    holds, flips, undecided = (int((verdict[at] == what).sum()) for what in ("holds", "flips", "undecided"))
    return {"name": name, "n_rows": int(at.sum()), "holds": holds, "flips": flips, "undecided": undecided}


def _describe_verdicts(count: VerdictCount) -> str:
    """The split in one sentence.

    Examples
    --------
    >>> _describe_verdicts({"name": "all rows", "n_rows": 9, "holds": 6, "flips": 1, "undecided": 2})
    '1 of 9 decisions can be flipped within these limits; 6 are proven to hold; 2 are undecided.'
    """
    holds, undecided = (
        f"{format_count(number)} {'is' if number == 1 else 'are'} {what}"
        for number, what in ((count["holds"], "proven to hold"), (count["undecided"], "undecided"))
    )
    total = plural(count["n_rows"], "decision")
    return f"{format_count(count['flips'])} of {total} can be flipped within these limits; {holds}; {undecided}."


def _explain_undecided(certificates: Certificates) -> str:
    """Why rows are undecided, of a model whose trees join columns; else nothing."""
    if certificates.is_tie is None or certificates.verdict is None:
        return ""
    ties, undecided = int(certificates.is_tie.sum()), int((certificates.verdict == "undecided").sum())
    reasons = [f"{format_count(ties)} because scores lie within the rounding of the model's own arithmetic"] * bool(
        ties
    )
    if undecided > ties:
        reasons.append(f"{format_count(undecided - ties)} because the budget of the search was spent")
    return f" Undecided {join_words(reasons)}." if reasons else ""


def describe_witness(inputs: LabelInputs, row: int) -> Witness:
    """The witness of a row that flips."""
    changed = choose_witness(inputs, row)
    changes, other = list_changes(inputs, inputs.matrix[row], changed), name_answer(inputs, changed)
    return {
        "row": row + 1,
        "name": inputs.name_row(row),
        "label": str(inputs.plain.label[row]),
        "other": other,
        "changes": changes,
        "sentence": _describe_flip(inputs, row, changed, [change["feature"] for change in changes], other),
    }


def _describe_flip(inputs: LabelInputs, row: int, changed: FloatArray, features: list[int], other: str) -> str:
    """A change that flips a row, as a sentence in the user's values."""
    subject = inputs.subject
    names = Names(subject.names, subject.categories, subject.dates)
    told = [describe_change(names, at, float(inputs.matrix[row, at]), float(changed[at])) for at in features[:_SAID]]
    if len(features) > _SAID:
        told.append(f"{plural(len(features) - _SAID, 'more column')} moved")
    return f"It would get “{shorten(other, 40)}” if {join_words(told)}."


def _list_held(inputs: LabelInputs, verdict: str) -> list[str]:
    """The first rows of a verdict, by their names or numbers."""
    assert inputs.plain.verdict is not None
    rows = np.flatnonzero(inputs.plain.verdict == verdict)[:_NAMED].tolist()
    return [inputs.name_row(at) or format_count(at + 1) for at in rows]


def name_answer(inputs: LabelInputs, changed: FloatArray) -> str:
    """The answer that a changed row gets."""
    plain = inputs.plain
    (code,) = find_labels(inputs.subject.model, changed[None], plain.noise, rule=plain.rule).tolist()
    return str(plain.classes[code])


def holds_fractions(inputs: LabelInputs, rows: FloatArray) -> bool:
    """Whether some changed row has a fraction where training, and the rows themselves, hold whole numbers alone."""
    values = rows[:, list(inputs.whole)]
    return bool((np.rint(values) != values)[~np.isnan(values)].any())


def choose_witness(inputs: LabelInputs, row: int) -> FloatArray:
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
    home = encode_labels(plain.classes, plain.label[[row]])
    verifier = Verifier(
        subject.model,
        plain.noise,
        plain.rule,
        inputs.perturbation,
        inputs.matrix[[row]],
        home,
        with_error=True,
    )
    decimals = count_decimals(inputs.matrix)
    return np.asarray(refine_changes(verifier, found[None], inputs.whole, subject.dates, decimals)[0])


def list_changes(inputs: LabelInputs, before: FloatArray, after: FloatArray) -> list[WitnessChange]:
    """Columns of a row that differ, from the largest move in units to the smallest; categories and numbers that go
    missing or appear come first."""
    differ = np.flatnonzero(~((before == after) | (np.isnan(before) & np.isnan(after))))
    order = sorted(differ.tolist(), key=lambda at: -_measure(inputs, before, after, at))
    return [_describe_change(inputs, before, after, feature) for feature in order]


def _measure(inputs: LabelInputs, before: FloatArray, after: FloatArray, feature: int) -> float:
    if feature in inputs.subject.categories or np.isnan(before[feature]) or np.isnan(after[feature]):
        return math.inf
    return float(abs(after[feature] - before[feature]) / inputs.units[feature])


def _describe_change(inputs: LabelInputs, before: FloatArray, after: FloatArray, feature: int) -> WitnessChange:
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


def blocks(summary: Parts) -> list[ui.Block]:
    """How many rows hold, flip or are undecided, and which share is right and proven; in text also the changes."""
    verdicts = summary["verdicts"]
    lines: list[ui.Line] = []
    for at, one in enumerate(verdicts["counts"]):
        prefix = "class " if at else ""
        name = ui.Cell(prefix + one["name"], prefix + shorten(one["name"], 30), title=one["name"])
        lines.append([name, *ui.count_cells(one["n_rows"], one["flips"], one["holds"], one["undecided"])])
    page = {"rows": ui.quiet("true class"), "all": "all", "can be flipped": "can flip", "proven to hold": "hold"}
    head = [ui.Cell(name, shown) for name, shown in (page | {"undecided": "undecided"}).items()]
    title = "answers within the limits; needs \\usepackage{booktabs}"
    counts = ui.Table(head, lines, "Answers within the limits", test="verdict-table", latex_title=title)
    changes, flips = _tabulate_witnesses(verdicts["witnesses"]), verdicts["flips"]
    proven = "right and proven to hold" if summary["data"]["has_labels"] else "proven to hold"
    shares = [[row["label"], *row["text"]] for row in summary["table"]["rows"]]
    label = f"Share of rows whose answer is {proven}"
    return [
        ui.on_page(ui.Heading("Within the limits", "accuracy")),
        ui.in_markdown(ui.Heading("Within the limits")),
        counts,
        *([ui.Bullets(flips["sentences"][:_LISTED_FLIPS], "findings", "flip-sentences")] if flips["columns"] else []),
        *list_flips(flips, _LISTED_FLIPS),
        ui.in_markdown(
            *(ui.Heading("Changes within the limits that flip an answer") for _ in changes),
            *changes,
            ui.Heading(summary["accuracy"]["measure"].capitalize()),
        ),
        ui.Table([ui.Cell(proven, ui.quiet("rows")), "share"], shares, label, label, "accuracy-table"),
        ui.on_page(*accuracy.list_baselines(summary)),
        ui.in_latex(*changes),
    ]


def _tabulate_witnesses(witnesses: list[Witness]) -> list[ui.Table]:
    """Each change that flips a row in a line: row, both answers, and the largest changes."""
    lines: list[ui.Line] = []
    for witness in witnesses:
        changes = witness["changes"]
        told = [
            f"{shorten(one['name'], 40)}: {shorten(one['before'], 30)} → {shorten(one['after'], 30)}"
            for one in changes[:_LISTED_CHANGES]
        ]
        if len(changes) > _LISTED_CHANGES:
            told.append(plural(len(changes) - _LISTED_CHANGES, "more column"))
        answers = [shorten(witness["label"], 40), shorten(witness["other"], 40)]
        lines.append([name_row(witness), *answers, str(len(changes)), "; ".join(told)])
    head, align = ["row", "answer", "other answer", "columns", "changes"], ("r", "l", "l", "r", "p{8cm}")
    title = "changes within the limits that flip an answer"
    return [ui.Table(head, lines, latex_title=title, align=align, is_cut=False)] if witnesses else []


SECTION = ui.Section("accuracy", lambda s: "Within the limits", blocks)
WITNESSES = ui.Section(
    "witnesses",
    lambda s: "Changes that flip",
    lambda s: [ui.on_page(ui.Heading("Changes that flip an answer", "witnesses")), ui.Raw(render("witnesses", s))],
)
