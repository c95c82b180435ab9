"""The weakest rows, each with the nearest change that was found to flip it. Must not know how it is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.text import format_count, format_distance, plural
from derand.certificates import Attacks, attack
from derand.report import _blocks as ui
from derand.report._facts import Facts
from derand.report._inputs import LabelInputs
from derand.report._markup import name_row, name_score, render
from derand.report.sections.limits import Change, choose_witness, holds_fractions, list_changes, name_answer
from derand.report.sections.rows import Attack, Explained, Rows, draw_law, locate_quoted


class Parts(Facts):
    """What this section reads."""

    rows: Rows


_LISTED = 6
_WORTH_TELLING = 1e-3
"""A feature counts as moved where its move is at least this share of the whole change."""
_FRACTIONS = "This one makes fractions of whole numbers, which the threat allows unless it says `whole`."
_KEYS: tuple[Literal["name", "before", "after", "move"], ...] = ("name", "before", "after", "move")


def compute(inputs: LabelInputs, rows: Rows, n_explained: int) -> list[Explained]:
    """The first rows with details, the weakest of all, each with a change that flips it."""
    chosen = [one["row"] - 1 for one in rows["table"][:n_explained]]
    return [{"at": at, "attack": found} for at, found in enumerate(search_flips(inputs, chosen))]


def search_flips(inputs: LabelInputs, rows: Sequence[int]) -> list[Attack]:
    """The nearest flips that were found from some rows, and which features they move most.

    A flip inside what is certified ends the report with an UnsoundError.
    """
    if inputs.plain.flips is not None:
        return [_describe_witness(inputs, row) for row in rows]
    subject, plain = inputs.subject, inputs.plain
    at = np.asarray(rows, dtype=np.int64)
    found = attack(
        subject.model, inputs.matrix[at], subject.noise, rule=plain.rule, threat=plain.threat, others=inputs.matrix
    ).with_classes(plain.classes)
    found.require_outside(plain[at])
    practical = _search_whole(inputs, at, found)
    return [_describe_flip(inputs, row, found, practical, k) for k, row in enumerate(rows)]


def _search_whole(inputs: LabelInputs, at: IntArray, found: Attacks) -> Attacks | None:
    """The nearest flips in whole numbers, where the nearest ones of all would make fractions of whole numbers."""
    if not holds_fractions(inputs, found.rows[found.found]):
        return None
    subject, plain = inputs.subject, inputs.plain
    practical = attack(
        subject.model,
        inputs.matrix[at],
        subject.noise,
        rule=plain.rule,
        threat=plain.threat.with_whole(inputs.whole),
        others=inputs.matrix,
    ).with_classes(plain.classes)
    replace(practical, threat=plain.threat).require_outside(plain[at])  # what the smaller threat allows, it allows
    return practical


def _describe_flip(inputs: LabelInputs, row: int, attacks: Attacks, practical: Attacks | None, at: int) -> Attack:
    model, threat = inputs.subject.model, inputs.plain.threat
    if not attacks.found[at]:
        possible = model.numerical_features or (threat.l0 and model.categorical_features)
        return {"found": False, "searched": bool(possible and np.isfinite(inputs.plain.radius[row]))}
    told, whole = attacks, ""
    if practical is not None and holds_fractions(inputs, attacks.rows[[at]]):
        told = practical if practical.found[at] else attacks
        nearer = practical.distance[at] <= attacks.distance[at]
        attacks, whole = (practical, "") if nearer else (attacks, _describe_whole(inputs, attacks, practical, at))
    distance = float(attacks.distance[at])
    changes = _choose_changes(inputs, inputs.matrix[row], told.rows[at], float(told.distance[at]))
    return {
        "found": True,
        "searched": True,
        "distance": distance,
        "distance_text": format_distance(distance),
        "label": str(attacks.flipped[at]),
        "whole": whole,
        "n_changes": len(changes),
        "changes": changes[:_LISTED],
    }


def _describe_whole(inputs: LabelInputs, attacks: Attacks, practical: Attacks, at: int) -> str:
    """How far the nearest flip in whole numbers is, beside the nearest of all."""
    if not practical.found[at]:
        return f"No flip was found that leaves whole numbers whole. {_FRACTIONS}"
    size, nearest = (format_distance(float(one.distance[at])) for one in (practical, attacks))
    if size == nearest:
        return ""
    where = f"at {size}" if inputs.plain.norm else plural(int(practical.distance[at]), "column")
    other = str(practical.flipped[at])
    answer = "" if other == str(attacks.flipped[at]) else f", with the answer “{other}”"
    return f"With whole numbers where training had them alone, the nearest flip found is {where}{answer}."


def _describe_witness(inputs: LabelInputs, row: int) -> Attack:
    """The witness of a row that flips within its limits."""
    plain = inputs.plain
    if plain.flips is None or plain.witness is None or not plain.flips[row]:
        return {"found": False, "searched": bool(plain.radius[row] == 0)}
    changed = choose_witness(inputs, row)
    changes = _choose_changes(inputs, inputs.matrix[row], changed, 0.0)
    return {
        "found": True,
        "searched": True,
        "distance": None,
        "distance_text": "",
        "label": name_answer(inputs, changed),
        "whole": _FRACTIONS if holds_fractions(inputs, changed[None]) else "",
        "n_changes": len(changes),
        "changes": changes[:_LISTED],
    }


def _choose_changes(inputs: LabelInputs, before: FloatArray, after: FloatArray, distance: float) -> list[Change]:
    """Changes of more than a trifle, from the largest move in units to the smallest."""
    least = 0.0 if not inputs.plain.norm else _WORTH_TELLING * distance  # for norm 0 a distance counts columns
    told = []
    for change in list_changes(inputs, before, after):
        old, new = change["before_value"], change["after_value"]
        if old is None or new is None or abs(new - old) / inputs.units[change["feature"]] > least:
            told.append({key: change[key] for key in _KEYS})
    return cast(list[Change], told)


def blocks(summary: Parts) -> list[ui.Block]:
    """A card per row: its certificate, what contributes to it, its distribution, the change that flips it; a line in
    Markdown."""
    weakest = [summary["rows"]["table"][one["at"]] for one in summary["rows"]["explained"]]
    by_mean = any(row["score_text"] is not None for row in weakest)
    lines = [
        [
            name_row(row),
            row["label"],
            row["truth"] or "",
            row["radius_text"][0],
            *([row["score_text"] or "", row["margin_text"] or ""] if by_mean else [row["failure_text"] or ""]),
        ]
        for row in weakest
    ]
    has_radius = summary["threat"]["norm"] is not None
    shown = f"{format_count(len(lines))} of {plural(summary['data']['n_rows'], 'row')}"
    title = f"{'Rows with the smallest radius' if has_radius else 'The weakest rows'}: {shown}"
    head = ["row", "answer", "truth", "radius" if has_radius else "within the limits"]
    head += [name_score(summary), "margin"] if by_mean else ["failure mass"]
    page = "The rows with the smallest radius" if has_radius else "The weakest rows"
    return [
        ui.on_page(ui.Heading(page, "weakest")),
        ui.Raw(render("weakest", summary, quoted_at=locate_quoted(summary), draw_law=draw_law)),
        ui.in_markdown(ui.Heading(title), ui.Table(head, lines)),
    ]


SECTION = ui.Section(
    "weakest", lambda s: "Weakest rows" if s["rows"]["explained"] else "", blocks, "why they are, and what flips them"
)
