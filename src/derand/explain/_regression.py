"""One row whose answer is a number, explained: what adds up to it, and how far changes move it. As text and picture.

Owns what `explain` of a regressor gives back. Must not know scikit-learn or how tables are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from derand._core.arrays import FloatArray, PlotAxes
from derand._core.markup import write_block, write_lines, write_table
from derand._core.text import (
    format_exactly,
    format_readable,
    format_short_down,
    format_short_up,
    join_words,
    plural,
    shorten,
)
from derand.explain._contributions import (
    Contribution,
    as_single_sum,
    list_bars,
    list_contributions,
    write_signed,
)
from derand.explain._names import Names
from derand.explain._words import describe_change, describe_size, list_held, move_alone
from derand.explain.bars import Span
from derand.explain.heights import measure_heights
from derand.model import Model, Term
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.threat import Threat

_LISTED = 10
_SAID = 5
_DIGITS, _DIGITS_OF_CONTRIBUTIONS = 6, 4


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the answer stays while one column changes, or all numbers.

    Attributes
    ----------
    feature : int or None
        None for all numbers together.
    low, high : float
        Certified ends.
    """

    feature: int | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Extreme:
    """The lowest or the highest answer that was found, and the changed row, as the model reads it."""

    value: float
    row: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberExplanation:
    """One row whose answer is a number, explained. `print` tells it, `plot` draws it.

    Attributes
    ----------
    value : float
        Its answer.
    base : float
        What all columns are measured from: the mean prediction of the training rows, where the regressor knows them;
        else the answer where each column adds what it does on average over its own steps, and of a linear model that
        where every number is 0.
    base_text : str
        The same in words.
    pushes : tuple of Contribution
        What each column adds to the base, from the strongest on; they add up to the answer. By the rule "vote" they add
        up to the mean of noisy copies, and `rest` is what the median lies above it. None for trees that join columns,
        whose base is the answer.
    rest : float
    joint : Reach
        Where the answer stays while all numbers change within the radius.
    columns : tuple of Reach
        The same for each column alone, from the widest to the narrowest.
    lowest, highest : Extreme
        What was found within the radius: bounds from inside.
    sentences : tuple of str
        What each column alone can do, the strongest first.
    """

    value: float
    base: float
    base_text: str
    pushes: tuple[Contribution, ...]
    rest: float
    joint: Reach
    columns: tuple[Reach, ...]
    lowest: Extreme
    highest: Extreme
    joint_text: str
    found_texts: tuple[str, ...]
    sentences: tuple[str, ...]
    names: Names

    @property
    def headline(self) -> str:
        """The answer and where it stays."""
        return f"The answer is {_write(self.value)}. {self.joint_text}"

    def __repr__(self) -> str:
        return f"<Explanation: {shorten(self.headline, 160)}>"

    def __str__(self) -> str:
        table = self._list_contributions()
        width = max(len(size) for size, _ in table)
        lines = [self.headline]
        if self.pushes:
            lines += ["", "What adds up to it:", *(f"  {size:>{width}}  {text}" for size, text in table)]
        lines += ["", "One column alone:", *(f"  {sentence}" for sentence in self.sentences)]
        if self.found_texts:
            lines += ["", "All together:", *(f"  {text}" for text in self.found_texts)]
        return "\n".join(lines)

    def _list_contributions(self) -> list[tuple[str, str]]:
        """By how much, and by what: the base first, the answer last."""
        bars = list_bars(self.pushes, _DIGITS_OF_CONTRIBUTIONS)
        lines = [(_write(self.base), self.base_text), *((bar.text, bar.name) for bar in bars)]
        if abs(self.rest) > 1e-9 * max(abs(self.value), abs(self.base), 1e-300):
            rest = write_signed(self.rest, _DIGITS_OF_CONTRIBUTIONS)
            lines.append((rest, "from the mean of noisy copies to their median"))
        return [*lines, (_write(self.value), "the answer")]

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        parts = [write_lines([self.joint_text])]
        if self.pushes:
            parts.append(write_table(["", ""], self._list_contributions()))
        parts.append(write_lines([*self.sentences, *self.found_texts]))
        return write_block(f"The answer is {_write(self.value)}.", *parts)

    def plot(self) -> PlotAxes:
        """Draw what adds up to the answer, and beside it how far each column alone can move it.

        Returns
        -------
        array of two matplotlib Axes
            Their figure is `axes[0].figure`.
        """
        from derand.explain.plots import reaches

        bars = list_bars(self.pushes, _DIGITS_OF_CONTRIBUTIONS)
        spans = [Span("all numbers together", self.joint.low, self.joint.high)]
        spans += [Span(self.names.columns[one.feature or 0], one.low, one.high) for one in self.columns[:_LISTED]]
        found = (self.lowest.value, self.highest.value)
        height = f"added to {_write(self.base)}, the answer {self.base_text}"
        return reaches(bars, spans, value=self.value, height=height, found=found, title=self.headline)


def _write(value: float) -> str:
    return format_readable(value, _DIGITS)


def _write_ends(reach: Reach) -> str:
    """Both ends, the lower one rounded down and the higher one up."""
    return f"{format_short_down(reach.low, _DIGITS)} and {format_short_up(reach.high, _DIGITS)}"


