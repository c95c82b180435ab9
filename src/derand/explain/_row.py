"""One row explained: the answer, what contributes to it, how far it is from flipping. As text, picture and HTML.

Owns what `explain` of a classifier gives back. Must not know scikit-learn or how tables are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, Labels, PlotAxes
from derand._core.markup import write_block, write_lines, write_table
from derand._core.origin import Cell
from derand._core.text import format_distance, format_short, plural, quote_short, shorten
from derand.certificates import Change, Explanation, Reason, Verifier, find_labels, round_flip
from derand.explain._contributions import (
    Contribution,
    Contributions,
    as_single_sum,
    list_bars,
    list_contributions,
    write_signed,
)
from derand.explain._names import Names
from derand.explain._statements import list_reason_sentences
from derand.explain._words import (
    Flips,
    describe_column,
    describe_joint,
    describe_radius,
    describe_size,
    list_held,
    list_safe,
    write_move,
)
from derand.explain.bars import Bar, Step
from derand.model import AdditiveEnsemble, Model, Term
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.tables import SECONDS
from derand.threat import Threat

_LISTED = 10
_SENTENCES = 8
_DIGITS = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowExplanation(Explanation):
    """One row explained. `print` tells it, `plot` draws it.

    Attributes
    ----------
    label : object
        Its answer.
    columns : tuple of Change
        For each column of the model that may change, alone: from the smallest change that flips to the largest.
    joint : Change
        For all numbers together.
    pushes : tuple of Contribution
        What each column adds, from the strongest on; all of them add up to the distance of the score from the
        threshold. None for a vote of several models, and for trees that join columns.
    sides : tuple of two objects
        The class that negative contributions are for, and that of positive ones. Of several classes the answer is the
        second, and the class that is nearest to it the first.
    unit : str
        What contributions are measured in.
    radius_text : str
        The radius in words.
    sentences : tuple of str
        What a change of each column alone does, the nearest flip first.
    joint_text : str
        The change of all numbers together that was found; empty where none was.
    size_text : str
        How changes are measured.
    steps : tuple of Step
        Lines of the picture: how far changes are from flipping it.
    reasons : tuple of Reason
        Up to three sets of columns that were enough for the answer, whatever the others are; empty where the model has
        none to give (votes, trees, linear models).
    reason_sentences : tuple of str
        The same in words.
    """

    pushes: tuple[Contribution, ...]
    sides: tuple[Any, Any]
    unit: str
    radius_text: str
    sentences: tuple[str, ...]
    joint_text: str
    size_text: str
    steps: tuple[Step, ...]
    reasons: tuple[Reason, ...] = ()
    reason_sentences: tuple[str, ...] = ()

    @property
    def nearest(self) -> str:
        """The nearest flip as a sentence: that of one column alone, else that of all numbers together."""
        if any(change.row is not None for change in self.columns):
            return self.sentences[0]
        return self.joint_text or "No change that flips it was found."

    @property
    def headline(self) -> str:
        """The nearest flip in short."""
        if any(change.row is not None for change in self.columns):
            return self.sentences[0]
        is_proven = all(math.isinf(change.certified) for change in self.columns)
        alone = "No column alone flips it" if is_proven else "No column alone was found to flip it"
        if self.joint.row is None:
            return f"{alone}, and no change of all numbers was found to, either."
        return f"{alone}; all numbers together do, by a change of size {format_distance(self.joint.attacked)}."

    @property
    def total(self) -> float:
        """What all contributions add up to."""
        return math.fsum(push.size for push in self.pushes)

    def __repr__(self) -> str:
        return f"<Explanation: {quote_label(self.label)}. {shorten(self.headline, 120)}>"

    def __str__(self) -> str:
        lines = [f"The answer is {quote_label(self.label)}. {self.radius_text}"]
        table = self._list_contributions()
        if table:
            widths = [max(len(line[at]) for line in table) for at in range(2)]
            lines += ["", f"What pushes it ({self.unit}):"]
            lines += [f"  {side:<{widths[0]}}  {size:>{widths[1]}}  {text}" for side, size, text in table]
        lines += ["", "Enough for it:", *(f"  {one}" for one in self.reason_sentences)] if self.reasons else []
        lines += ["", "One column alone:", *(f"  {sentence}" for sentence in self._shorten_sentences())]
        if self.joint_text:
            lines += ["", "All numbers together:", f"  {self.joint_text}"]
        return "\n".join(lines)

    def _shorten_sentences(self) -> list[str]:
        told = list(self.sentences[:_SENTENCES])
        left = len(self.sentences) - len(told)
        return [*told, f"{plural(left, 'more sentence')} in `sentences`."] if left else told

    def _list_contributions(self) -> list[tuple[str, str, str]]:
        """Towards which class, by how much, and by what; the sum last."""
        return [
            (f"towards {quote_label(self.sides[int(bar.size > 0)])}", format_short(abs(bar.size), _DIGITS), bar.name)
            for bar in self._list_bars()
        ]

    def _list_bars(self) -> list[Bar]:
        """What contributes, the sum last; nothing for a vote."""
        total = Bar("in all", self.total, write_signed(self.total, _DIGITS))
        return [*list_bars(self.pushes, _DIGITS), total] if self.pushes else []

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        parts = [write_lines([self.headline, self.radius_text])]
        if self.pushes:
            parts.append(write_table(["", self.unit, ""], self._list_contributions()))
        others = [line for line in self._shorten_sentences() if line != self.headline]
        parts.append(write_lines([*others, *([f"All numbers together: {self.joint_text}"] if self.joint_text else [])]))
        parts += [write_lines(["Enough for it:", *self.reason_sentences])] if self.reasons else []
        return write_block(f"The answer is {quote_label(self.label)}.", *parts)

    def plot(self) -> PlotAxes:
        """Draw what contributes to the row's answer, and beside it the change of each column that flips it alone.

        Returns
        -------
        array of two matplotlib Axes
            Their figure is `axes[0].figure`.
        """
        from derand.explain.plots import pushes

        bars = self._list_bars()
        return pushes(
            bars[:-1],
            bars[-1] if bars else None,
            self.steps,
            sides=(quote_label(self.sides[0]), quote_label(self.sides[1])),
            height=self.unit,
            size="size of the change",
            title=f"The answer is {quote_label(self.label)}. {self.headline}",
        )


class Explanations(tuple[Cell, ...]):
    """Explanations of several rows, in their order; `print` tells all of them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(f"Row {at}\n{one}" for at, one in enumerate(self))

    def _repr_html_(self) -> str:
        return "".join(f"{write_lines([f'Row {at}'], muted=True)}{one._repr_html_()}" for at, one in enumerate(self))


