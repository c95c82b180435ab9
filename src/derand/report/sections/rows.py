"""Single rows: a table of all, and for some of them what pushes them and the exact law of their score.

Few numbers per row are listed, so that a page can list a hundred thousand rows. All shown laws share one axis, cut into
bins that never lie astride the threshold, so that the part of a picture on the wrong side is the failure mass.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import FloatArray, IntArray
from derand._core.text import format_count, format_exactly, format_short, format_short_down, format_short_up
from derand.certificates import Distribution, distribution
from derand.explain import Contributions
from derand.model import AdditiveEnsemble, coarsen, find_coarse_step
from derand.noise import Noise
from derand.report import _blocks as ui
from derand.report._charts import WIDTH, Frame, choose_ticks, wrap_svg
from derand.report._facts import Facts, Scale, Size
from derand.report._inputs import LabelInputs
from derand.report._markup import name_radius, name_score, percent, render
from derand.report._packing import pack_listed
from derand.report._settings import ReportSettings
from derand.report.sections.accuracy import Accuracy
from derand.report.sections.limits import Change
from derand.report.sections.shapes import rank_terms
from derand.report.sections.what_if import WhatIf

LAW_HEIGHT = 1000
"""What the highest bin of a law counts, and a cdf of 1."""


class Push(TypedDict):
    """What one feature adds to a row's score."""

    feature: int
    value: str
    push: float


class RowPushes(TypedDict):
    """The strongest pushes of a row, the sum of the others, and that of all."""

    listed: list[Push]
    rest: float
    n_rest: int
    total: float


class BinnedLaw(TypedDict):
    """A law as heights of bins from `start` on, of at most LAW_HEIGHT."""

    start: int
    density: list[int]
    cdf: list[int]


class Law(BinnedLaw):
    """The law of a row's score, and its percentile for each radius of the scale, in bins; no percentiles where the
    failure mass certifies nothing. By the rule "mean" the place of the expected score instead."""

    percentile: list[float]
    mean: float | None


class LawAxis(TypedDict):
    """The bins that all shown laws share."""

    threshold: int
    width: int
    n_bins: int
    threshold_bin: int
    low: int
    failure_at: list[float]
    points: float
    """How many whole scores are one unit of what is shown."""


class RowFacts(TypedDict):
    """What is certified of a row; radii by the number of categorical changes."""

    row: int
    name: str | None
    """What the row is called, such as by an id; None is its number."""
    label: str
    runner_up: str | None
    """Of several classes the rival that decides the radius."""
    truth: str | None
    correct: bool | None
    is_one: bool
    radius: list[Size]
    radius_text: list[str]
    failure: float | None
    failure_text: str | None
    score: float | None
    score_text: str | None
    margin: float | None
    margin_text: str | None
    verdict: str | None


class Row(RowFacts):
    """A line of the row table."""

    pushes: RowPushes | None
    law: Law | None


class NoFlip(TypedDict):
    """No flip was found; nothing was searched where none is possible."""

    found: Literal[False]
    searched: bool


class FoundFlip(TypedDict):
    """The nearest flip that was found; without a distance where limits alone say what may change."""

    found: Literal[True]
    searched: Literal[True]
    distance: float | None
    distance_text: str
    label: str
    whole: str
    """What is said where columns of whole numbers would take fractions; the changes are then those in whole numbers."""
    n_changes: int
    changes: list[Change]


Attack = NoFlip | FoundFlip


class Explained(TypedDict):
    """An explained row: its place in the row table, and a change that flips it."""

    at: int
    attack: Attack


class ListedRows(TypedDict):
    """The rows that the page lists, the weakest first, in columns; classes by their places.

    `radius` has a column per number of categorical changes; `detailed` are the places of those rows whose details are
    in `Rows.table`.
    """

    row: list[int]
    name: list[str | None] | None
    label: list[int]
    runner_up: list[int] | None
    truth: list[int] | None
    radius: list[list[Size]]
    verdict: list[str] | None
    detailed: list[int]


