"""Cells: a published number beside ours, whether they agree, and if not, why.

Owns tolerances, and what the published runs did to radii before they counted; rows are counted as
`derand.certified_accuracy` does. Must not know how outcomes came about or how cells are shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

import numpy as np

from derand._core.arrays import FloatArray
from derand.metrics import certified_share
from derand.noise import Gaussian, parse_noise
from experiments.reproduce._outcomes import Outcome
from experiments.reproduce._plans import Plan
from experiments.reproduce._specification import Item, Line, Published, TomlTable, fits

Change = Callable[[FloatArray], FloatArray]

_CAPPED_FAILURE = 1e-15
_TIE = 1e-9  # more than the rounding error of a radius
_TIMES = {"train_time_s": 0, "cert_time_s": 1}
_DECIMALS = {"acr": 3, "q": 2, "lambda": 2, "sigma": 2, "n_b": 0}


class CellRecord(TypedDict):
    """A cell in JSON, after the fields that say what it is about; infinity is the text "inf"."""

    metric: str
    radius: float | None
    paper: float
    paper_deviation: float | None
    ours: float | str | None
    deviation: float | str | None
    difference: float | str | None
    tolerance: float | None
    ok: bool | None
    as_published: float | str | None
    reason: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A published number beside ours.

    Attributes
    ----------
    fields : mapping
        What the cell is about: norm, dataset, noise and so on.
    metric, radius
        What is measured, and at which radius.
    paper, paper_deviation, printed
        As published; `printed` where the cell is not a plain number.
    ours, deviation
        Ours; the deviation over the folds.
    tolerance : float or None
        How far ours may be away; None where the two are not compared.
    ok : bool or None
    as_published : float or None
        Ours under the published rounding and cap, where these matter.
    reason : str or None
        Name of the explanation where ours is outside the tolerance, or within a wider one alone.
    """

    fields: TomlTable
    metric: str
    radius: float | None
    paper: float
    paper_deviation: float | None
    printed: str | None
    ours: float
    deviation: float | None
    tolerance: float | None
    ok: bool | None
    as_published: float | None
    reason: str | None

    @property
    def difference(self) -> float:
        """Ours minus the paper's, from the numbers as shown."""
        return round(self.ours, self.decimals) - self.paper if np.isfinite(self.ours) else self.ours

    @property
    def decimals(self) -> int:
        """Decimals that the paper prints; more for small times and other small numbers of the text."""
        if self.metric in ("claim", *_TIMES):
            return 3 if abs(self.paper) < 1 else 1
        return _DECIMALS.get(self.metric, 1)

    def as_dict(self) -> CellRecord:
        """Plain values for JSON; an infinite number is the text "inf"."""
        values = {
            **self.fields,
            "metric": self.metric,
            "radius": self.radius,
            "paper": self.paper,
            "paper_deviation": self.paper_deviation,
            "ours": self.ours,
            "deviation": self.deviation,
            "difference": self.difference,
            "tolerance": self.tolerance,
            "ok": self.ok,
            "as_published": self.as_published,
            "reason": self.reason,
        }
        return cast(CellRecord, {name: as_plain_number(value) for name, value in values.items()})


def as_plain_number(value: object) -> object:
    """Round to six decimals; infinity becomes text, which strict JSON can hold."""
    if isinstance(value, float):
        return round(value, 6) if np.isfinite(value) else "inf" if value > 0 else "-inf" if value < 0 else None
    return value


def make_cells(
    item: Item, line: Line, plan: Plan, outcomes: Sequence[Outcome], variants: Sequence[Sequence[Outcome]]
) -> list[Cell]:
    """The cells of a printed line, from the outcomes of its plan.

    Parameters
    ----------
    item : Item
    line : Line
    plan : Plan
    outcomes : sequence of Outcome
        One per split.
    variants : sequence of sequences of Outcome
        The same for each of the line's variants.

    Returns
    -------
    list of Cell
    """
    return [_make_cell(item, line, plan, outcomes, variants, published) for published in line.published]


def make_settings_cells(line: Line) -> list[Cell]:
    """The cells of a line of settings: what other tables read is what the paper printed."""
    return [
        Cell(line.fields, one.metric, None, one.value, None, None, one.value, None, 0.0, True, None, None)
        for one in line.published
    ]


def _make_cell(
    item: Item,
    line: Line,
    plan: Plan,
    outcomes: Sequence[Outcome],
    variants: Sequence[Sequence[Outcome]],
    published: Published,
) -> Cell:
    measure = functools.partial(_measure, line, published)
    ours, deviation = measure(outcomes, None)
    tolerance = _find_tolerance(line, published, outcomes, plan.part is not None)
    ok = None if tolerance is None else _agree(published, ours, tolerance)
    reason, wider = None, line.recipe["tolerance"].get("wider")
    if ok is False and wider is not None and tolerance is not None:
        tolerance = max(tolerance, _find_width(wider, outcomes))
        ok = _agree(published, ours, tolerance, welcome_above=wider.get("side") == "below")
        reason = wider["reason"] if ok else None
    if ok is False:
        reason = _explain(item, line, plan, outcomes, variants, published, tolerance)
    as_published = None
    if published.metric not in _TIMES and (len(variants) == 1 or line.recipe["published_rounding"]):
        as_published = measure(variants[0] if len(variants) == 1 else outcomes, _published_change(line, plan))[0]
    return Cell(
        line.fields,
        published.metric,
        published.radius,
        published.value,
        published.deviation,
        published.printed,
        ours,
        deviation if published.deviation is not None else None,
        tolerance,
        ok,
        as_published,
        reason,
    )