def quote_label(label: object) -> str:
    """A label in a sentence: text is quoted, numbers are not.

    Examples
    --------
    >>> quote_label(np.str_("yes")), quote_label(np.int64(1)), quote_label(True)
    ("'yes'", '1', 'True')
    """
    return quote_short(str(label)) if isinstance(label, str) else str(label)


def explain_label(
    found: Explanation,
    model: Model,
    row: FloatArray,
    noise: Noise | None,
    *,
    rule: str,
    threat: Threat,
    classes: Labels,
    rival: int,
    names: Names,
    points: float,
    unit: str,
    in_steps: bool,
    reasons: Sequence[Reason] = (),
) -> RowExplanation:
    """An explanation with what there is to say about it.

    `found`: its label by number; `threat`: what was asked, by numbers of columns, with its norm and units; `rival`: the
    class that is nearest to the answer; `points`: how many whole scores are one unit of a contribution; `unit`: by what
    changes of a column are divided; empty where by nothing; `in_steps`: whether the radius is larger than that of any
    change, because whole numbers stay whole; `reasons`: sets of columns that were enough; `row` has shape
    (n_features,), `classes` (n_classes,).
    """
    perturbation = Perturbation.of(threat, row.size, model.numerical_features)
    home, units = int(found.label), perturbation.units

    verifier = Verifier(model, noise, rule, perturbation, row[None], np.array([home]))

    def flips(rows: FloatArray) -> NDArray[np.bool_]:
        belongs = np.zeros(len(rows), dtype=np.int64)
        return np.asarray(verifier.allows(rows, belongs) & verifier.flips(rows, belongs))

    def name_new(change: Change) -> str:
        if change.row is None:
            return ""
        return quote_label(classes[find_labels(model, change.row[None], noise, rule=rule)[0]])

    contributions, sides = _measure_contributions(model, row, noise, names, points, home, rival)
    strong = [at for one in contributions for at in one.features]
    safe = [one for one in found.columns if one.row is None and math.isinf(one.certified)]
    if strong:
        safe.sort(key=lambda one: strong.index(one.feature or 0))
    near = [(one, _choose_value(names, row, one, flips)) for one in found.columns if one not in safe]
    told = [
        describe_column(names, row, one, after, float(units[one.feature or 0]), name_new(one)) for one, after in near
    ]
    where = describe_size(threat.ball_norm if threat.norm is not None else math.inf, unit)
    read = sorted({*model.numerical_features, *model.categorical_features})
    held = list_held(names, row, read, [one.feature for one in found.columns], threat.frozen)
    return RowExplanation(
        **{one.name: getattr(found, one.name) for one in fields(Explanation) if one.name != "label"},
        label=classes[home],
        pushes=contributions,
        sides=(classes[sides[0]], classes[sides[1]]),
        unit=_name_unit(model, points),
        radius_text=describe_radius(
            found.joint.certified, threat.ball_norm, found.joint.attacked, where, in_steps=in_steps
        ),
        sentences=(*told, *list_safe(names, safe), *held),
        joint_text=_describe_joint(found.joint, names, row, units, name_new(found.joint)),
        size_text=where,
        steps=tuple(_list_steps(names, found.joint, near, safe, row)),
        reasons=tuple(reasons),
        reason_sentences=list_reason_sentences(names, row, reasons),
    )