class Rows(TypedDict):
    """The rows that are listed, and in `table` those of them with details: the weakest and a sample, weakest first."""

    n_rows: int
    sampled: bool
    """Whether fewer rows are listed than there are."""
    n_weakest: int
    """How many of the listed rows are the weakest of all; the others are a sample."""
    n_weakest_detailed: int
    seed: int
    law_axis: LawAxis | None
    listed: ListedRows
    table: list[Row]
    explained: list[Explained]


class Parts(Facts):
    """What this section reads."""

    accuracy: Accuracy
    rows: Rows
    what_if: WhatIf | None


LAW_BINS = 110
_LISTED_PUSHES = 9
_FAINT = 1e-4  # of the highest bin: less is not visible
_PICTURE_LEVELS, _COARSE_STEP = 2**15, 2**7
"""Laws of models of more than 2**22 levels are drawn on a grid of 2**15, far finer than what can be seen."""
_CHUNK_NUMBERS = 2**22
_LAW_NUMBERS = 2**26
"""How many probabilities are computed for pictures: with very fine models the laws of fewer rows are shown."""
_SHARE_OF_WEAKEST = 4
_LAW_HEIGHT = 220
_DETAILS: tuple[Literal["failure_text", "score_text", "margin_text", "pushes", "law"], ...] = (
    "failure_text", "score_text", "margin_text", "pushes", "law",
)  # fmt: skip


def compute(inputs: LabelInputs, scale: Scale, settings: ReportSettings) -> Rows:
    """The rows that are listed, and those with details; `explained` is for the section on the weakest."""
    n_explained, seed = min(settings.n_explained, settings.max_rows), settings.seed
    listed, n_weakest = _choose_rows(inputs, settings.max_rows, n_explained, seed)
    places, n_weakest_detailed = choose_places(listed.size, max(settings.n_detailed, n_explained), n_explained, seed)
    chosen = listed[places]
    laws, axis = _summarize_laws(inputs, scale, chosen, n_explained)
    pushes = _summarize_pushes(inputs, chosen)
    verdicts = inputs.plain[chosen].verdict
    table: list[Row] = [
        {
            **_describe_row(inputs, row, pushes[at], None if verdicts is None else str(verdicts[at])),
            "pushes": pushes[at],
            "law": laws[at],
        }
        for at, row in enumerate(chosen.tolist())
    ]
    return {
        "n_rows": inputs.n_rows,
        "sampled": listed.size < inputs.n_rows,
        "n_weakest": n_weakest,
        "n_weakest_detailed": n_weakest_detailed,
        "seed": seed,
        "law_axis": axis,
        "listed": _list_columns(inputs, listed, places),
        "table": table,
        "explained": [],
    }


def _describe_row(inputs: LabelInputs, row: int, pushes: RowPushes | None, verdict: str | None) -> RowFacts:
    plain, model = inputs.plain, inputs.subject.additive
    margin = pushes["total"] if pushes is not None and plain.rule == "mean" else None
    subject = inputs.subject
    score = None
    if margin is not None and model is not None:
        score = round((model.threshold or 0) / subject.points + margin, subject.digits)
    truth = None if inputs.truth is None else inputs.truth[row]
    failure = float(plain.failure[row])
    return {
        "row": row + 1,
        "name": inputs.name_row(row),
        "label": str(plain.label[row]),
        "runner_up": None if plain.classes.size == 2 or plain.runner_up is None else str(plain.runner_up[row]),
        "truth": None if truth is None else str(truth),
        "correct": None if truth is None else bool(truth == plain.label[row]),
        "is_one": bool(plain.label[row] == inputs.subject.classes[1]),
        "radius": [float(certificates.radius[row]) for certificates in inputs.certificates],
        "radius_text": [verdict or format_short_down(float(one.radius[row]), 4) for one in inputs.certificates],
        "failure": None if math.isnan(failure) else failure,
        "failure_text": None if math.isnan(failure) else _describe_failure(failure, float(plain.log_failure[row])),
        "score": score,
        "score_text": None if score is None else format_short(score, 6),
        "margin": margin,
        "margin_text": None if margin is None else f"{'+' if margin > 0 else ''}{format_short(margin, 6)}",
        "verdict": verdict,
    }