def explain_regression(
    value: float,
    model: Model,
    row: FloatArray,
    noise: Noise | None,
    *,
    threat: Threat,
    radius: float | None,
    joint: Reach,
    columns: list[Reach],
    extremes: tuple[Extreme, Extreme],
    names: Names,
    points: float,
    unit: str,
    means: FloatArray | None = None,
) -> NumberExplanation:
    """An explanation of a number with what there is to say about it.

    `model`: whose answer is a number; `threat`: what was asked, by numbers of columns, with its norm and units;
    `points`: how many whole scores are 1 of the target; `unit`: by what changes of a column are divided; empty where by
    nothing; `means`: what each term adds on average over training rows, in units of the target; `row` has shape
    (n_features,).
    """
    units = Perturbation.of(threat, row.size, ()).units
    has_means = means is not None and len(means) == len(model.member_terms) and not model.has_trees
    contributions: tuple[Contribution, ...] = ()
    base = value
    if not model.has_trees:
        contributions, base = _add_up(model, row, noise, names, points, means if has_means else None)
    steps = "where every number is 0" if model.is_linear else "on average over all steps"
    ordered = tuple(sorted(columns, key=lambda one: one.low - one.high))
    where = describe_size(threat.ball_norm if threat.norm is not None else math.inf, unit)
    change = "within the limits" if radius is None else f"smaller than {format_exactly(radius)} ({where})"
    if threat.norm == 0 and radius is not None:
        change = f"of {plural(int(radius), 'numerical column')}, to anything,"
    read = sorted({*model.numerical_features, *model.categorical_features})
    held = list_held(names, row, read, [one.feature for one in columns], threat.frozen)
    return NumberExplanation(
        value=value,
        base=base,
        base_text="on average over training rows" if has_means else steps,
        pushes=contributions,
        rest=value - base - math.fsum(one.size for one in contributions),
        joint=joint,
        columns=ordered,
        lowest=extremes[0],
        highest=extremes[1],
        joint_text=f"No change {change} takes it out of {_write_ends(joint).replace(' and ', ' to ')}: this is proven.",
        found_texts=_describe_extremes(names, row, value, extremes, units),
        sentences=(*(_describe_reach(names, one, value, threat.norm, radius, units) for one in ordered), *held),
        names=names,
    )


def _add_up(
    model: Model, row: FloatArray, noise: Noise | None, names: Names, points: float, means: FloatArray | None
) -> tuple[tuple[Contribution, ...], float]:
    """What each term adds to its own average, from the strongest on, and what these averages add up to."""
    ensemble = as_single_sum(model)
    assert ensemble is not None  # a number is one sum

    averages = [_average_score(term) / points for term in ensemble.terms] if means is None else list(map(float, means))
    home = {term.features: average for term, average in zip(ensemble.terms, averages, strict=True)}

    def measure(term: Term, x: FloatArray) -> float:
        return float(measure_heights(term, x, noise)[0, 0]) / points - home[term.features]

    base = float(ensemble.offset or 0) / points + math.fsum(averages)
    return list_contributions(ensemble.terms, row, names, measure), base


def _average_score(term: Term) -> float:
    """What a term adds on average over its own steps or categories; 0 for a line."""
    return 0.0 if term.slope is not None or not term.scores.size else float(term.scores.mean())


def _describe_reach(
    names: Names, reach: Reach, value: float, norm: float | str | None, radius: float | None, units: FloatArray
) -> str:
    """What one column alone can do, as a sentence."""
    assert reach.feature is not None  # one column
    name, ends = names.quote(reach.feature), _write_ends(reach)
    if reach.low == reach.high == value:
        return f"No change of {name} alone moves it: this is proven."
    if names.is_category(reach.feature):
        return f"Whatever {name} is, it stays between {ends}."
    if radius is None or norm == 0:
        return f"Whatever {name} becomes{' within its limits' if radius is None else ''}, it stays between {ends}."
    move = move_alone(radius, float(units[reach.feature]))
    days = " days" if reach.feature in names.dates else ""
    return f"While {name} moves by {format_short_down(move)}{days} at most, it stays between {ends}."


def _describe_extremes(
    names: Names, row: FloatArray, value: float, extremes: tuple[Extreme, Extreme], units: FloatArray
) -> tuple[str, ...]:
    """The changes with the lowest and the highest answer that were found, as sentences."""
    told = []
    for verb, extreme in zip(("fall", "rise"), extremes, strict=True):
        if extreme.value == value:
            continue
        moves = np.where(np.isnan(extreme.row) | np.isnan(row), np.inf, np.abs(extreme.row - row) / units)
        moves[np.isnan(extreme.row) & np.isnan(row)] = 0.0
        order = [int(at) for at in np.argsort(-moves, kind="stable") if moves[at] > 1e-3 * np.min([moves.max(), 1e300])]
        parts = [describe_change(names, at, float(row[at]), float(extreme.row[at])) for at in order[:_SAID]]
        if len(order) > _SAID:
            parts.append(f"{plural(len(order) - _SAID, 'more column')} moved")
        told.append(f"It would {verb} to about {_write(extreme.value)} if {join_words(parts)}.")
    return tuple(told)