def _name_unit(model: Model, points: float) -> str:
    """What contributions are measured in; those of linear models need a point to begin at."""
    unit = "log-odds" if points != 1 else "points of the score"
    return f"{unit}, measured from 0 of every column" if model.is_linear else unit


def _describe_joint(joint: Change, names: Names, row: FloatArray, units: FloatArray, label: str) -> str:
    """The change of all numbers together; nothing where there is none, or it is that of one column."""
    if joint.row is None or np.sum(joint.row != row, where=~np.isnan(row)) < 2:
        return ""
    return describe_joint(names, row, joint.row, units, label)


def _choose_value(names: Names, row: FloatArray, change: Change, flips: Flips) -> float:
    """The value of a column that is told to flip; not a number where none does."""
    at = change.feature
    if at is None or change.row is None:
        return math.nan
    after = float(change.row[at])
    return (
        after
        if names.is_category(at)
        else round_flip(row, at, after, flips, fractions=(1, SECONDS) if at in names.dates else ())
    )


def _list_steps(
    names: Names, joint: Change, near: Sequence[tuple[Change, float]], safe: Sequence[Change], row: FloatArray
) -> list[Step]:
    """Changes as lines of the picture: the nearest flips, all numbers together, then columns that flip nothing."""
    told = "flips it" if joint.row is not None else "nothing flips it" if math.isinf(joint.certified) else "none found"
    first = [_describe_step(names, one, after, row) for one, after in near[:_LISTED]]
    last = [_describe_step(names, one, math.nan, row) for one in safe[: _LISTED - len(first)]]
    return [*first, Step("all numbers together", joint.certified, joint.attacked, told), *last]


def _describe_step(names: Names, change: Change, after: float, row: FloatArray) -> Step:
    """A change of one column as a line of the picture."""
    assert change.feature is not None  # one column
    at = change.feature
    if change.row is None:
        text = "nothing flips it" if math.isinf(change.certified) else "no flip was found"
        return Step(names.columns[at], change.certified, change.attacked, text)
    if names.is_category(at):  # a change without a size
        text = f"{names.write(at, float(row[at]))} \N{RIGHTWARDS ARROW} {names.write(at, after)} flips it"
        return Step(names.columns[at], math.nan, math.nan, text)
    old, new = write_move(float(row[at]), after, is_date=at in names.dates)
    return Step(names.columns[at], change.certified, change.attacked, f"{old} \N{RIGHTWARDS ARROW} {new}")


def _measure_contributions(
    model: Model, row: FloatArray, noise: Noise | None, names: Names, points: float, home: int, rival: int
) -> tuple[tuple[Contribution, ...], tuple[int, int]]:
    """What each term adds, from the strongest on, and between which two classes; nothing for votes and for trees."""
    ensemble = as_single_sum(model)
    if ensemble is None or ensemble.has_trees:  # what columns of trees add depends on one another
        return (), (0, 1)
    contrast, sides, sign = _choose_contrast(ensemble, home, rival)
    measured = Contributions(contrast, points)

    def measure(term: Term, x: FloatArray) -> float:
        return sign * float(measured.under_noise(term, x, noise)[0])

    return list_contributions(contrast.terms, row, names, measure), sides


def _choose_contrast(
    ensemble: AdditiveEnsemble, home: int, rival: int
) -> tuple[AdditiveEnsemble, tuple[int, int], float]:
    """The sum that decides between the answer and its rival, whom its two sides are for, and the sign of the second."""
    if ensemble.n_classes == 2:
        return ensemble.duel(0, 1), (0, 1), 1.0
    low, high = min(home, rival), max(home, rival)
    return ensemble.duel(low, high), (rival, home), 1.0 if home == high else -1.0