def _describe_failure(failure: float, log_failure: float) -> str:
    """The failure mass, rounded up; far below the smallest double by its logarithm."""
    if failure > 1e-300 or log_failure == -np.inf:
        return format_short_up(failure)
    return f"below 1e{math.ceil(log_failure / math.log(10))}"


def _summarize_pushes(inputs: LabelInputs, rows: IntArray) -> list[RowPushes] | list[None]:
    """For each row its strongest pushes under noise, and the sum of the others; None for votes and trees."""
    model = inputs.subject.additive
    if model is None or model.has_trees:
        return [None] * rows.size
    contributions = Contributions(model, inputs.subject.points, inputs.matrix)
    terms = [term for _, term in rank_terms(inputs, model)]
    features = [term.features[0] if len(term.features) == 1 else None for term in terms]
    cells = inputs.matrix[rows]
    columns = [cells[:, list(term.features) if at is None else at] for term, at in zip(terms, features, strict=True)]
    found = [contributions.under_noise(*one, inputs.subject.noise) for one in zip(terms, columns, strict=True)]
    strengths = np.stack(found or [np.zeros(rows.size)], axis=1)
    return [_list_pushes(inputs, features, row, strength) for row, strength in zip(cells, strengths, strict=True)]


def _list_pushes(inputs: LabelInputs, features: list[int | None], row: FloatArray, strengths: FloatArray) -> RowPushes:
    """The strongest pushes of one row, for the push of each feature; None stands for several, not listed."""
    every = np.argsort(-np.abs(strengths), kind="stable") if features else np.empty(0, dtype=np.int64)
    single = [(k, feature) for k in every.tolist() if (feature := features[k]) is not None][:_LISTED_PUSHES]
    order = np.array([k for k, _ in single], dtype=np.int64)
    digits = inputs.subject.digits
    return {
        "listed": [
            {
                "feature": feature,
                "value": inputs.subject.describe_value(feature, float(row[feature])),
                "push": round(float(strengths[k]), digits),
            }
            for k, feature in single
        ],
        "rest": round(float(strengths.sum() - strengths[order].sum()), digits),
        "n_rest": len(features) - len(order),
        "total": round(float(strengths.sum()), digits),
    }


def _summarize_laws(
    inputs: LabelInputs, scale: Scale, rows: IntArray, at_least: int
) -> tuple[list[Law | None], LawAxis | None]:
    """The law of each row as bin heights on one axis, and that axis; None where the model has no law to show."""
    model, noise = inputs.subject.additive, inputs.subject.noise
    if model is None or model.is_linear or noise is None or not model.numerical_features:
        return [None] * rows.size, None
    step = max(find_coarse_step(model, _PICTURE_LEVELS), 1)
    if step > _COARSE_STEP:  # far finer than any picture, as models of other libraries are
        (model,) = coarsen(model, _PICTURE_LEVELS).members
    else:
        step = 1
    found = _compute_laws(inputs, model, noise, rows, at_least)
    failure_at = noise.failure_at(scale["radii"]).tolist() if inputs.has_percentile else []
    axis = _choose_axis(found, int(model.threshold or 0), failure_at, inputs.subject.points / step)
    shown = inputs.plain.label[rows] == inputs.subject.classes[1]
    by_mean = inputs.plain.rule == "mean"
    laws = [_summarize_law(law, axis, bool(is_one), by_mean) for law, is_one in zip(found, shown, strict=False)]
    return [*laws, *[None] * (rows.size - len(laws))], axis


