"""Changes, limits and radii in words, in the user's values.

Owns how far a value is rounded so that the sentence stays true: a value that is said to flip is tried before it is
said. Must not know models: labels of changed rows come from a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import format_distance, format_exactly, format_readable, format_short_down, join_words, plural
from derand.certificates import Change
from derand.explain._names import NEW, Names
from derand.tables import format_moment
from derand.threat import Limit

Flips = Callable[[FloatArray], BoolArray]
"""Which of some changed rows, (n, n_features), get another answer and may be asked for."""

SCALING_UNITS = {
    "standard": "standard deviation in the training data",
    "range": "range in the training data",
    "robust": "interquartile range in the training data",
}
"""What counts as a change of 1 of a column, by the scaling of an estimator."""
_DIGITS_OF_ENDS = (4, 5, 6, 8, 10, 12)
_SEEN = 0.1
_NEARLY = 0.98
_LISTED = 6
_WORTH_TELLING = 1e-3


def describe_limit(limit: Limit, unit: str = "") -> str:
    """A limit in words.

    Examples
    --------
    >>> describe_limit("5%"), describe_limit(500), describe_limit((0, 30))
    ('by at most 5% of its value', 'by at most 500', 'up by at most 30, not down')
    """
    if isinstance(limit, str):
        return f"by at most {limit} of its value"
    if not isinstance(limit, tuple):
        return "without limit" if math.isinf(limit) else f"by at most {format_exactly(limit)}{unit}"
    ways = [(name, size) for name, size in zip(("down", "up"), limit, strict=True) if size > 0]
    if not ways:
        return "not at all"
    told = [
        f"{name} without limit" if math.isinf(size) else f"{name} by at most {format_exactly(size)}{unit}"
        for name, size in ways
    ]
    if len(ways) == 2:
        return " and ".join(told)
    return f"{told[0]}, not {'up' if ways[0][0] == 'down' else 'down'}"


def describe_domain(low: float, high: float, write: Callable[[float], str] = format_exactly) -> str:
    """Ends in words.

    Examples
    --------
    >>> describe_domain(0, 120), describe_domain(0, float("inf")), describe_domain(float("-inf"), 0)
    ('between 0 and 120', 'at or above 0', 'at or below 0')
    """
    if math.isinf(low) and math.isinf(high):
        return "anywhere"
    if math.isinf(high):
        return f"at or above {write(low)}"
    if math.isinf(low):
        return f"at or below {write(high)}"
    return f"between {write(low)} and {write(high)}"


def multiply_down(radius: float, unit: float) -> float:
    """The product, never above the true one."""
    product = radius * unit
    if not math.isfinite(product) or Fraction(product) <= Fraction(radius) * Fraction(unit):
        return product
    return math.nextafter(product, 0.0)


def move_alone(radius: float, unit: float) -> float:
    """How far one feature may move: a hair less than the product, because the ball is open."""
    return math.nextafter(multiply_down(radius, unit), 0.0) if math.isfinite(radius) else radius


def describe_flip(names: Names, feature: int, before: float, after: float) -> str:
    """A change of one column, after "if", such as "'income' fell from 2,400 to 1,870"."""
    name = names.quote(feature)
    if names.is_category(feature):
        new = (
            "a value that training did not see"
            if names.write(feature, after) == NEW
            else names.quote_value(feature, after)
        )
        return f"{name} were {new} instead of {names.quote_value(feature, before)}"
    return f"{name} {describe_move(before, after, is_date=feature in names.dates)}"


def describe_change(names: Names, feature: int, before: float, after: float) -> str:
    """The same, also where a number goes missing or appears."""
    if names.is_category(feature) or not (math.isnan(before) or math.isnan(after)):
        return describe_flip(names, feature, before, after)
    return f"{names.quote(feature)} were {names.write(feature, after)} instead of {names.write(feature, before)}"


def describe_move(before: float, after: float, *, is_date: bool = False) -> str:
    """A number that changes, or a date, in days.

    Examples
    --------
    >>> describe_move(2400.0, 1870.0), describe_move(0.5, 0.75)
    ('fell from 2,400 to 1,870', 'rose from 0.5 to 0.75')
    >>> describe_move(19878.0, 19844.0, is_date=True)
    'fell from 2024-06-04 to 2024-05-01'
    """
    old, new = write_move(before, after, is_date=is_date)
    return f"{'fell' if after < before else 'rose'} from {old} to {new}"


def write_move(before: float, after: float, *, is_date: bool = False) -> tuple[str, str]:
    """Both ends of a move, with as many digits as it needs."""
    if is_date:
        return format_moment(before), format_moment(after)
    return _write_exactly(before, after - before), _write_exactly(after, after - before)


def _write_exactly(value: float, move: float) -> str:
    """A number with as many digits as the move needs, thousands apart."""
    short = format_readable(value, 6)
    if "e" not in short and abs(float(short.replace(",", "")) - value) <= 1e-3 * abs(move):
        return short
    exact = format_exactly(value)
    return exact if "e" in exact or "n" in exact else f"{Decimal(exact):,f}"


def describe_column(names: Names, start: FloatArray, change: Change, after: float, unit: float, label: str) -> str:
    """What is known of one column alone, as a sentence; `after` is its value that flips, as it is told."""
    assert change.feature is not None  # one column
    proven = move_alone(change.certified, unit) if change.certified >= 0 else 0.0
    smaller = _describe_proven(proven, " days" if change.feature in names.dates else "")
    if change.row is not None:
        sentence = (
            f"It would flip to {label} if {describe_flip(names, change.feature, float(start[change.feature]), after)}"
        )
        is_close = names.is_category(change.feature) or change.certified >= _NEARLY * change.attacked
        return f"{sentence}." if is_close else f"{sentence}; {smaller}."
    name = names.quote(change.feature)
    if math.isinf(proven):
        return f"No change of {name} alone flips it."
    return f"No change of {name} alone was found to flip it; {smaller}."


def _describe_proven(move: float, unit: str) -> str:
    if move <= 0:
        return "nothing is proven of smaller changes"
    return f"a change by less than {format_short_down(move)}{unit} is proven not to"


def describe_joint(names: Names, start: FloatArray, after: FloatArray, units: FloatArray, label: str) -> str:
    """The change of all numbers together that was found: its largest moves, in about the values that it takes."""
    moves = np.abs(np.nan_to_num(after - start)) / units
    order = [int(at) for at in np.argsort(-moves, kind="stable") if moves[at] > _WORTH_TELLING * moves.max(initial=0.0)]
    told = [
        f"{names.quote(at)} {_describe_about(float(start[at]), float(after[at]), at in names.dates)}"
        for at in order[:_LISTED]
    ]
    if len(order) > _LISTED:
        told.append(f"{plural(len(order) - _LISTED, 'more column')} moved a little")
    return f"It would flip to {label} if {join_words(told)}."


def _describe_about(before: float, after: float, is_date: bool) -> str:
    """A number that changes, with few digits, or a date; "about" where a change is told less than exactly."""
    old, new = write_move(before, after, is_date=is_date) if is_date else _write_near(before, after)
    about = "" if after.is_integer() else "about "
    return f"{'fell' if after < before else 'rose'} from {old} to {about}{new}"


def _write_near(before: float, after: float) -> tuple[str, str]:
    """Both ends of a move, with no more digits than are needed to see it."""
    for digits in _DIGITS_OF_ENDS:
        texts = format_readable(before, digits), format_readable(after, digits)
        old, new = (float(text.replace(",", "")) for text in texts)
        if abs((new - old) - (after - before)) <= _SEEN * abs(after - before):
            return texts
    return write_move(before, after)


def describe_radius(radius: float, norm: float | None, found: float, where: str, *, in_steps: bool = False) -> str:
    """What is proven of the whole row, and how near the nearest flip is that was found.

    `in_steps` is whether it is larger than that of any change, because whole numbers stay whole.
    """
    its = "In whole steps its" if in_steps else "Its"
    if math.isinf(radius):
        return f"No change of numbers{'' if norm is not None else ' within the limits'} flips it: this is proven."
    if norm == 0:
        columns = plural(int(radius), "numerical column")
        proven = f"any {columns} may become anything" if radius >= 1 else "no column may become anything"
        return f"{its} radius is {int(radius)}: {proven} without flipping it."
    proven = (
        f"{its} radius is {format_short_down(radius)}: no smaller change of its numbers flips it"
        if radius > 0
        else f"{its} radius is 0: nothing is proven for it"
    )
    nearest = "" if math.isinf(found) else f", and one of size {format_distance(found)} does"
    return f"{proven}{nearest} ({where})."


def describe_size(norm: float | None, unit: str) -> str:
    """How changes are measured, in few words.

    Examples
    --------
    >>> describe_size(2, "its interquartile range in the training data")
    'l2 norm, each column divided by its interquartile range in the training data'
    """
    named = "l2 norm" if norm is None else f"l{norm:g} norm"
    return f"{named}, each column divided by {unit}" if unit else f"{named}, columns in their own units"


def list_safe(names: Names, changes: Sequence[Change]) -> list[str]:
    """One sentence for all columns that no change alone flips, by proof."""
    safe = [names.quote(change.feature) for change in changes if change.feature is not None]
    if not safe:
        return []
    told = safe[:_LISTED]
    if len(safe) > len(told):
        told.append(plural(len(safe) - len(told), "other column"))
    *most, last = told
    which = f"{', '.join(most)} or {last}" if most else last
    return [f"No change of {which} alone flips it: this is proven."]


def list_held(
    names: Names, row: FloatArray, read: Sequence[int], told: Sequence[int | None], frozen: Collection[int | str]
) -> list[str]:
    """Why columns that a model reads are not told: they are frozen, or missing in this row.

    `read`: columns that the model reads; `told`: those that sentences are about; `row` has shape (n_features,).
    """
    left = [at for at in read if at not in told]
    kept = [names.quote(at) for at in left if at in frozen]
    gaps = [names.quote(at) for at in left if at not in frozen and math.isnan(row[at])]
    reasons = [("frozen: no change was looked for", kept), ("missing: no change of a number was looked for", gaps)]
    return [f"{join_words(found)} {'is' if len(found) == 1 else 'are'} {reason}." for reason, found in reasons if found]
