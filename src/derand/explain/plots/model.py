"""All shapes of a model in one picture: which columns, in which order, with which band and data.

Must not know scikit-learn or how tables are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from derand._core.arrays import FloatArray, PlotAxes
from derand._core.text import format_short, plural
from derand.explain._contributions import Contributions, as_single_sum
from derand.explain._names import Names
from derand.explain.densities import Density, measure_density
from derand.explain.heights import Reach
from derand.explain.plots._figure import Panel, shapes
from derand.explain.plots._shapes import Scale
from derand.model import AdditiveEnsemble, Model, Term
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.threat import Threat

_RANKED_ROWS = 20_000
_MOST_CLASSES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What is to be drawn of a model.

    Attributes
    ----------
    columns : sequence of int, or None
        Which ones; None for all.
    rows : array of shape (n_rows, n_features) or None
        Data to draw beneath, and to rank columns by.
    kept : mapping of column to Density
        Data that training kept, where no rows are given.
    importances : array of shape (n_features,) or None
        To rank columns by, where no rows are given.
    radius : float or None
        Of the band; None for none.
    max_columns : int
    ends : mapping of column to (least, largest)
        Those of columns of which they are known without data.
    """

    columns: Sequence[int] | None = None
    rows: FloatArray | None = None
    kept: Mapping[int, Density] | None = None
    importances: FloatArray | None = None
    radius: float | None = None
    max_columns: int = 12
    ends: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def draw_model(
    model: Model,
    noise: Noise | None,
    threat: Threat,
    names: Names,
    picture: Picture,
    *,
    points: float,
    height: str,
    classes: Sequence[object] = (),
) -> PlotAxes:
    """Shapes of a model's columns, the most important first.

    `model`: a vote of several has no shapes of its own, and is refused; `threat`: what may change, by numbers of
    columns: limits and frozen columns hold for the band, too; `points`: how many whole scores are one unit of the
    height; `height`: what that unit is; `classes`: names of the classes, where there are more than two.
    """
    ensemble = as_single_sum(model)
    if ensemble is None:
        raise ValueError(
            f"`plot` draws one sum, got a vote of {len(model.members)}: draw single terms of its members with "
            "`derand.plot.shape`, such as those of `ensemble_.members[0].terms`."
        )
    chosen = _choose_terms(ensemble, picture)
    most = 2 if ensemble.n_outputs == 1 else 1
    drawn = [term for term in chosen if len(term.features) <= most and not term.is_tree]
    if not drawn and any(term.is_tree for term in chosen):
        raise ValueError(
            "`plot` draws functions of one or two columns, and the trees of this model join many: `explain` shows what "
            "decides single rows."
        )
    shown = drawn[: picture.max_columns]
    outputs = _choose_outputs(ensemble, classes)
    scales = _choose_scales(ensemble, points, picture.rows)
    panels = [_make_panel(term, scales[term.features], threat, names, picture) for term in shown]
    notes = _list_notes(chosen, drawn, shown)
    if outputs is not None and len(outputs) < len(classes):
        notes.append(f"{len(outputs)} of {len(classes)} classes, those whose scores vary most.")
    band = "" if picture.radius is None else f"within radius {format_short(picture.radius)}"
    if threat.norm is None:
        band = "within the limits"
    return shapes(panels, noise, height=height, classes=outputs, band=band, notes=notes)


def _choose_terms(ensemble: AdditiveEnsemble, picture: Picture) -> list[Term]:
    """Terms of the columns that are asked for, in their order; else those that vary, the most important first."""
    if picture.columns is not None:
        asked = list(dict.fromkeys(picture.columns))
        by_column = {at: term for term in ensemble.terms for at in term.features}
        return list(dict.fromkeys(by_column[at] for at in asked if at in by_column))
    weights = {term: _weigh(term, picture) for term in ensemble.terms}
    return sorted((term for term in ensemble.terms if weights[term] > 0), key=lambda term: -weights[term])