def _measure(
    line: Line, published: Published, outcomes: Sequence[Outcome], change: Change | None
) -> tuple[float, float]:
    """Mean and population deviation over the splits, of the radii as they are or after a change."""
    values = [_measure_split(line, published, outcome, change) for outcome in outcomes]
    mean = float(np.mean(values))
    return mean, float(np.std(values)) if np.isfinite(mean) else float("nan")


def _measure_split(line: Line, published: Published, outcome: Outcome, change: Change | None) -> float:
    if published.metric in _TIMES:
        return float(outcome.seconds[_TIMES[published.metric]])
    radius = outcome.radius[min(line.recipe.get("r0", 0), len(outcome.radius) - 1)]
    radius = radius if change is None else change(radius)
    correct = outcome.y == outcome.label
    if published.metric == "acr":
        return float(np.where(correct, radius, 0.0).mean())
    wanted, is_balanced = [published.radius or 0.0], published.metric == "bca"
    groups = [outcome.y == code for code in np.unique(outcome.y)] if is_balanced else [slice(None)]
    return 100 * float(np.mean([certified_share(correct[rows], radius[rows], wanted) for rows in groups]))


def cap_radii(radius: FloatArray, plan: Plan) -> FloatArray:
    """Radii with the probability of the label capped at 1 - 1e-15, as in the published runs."""
    assert plan.noise is not None
    return np.minimum(radius, float(parse_noise(plan.noise).radius(_CAPPED_FAILURE)))


def round_radii(radius: FloatArray) -> FloatArray:
    """Radii rounded to three significant digits, as in the published runs.

    Examples
    --------
    >>> round_radii(np.array([3.9951, 0.12345])).tolist()
    [4.0, 0.123]
    """
    return np.array([float(f"{value:.3g}") for value in radius.tolist()])


def _find_tolerance(line: Line, published: Published, outcomes: Sequence[Outcome], is_part: bool) -> float | None:
    """How far ours may be away; on a part of the rows three standard errors are added."""
    if not line.recipe["judged"]:
        return None
    if published.metric in _TIMES:
        return 0.0
    rules, n_rows = line.recipe["tolerance"], min(outcome.y.size for outcome in outcomes)
    width = float(rules["radius"] if published.metric == "acr" else rules["points"])
    width = max(width, float(rules.get("deviations", 0.0)) * (published.deviation or 0.0))
    if is_part:
        finite = outcomes[0].radius[0][np.isfinite(outcomes[0].radius[0])]
        spread = np.ptp(finite) / 2 if published.metric == "acr" and finite.size else 50.0
        width += float(3 * spread / np.sqrt(n_rows))
    return width


def _find_width(wider: TomlTable, outcomes: Sequence[Outcome]) -> float:
    """The wider tolerance of some lines, in points: given as such, or as a number of test rows."""
    if "rows" in wider:
        return float(100 * wider["rows"] / min(outcome.y.size for outcome in outcomes))
    return float(wider["points"])


def _agree(published: Published, ours: float, tolerance: float, welcome_above: bool = False) -> bool:
    """Whether ours is near enough: on both sides, or, where larger is welcome, not too far below."""
    if published.metric in _TIMES:
        return ours <= published.value
    gap = _round_as_printed(published, ours) - published.value
    return bool((-gap if welcome_above else abs(gap)) <= tolerance + 1e-9)


def _round_as_printed(published: Published, value: float) -> float:
    return round(value, 3 if published.metric == "acr" else 1) if np.isfinite(value) else value


def _published_change(line: Line, plan: Plan) -> Change | None:
    """What the published runs did to radii before they counted; None where nothing."""
    if not line.recipe["published_rounding"] or plan.noise is None:
        return None
    return lambda radius: round_radii(cap_radii(radius, plan))


def _explain(
    item: Item,
    line: Line,
    plan: Plan,
    outcomes: Sequence[Outcome],
    variants: Sequence[Sequence[Outcome]],
    published: Published,
    tolerance: float | None,
) -> str | None:
    """Name of the reason why a cell differs: the first way to count or train that restores the printed number."""
    fields = {**line.recipe, "metric": published.metric, "radius": published.radius}
    for explained in item.content.get("explained", []):
        if fits(explained["when"], fields):
            return str(explained["reason"])
    width = tolerance or 0.0

    def restores(change: Change | None, ways: Sequence[Sequence[Outcome]] = (outcomes,)) -> bool:
        values = [_round_as_printed(published, _measure(line, published, way, change)[0]) for way in ways]
        return min(values) - width - 1e-9 <= published.value <= max(values) + width + 1e-9

    change = _published_change(line, plan)
    if change is not None and plan.noise is not None:
        if isinstance(parse_noise(plan.noise), Gaussian) and restores(lambda radius: cap_radii(radius, plan)):
            return "constant" if any(np.isinf(outcome.radius).any() for outcome in outcomes) else "cap"
        if restores(round_radii) or restores(change):
            return "rounding"
    if variants and restores(change, variants):
        return line.reason
    if not line.recipe["published_rounding"] and _lies_between_ties(line, published, outcomes, width):
        return "ties"
    return None


def _lies_between_ties(line: Line, published: Published, outcomes: Sequence[Outcome], width: float) -> bool:
    """Whether the printed number lies between the counts without and with the rows whose radius is r but for rounding.

    Computed radii are lower bounds: where the true one is r, they are a hair below and do not count.
    """
    without = _measure(line, published, outcomes, None)[0]
    tied = _measure(line, published, outcomes, lambda radius: radius + _TIE)[0]
    return without - width <= published.value <= tied + width