def _choose_axis(laws: list[Distribution], threshold: int, failure_at: list[float], points: float) -> LawAxis:
    """Bins for all that is visible of the laws, and the threshold between two of them."""
    step = int(np.gcd.reduce([law.support[1] - law.support[0] for law in laws if law.support.size > 1] or [1]))
    visible = [law.support[law.pmf[0] > _FAINT * law.pmf[0].max()] for law in laws]
    low = min([threshold - step, *(int(scores[0]) for scores in visible)])
    high = max([threshold + step, *(int(scores[-1]) for scores in visible)])
    width = step * max(1, math.ceil((high - low + 1) / (LAW_BINS * step)))
    first, last = _bin_of(np.array([low, high]), threshold, width).tolist()
    return {
        "threshold": threshold,
        "width": width,
        "n_bins": last - first + 1,
        "threshold_bin": -first,  # bins from here on are class 1
        "low": threshold + 1 + first * width,
        "failure_at": failure_at,
        "points": points,
    }


def _summarize_law(law: Distribution, axis: LawAxis, is_one: bool, by_mean: bool) -> Law:
    percentile = law.percentile(axis["failure_at"], row=0, label=int(is_one))
    mean = float(law.pmf[0] @ law.support / law.pmf[0].sum()) if by_mean else None
    return {
        **_bin_law(law, axis),
        "percentile": _place(percentile, axis).tolist(),
        "mean": None if mean is None else float(_place(np.array(mean), axis)),
    }


def _place(scores: IntArray | FloatArray, axis: LawAxis) -> FloatArray:
    """Where scores lie, in bins from the left end of the axis, the middle of their cells."""
    return np.round((scores - axis["low"] + 0.5) / axis["width"], 1)