def _weigh(term: Term, picture: Picture) -> float:
    """How much a term matters: how its score varies over rows, its importance, or else the range of its scores."""
    if picture.rows is not None and len(picture.rows):
        some = picture.rows[:: max(1, len(picture.rows) // _RANKED_ROWS)]
        return float(np.asarray(term.score_rows(some), dtype=np.float64).std(axis=0).max())
    if picture.importances is not None:
        return float(sum(picture.importances[at] for at in term.features))
    if term.slope is not None:
        return float(np.abs(term.slope.values).max())
    low, high = term.score_range()
    return float(high - low)


def _choose_outputs(ensemble: AdditiveEnsemble, classes: Sequence[object]) -> dict[str, int] | None:
    """Which scores of several classes are drawn, by name; None where there is one score."""
    if ensemble.n_outputs == 1:
        return None
    spread = np.zeros(ensemble.n_outputs)
    for term in ensemble.terms:
        if term.scores.size:
            spread += np.ptp(term.scores, axis=0)
    kept = sorted(np.argsort(-spread, kind="stable")[:_MOST_CLASSES].tolist())
    named = {at: classes[at] for at in kept}
    return {name if isinstance(name, str) else f"class {name}": int(at) for at, name in named.items()}


def _choose_scales(ensemble: AdditiveEnsemble, points: float, rows: FloatArray | None) -> dict[tuple[int, ...], Scale]:
    """Heights of each term: from the neutral point of two classes; else from the middle of its own scores."""
    if ensemble.n_classes == 2 and ensemble.n_outputs == 1:
        found = Contributions(ensemble, points, rows)
        return {term.features: Scale(found.neutral[term.features], points) for term in ensemble.terms}
    return {term.features: Scale(_average_score(term, rows), points) for term in ensemble.terms}


def _average_score(term: Term, rows: FloatArray | None) -> FloatArray | float:
    """What a term adds on average, over some rows or over its cells, for each output."""
    if rows is not None and len(rows):
        return np.asarray(np.asarray(term.score_rows(rows), dtype=np.float64).reshape(len(rows), -1).mean(axis=0))
    return 0.0 if term.slope is not None or not term.scores.size else np.asarray(term.scores.mean(axis=0))


def _make_panel(term: Term, scale: Scale, threat: Threat, names: Names, picture: Picture) -> Panel:
    densities = [_measure_density(at, names, picture) for at in term.features]
    feature = term.features[0]
    reach = None
    if picture.radius is not None and len(term.axes) == 1 and threat.may_move(feature):
        reach = _make_reach(feature, picture.radius, threat, len(names.columns))
    return Panel(
        term,
        [names.columns[at] for at in term.features],
        scale,
        densities,
        None if term.axes else names.categories.get(feature),
        reach,
        [picture.ends.get(at) for at in term.features],
    )


def _measure_density(feature: int, names: Names, picture: Picture) -> Density | None:
    if picture.rows is not None:
        return measure_density(picture.rows[:, feature], names.is_category(feature))
    return None if picture.kept is None else picture.kept.get(feature)


def _make_reach(feature: int, radius: float, threat: Threat, n_features: int) -> Reach:
    """How far values of a column may change when nothing else does: within the ball, limits and domain."""

    perturbation = Perturbation.of(threat.resolve(None), n_features, [feature])

    def reach(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = np.zeros((x.size, n_features))
        rows[:, feature] = x
        low, high = (end[:, feature] for end in perturbation.box(rows))
        if perturbation.norm == 0:
            size = math.inf if radius >= 1 else 0.0
        else:
            size = math.inf if perturbation.norm is None else radius * float(perturbation.units[feature])
        return np.minimum(np.maximum(low, x - size), x), np.maximum(np.minimum(high, x + size), x)

    return reach


def _list_notes(chosen: Sequence[Term], drawn: Sequence[Term], shown: Sequence[Term]) -> list[str]:
    """What is not in the picture."""
    notes = []
    if len(shown) < len(drawn):
        notes.append(f"{len(shown)} of {len(drawn)} functions, the most important first.")
    if len(drawn) < len(chosen):
        left = plural(len(chosen) - len(drawn), "function")
        notes.append(f"{left} of several columns not drawn: maps show two columns and one score.")
    return notes