def _compute_laws(
    inputs: LabelInputs, model: AdditiveEnsemble, noise: Noise, rows: IntArray, at_least: int
) -> list[Distribution]:
    """The laws of as many rows as the budget allows, one by one and without the impossible ends."""
    laws: list[Distribution] = []
    part = 1
    while len(laws) < rows.size:
        found = distribution(model, inputs.matrix[rows[len(laws) : len(laws) + part]], noise)
        for mass in found.pmf:
            possible = np.flatnonzero(mass > 0)
            kept = slice(possible[0], possible[-1] + 1)
            laws.append(Distribution(found.support[kept], mass[None, kept].copy()))  # rows share the support
        n_levels = found.support.size
        part = max(1, min(_CHUNK_NUMBERS // n_levels, 256))
        if len(laws) >= at_least and len(laws) * n_levels >= _LAW_NUMBERS:
            break
    return laws


def _bin_of(scores: IntArray, threshold: int, width: int) -> IntArray:
    """Bin of each score: 0 begins just above the threshold."""
    return (scores - threshold - 1) // width


def _bin_law(law: Distribution, axis: LawAxis) -> BinnedLaw:
    n_bins = axis["n_bins"]
    places = _bin_of(law.support, axis["threshold"], axis["width"]) + axis["threshold_bin"]
    density = np.bincount(np.clip(places, 0, n_bins - 1), weights=law.pmf[0], minlength=n_bins)
    below = np.cumsum(density)
    seen = np.flatnonzero(density > 0.5 / LAW_HEIGHT * density.max())
    start, stop = int(seen[0]), int(seen[-1]) + 1
    return {
        "start": start,
        "density": np.rint(LAW_HEIGHT * density[start:stop] / density.max()).astype(int).tolist(),
        "cdf": np.rint(LAW_HEIGHT * np.minimum(below[start:stop], 1.0)).astype(int).tolist(),
    }


def _choose_rows(inputs: LabelInputs, limit: int, n_explained: int, seed: int) -> tuple[IntArray, int]:
    """Rows for the table, the weakest first, and how many of them are there because they are the weakest.

    All rows are, where there are no more than the limit; else the weakest and a random sample of the others.
    """
    by_budget = [certificates.radius for certificates in inputs.certificates]
    if inputs.plain.flips is not None:  # what can be flipped comes before what is undecided
        by_budget.insert(0, np.where(inputs.plain.flips, -1.0, inputs.plain.radius))
    order = np.lexsort((-np.nan_to_num(inputs.plain.log_failure), *reversed(by_budget)))  # the last key counts first
    places, n_weakest = choose_places(inputs.n_rows, limit, n_explained, seed)
    return order[places], n_weakest


def choose_places(n_rows: int, limit: int, at_least: int, seed: int) -> tuple[IntArray, int]:
    """Places among rows that are sorted, the weakest first, and how many of them are the weakest.

    Examples
    --------
    >>> places, n_weakest = choose_places(100, 8, 1, seed=0)
    >>> places[:2].tolist(), places.size, n_weakest
    ([0, 1], 8, 2)
    """
    if n_rows <= limit:
        return np.arange(n_rows), n_rows
    n_weakest = max(at_least, limit // _SHARE_OF_WEAKEST)
    drawn = np.random.default_rng(seed).choice(n_rows - n_weakest, size=limit - n_weakest, replace=False)
    return np.concatenate([np.arange(n_weakest), n_weakest + np.sort(drawn)]), n_weakest


def _list_columns(inputs: LabelInputs, rows: IntArray, detailed: IntArray) -> ListedRows:
    """What the table says of each row; classes by their places."""
    plain, labels = inputs.plain, inputs.truth
    verdicts = plain[rows].verdict
    rivals = None if plain.classes.size == 2 or plain.runner_up is None else plain.runner_up
    return {
        "row": (rows + 1).tolist(),
        "name": None if inputs.row_names is None else [inputs.row_names[row] for row in rows.tolist()],
        "label": _place_classes(inputs, plain.label[rows]),
        "runner_up": None if rivals is None else _place_classes(inputs, rivals[rows]),
        "truth": None if labels is None else _place_classes(inputs, labels[rows]),
        "radius": [one.radius[rows].tolist() for one in inputs.certificates],
        "verdict": None if verdicts is None else [str(one) for one in verdicts],
        "detailed": detailed.tolist(),
    }


def _place_classes(inputs: LabelInputs, labels: np.ndarray[Any, np.dtype[Any]]) -> list[int]:
    places = {name: at for at, name in enumerate(inputs.subject.classes.tolist())}
    return [places[label] for label in labels.tolist()]


def law_paths(law: Law, axis: LawAxis, is_one: bool) -> dict[str, str]:
    """Paths of a law's picture, in places of its frame; the page's script draws other rows by the same rule."""
    frame = _law_frame(axis)

    def height(share: int) -> float:
        return frame.y(share / LAW_HEIGHT)

    held: list[str] = []
    failing: list[str] = []
    for at, share in enumerate(law["density"], start=law["start"]):
        side = held if (at >= axis["threshold_bin"]) == is_one else failing
        side.append(f"M{frame.x(at)},{frame.floor}V{height(share)}H{frame.x(at + 1)}V{frame.floor}Z")
    below = [f"M{frame.left},{frame.floor}H{frame.x(law['start'])}"]
    below += [f"V{height(share)}H{frame.x(at + 1)}" for at, share in enumerate(law["cdf"], start=law["start"])]
    below.append(f"H{frame.width - frame.right}")
    return {"held": "".join(held), "failing": "".join(failing), "cdf": "".join(below)}


def _law_frame(axis: LawAxis) -> Frame:
    return Frame(WIDTH, _LAW_HEIGHT, (0.0, float(axis["n_bins"])), (0.0, 1.0), 12, 46, 22, 40)


def draw_law(row: RowFacts, law: Law, axis: LawAxis, at: int) -> Markup:
    """The law of a row's score: its density, the part on the wrong side, its cdf, the threshold and a mark.

    The mark is the percentile, or the expected score by the rule "mean"; `at` is the place of a radius among those of
    the summary, to which the percentile belongs.
    """
    frame = _law_frame(axis)
    paths = law_paths(law, axis, row["is_one"])
    threshold = frame.x(axis["threshold_bin"])
    mark = law["percentile"][at] if law["percentile"] else law["mean"]
    ends = frame.width - frame.right
    body = [
        f'<path class="law-held" d="{paths["held"]}"/><path class="law-failing" d="{paths["failing"]}"/>',
        f'<path class="law-cdf" d="{paths["cdf"]}"/>',
        f'<line class="law-threshold" x1="{threshold}" x2="{threshold}" y1="{frame.top - 6}" y2="{frame.floor}"/>',
        f'<text class="tick mid" x="{threshold}" y="{frame.top - 10}">threshold</text>',
        *([] if mark is None else [_mark_law(frame, frame.x(min(max(mark, 0), axis["n_bins"])))]),
        *(
            f'<text class="tick" x="{ends + 6}" y="{frame.y(share) + 4}">{share:.0%}</text>'
            for share in (0.0, 0.5, 1.0)
        ),
        frame.ticks(_law_ticks(axis), f"score under noise, {_name_points(axis)} above the threshold"),
    ]
    title = f"Distribution of the score of row {row['name'] or row['row']}"
    told = "Most of it lies on the answer's side of the threshold, or all of it, where the answer is sure"
    if law["percentile"]:
        told = f"The part on the wrong side of the threshold has probability {row['failure_text']}"
    elif row["score_text"] is not None:
        told = f"Its expected score is {row['score_text']}, {row['margin_text']} from the threshold"
    return wrap_svg(frame, "".join(body), title, told, left=frame.left, right=ends, top=frame.top, floor=frame.floor)


def _mark_law(frame: Frame, x: float) -> str:
    return f'<line class="mark law-percentile" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>'


def _law_ticks(axis: LawAxis) -> list[tuple[float, str]]:
    """Scores, counted from the threshold, in the middle of their places on the axis; whole ones, but for log-odds."""
    low, points = axis["low"] - axis["threshold"], axis["points"]
    scores = choose_ticks(low / points, (low + axis["n_bins"] * axis["width"]) / points, 6)
    places = [
        ((score * points - low + 0.5) / axis["width"], score)
        for score in scores
        if points != 1 or score == round(score)
    ]
    return [(place, f"{score:+g}" if score else "0") for place, score in places if 0 <= place <= axis["n_bins"]]


def _name_points(axis: LawAxis) -> str:
    return "points" if axis["points"] == 1 else "log-odds"


FOLDED_ROWS = "a table to sort, filter and search, and the details of each row"


def blocks(summary: Parts) -> list[ui.Block]:
    """The table with its controls, and the details of the row that is picked; of the page alone."""
    title = "A sample of the rows" if summary["rows"]["sampled"] else "All rows"
    return [
        ui.on_page(ui.Heading(title, "rows")),
        ui.Raw(render("rows", summary, quoted_at=locate_quoted(summary), draw_law=draw_law)),
    ]


def locate_quoted(summary: Facts) -> int:
    """The place of the radius of the text among those of the curves."""
    return summary["scale"]["radii"].index(summary["scale"]["quoted"])


def list_data(summary: Parts) -> dict[str, object]:
    """What the page's script needs: the rows, and for each radius how many rows are certified."""
    budgets = [one for one in summary["accuracy"]["series"] if one["role"] == "l0"]
    axis, n_rows = summary["rows"]["law_axis"], summary["data"]["n_rows"]
    return {
        "radii": summary["scale"]["radii"],
        "radii_text": [format_exactly(radius) for radius in summary["scale"]["radii"]],
        "shares": [[percent(share) for share in one["values"]] for one in budgets],
        "counts": [[format_count(round(share * n_rows)) for share in one["values"]] for one in budgets],
        "n_rows": format_count(n_rows),
        "sampled": summary["rows"]["sampled"],
        "radius_name": name_radius(summary),
        "score_name": name_score(summary).capitalize(),
        "together": "together" if summary["noise"]["magnitude"] is None else "together, on average",
        "has_radius": summary["threat"]["norm"] is not None,
        "names": summary["model"]["feature_names"],
        "classes": summary["model"]["classes"],
        "axis": None if axis is None else {key: axis[key] for key in ("n_bins", "threshold_bin")},
        "listed": pack_listed(summary["rows"]["listed"]),
        "details": [{key: row[key] for key in _DETAILS} for row in summary["rows"]["table"]],
        "n_movable": 0 if summary["what_if"] is None else summary["what_if"]["n_rows"],
    }


SECTION = ui.Section("rows", lambda s: "Rows" if s["rows"]["sampled"] else "All rows", blocks, FOLDED_ROWS)
