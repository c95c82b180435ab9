"""Words about threats and the size of changes, in the user's column names. Text only: no markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from derand._core.text import format_exactly, join_words, plural, shorten
from derand.explain import SCALING_UNITS
from derand.perturbation import Perturbation
from derand.report._facts import LimitFacts, ThreatFacts
from derand.report._inputs import Inputs
from derand.tables import format_moment
from derand.threat import EVERY, Limit

_LISTED = 20
_NAME_LENGTH = 60
_NAMED = 3


def describe_unit(inputs: Inputs) -> dict[str, str]:
    """By what the change of a column is divided (nothing, where it counts as it is), and a short name for it."""
    estimator, units = inputs.subject.estimator, inputs.threat.units
    if units is None:
        return {"divide": "", "short": "own"}
    scaling = None if estimator is None else getattr(estimator, "scaling", None)
    if scaling in SCALING_UNITS and estimator is not None and units == estimator.units:
        return {"divide": f"its {SCALING_UNITS[scaling]}", "short": scaling}
    return {"divide": "the unit given for it", "short": "given"}


def name_norm(inputs: Inputs) -> str:
    """The norm as it is written, such as "l2"; nothing where there is no ball."""
    norm = inputs.threat.norm
    return "" if norm is None else f"l{norm}"


def describe_measure(inputs: Inputs) -> str:
    """How the size of a change is measured; nothing without a ball and for a model that reads no numbers."""
    norm = inputs.threat.norm
    if not inputs.subject.model.numerical_features or norm is None:
        return ""
    if norm == 0:
        return (
            "The size of a change is the number of numerical columns that it changes, each to anything that is allowed "
            "(norm l0); a radius counts how many may change."
        )
    unit = describe_unit(inputs)["divide"]
    each = f"the change of each column is divided by {unit}" if unit else "each column's change is taken as it is"
    combine = {
        1: "all are added up without sign",
        2: "the squares are added up and the root is taken",
        math.inf: "and the largest counts, so that all columns may move by that much at the same time",
    }[float(norm)]
    named = f" ({name_norm(inputs)} norm)" if inputs.has_threat else ""
    return f"The size of a change is one number{named}: {each}, {combine}."


def describe_threat(inputs: Inputs) -> ThreatFacts:
    """The threat with its sentences, which are there where one was given."""
    threat = inputs.threat
    limits: list[LimitFacts] = [
        {"column": _name(inputs, column), "text": say_limit(limit, unit_of(inputs, column))}
        for column, limit in threat.limits.items()
    ]
    domain: list[LimitFacts] = [
        {"column": _name(inputs, column), "text": say_ends(inputs, column)} for column in threat.domain
    ]
    frozen = [_name(inputs, column) for column in threat.frozen]
    return {
        "given": inputs.has_threat,
        "bounded": Perturbation.of(threat, inputs.subject.model.n_features, ()).has_box,
        "norm": None if threat.norm is None else float(threat.ball_norm or 0),
        "norm_text": name_norm(inputs),
        "l0": threat.l0,
        "missing": threat.missing_budget,
        "unseen": bool(threat.unseen),
        "frozen": frozen,
        "limits": limits,
        "domain": domain,
        "sentences": _list_sentences(inputs, limits, domain, frozen) if inputs.has_threat else [],
    }


def limit_of(inputs: Inputs, feature: int) -> str:
    """What keeps a column within a ball as well, in words; nothing where nothing does."""
    threat = inputs.threat
    limit = threat.limits.get(feature, threat.limits.get(EVERY))
    parts = [] if limit is None else [say_limit(limit, unit_of(inputs, feature))]
    if feature in threat.domain:
        parts.append(say_ends(inputs, feature))
    return ", ".join(parts)


def unit_of(inputs: Inputs, column: int | str) -> str:
    """What stands behind a size of a column: nothing, or that it is in days."""
    return " days" if column in inputs.subject.dates else ""


def say_ends(inputs: Inputs, column: int | str) -> str:
    """Between which ends a column stays, dates as such."""
    write = format_moment if column in inputs.subject.dates else format_exactly
    return say_domain(*inputs.threat.domain[column], write)


def say_limit(limit: Limit, unit: str = "") -> str:
    """A limit in words.

    Examples
    --------
    >>> say_limit("5%"), say_limit(500), say_limit((0, 30))
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


def say_domain(low: float, high: float, write: Callable[[float], str] = format_exactly) -> str:
    """Ends in words.

    Examples
    --------
    >>> say_domain(0, 120), say_domain(0, float("inf")), say_domain(float("-inf"), 0)
    ('between 0 and 120', 'at or above 0', 'at or below 0')
    """
    if math.isinf(low) and math.isinf(high):
        return "anywhere"
    if math.isinf(high):
        return f"at or above {write(low)}"
    if math.isinf(low):
        return f"at or below {write(high)}"
    return f"between {write(low)} and {write(high)}"


def _name(inputs: Inputs, column: int | str) -> str:
    return str(column) if isinstance(column, str) else inputs.subject.names[column]


def list_words(inputs: Inputs) -> list[str]:
    """What may change, in sentences, whether a threat was given or not."""
    if inputs.has_threat:
        return describe_threat(inputs)["sentences"]
    return [sentence for sentence in (_say_numbers(inputs, [], []), _say_categories(inputs)) if sentence]


def _list_sentences(inputs: Inputs, limits: list[LimitFacts], domain: list[LimitFacts], frozen: list[str]) -> list[str]:
    sentences = [_say_numbers(inputs, limits, domain)]
    told = [f"{_quote(one['column'])} {one['text']}" for one in limits if one["column"] != EVERY]
    every = "every other number" if told or frozen else "every number"
    told += [f"{every} {one['text']}" for one in limits if one["column"] == EVERY]
    if told:
        sentences.append(f"Limits: {_list_some(told)}.")
    if domain:
        stays = [f"{_quote(one['column'])} stays {one['text']}" for one in domain]
        sentences.append(f"Domains: {_list_some(stays)}.")
    sentences += [_say_whole(inputs), _say_steps(inputs)]
    if frozen:
        verb = "does" if len(frozen) == 1 else "do"
        sentences.append(f"Frozen: {join_words(_cut([_quote(name) for name in frozen]))} {verb} not change.")
    sentences += [_say_categories(inputs), _say_missing(inputs)]
    return [sentence for sentence in sentences if sentence]


def _find_counts(inputs: Inputs) -> list[int | str]:
    """Columns that held whole numbers in training and change by whole numbers."""
    return [at for at, step in inputs.threat.steps.items() if step == 1 and at in inputs.subject.whole]


def _say_whole(inputs: Inputs) -> str:
    counts = [_quote(_name(inputs, at)) for at in _find_counts(inputs)]
    if not counts:
        return ""
    verb = "changes" if len(counts) == 1 else "change"
    return f"Counts stay whole numbers: {join_words(_cut(counts))} {verb} by whole numbers alone."


def _say_steps(inputs: Inputs) -> str:
    counts = _find_counts(inputs)
    others = {at: step for at, step in inputs.threat.steps.items() if at not in counts}
    steps = [f"{_quote(_name(inputs, at))} by {format_exactly(step)}" for at, step in others.items()]
    return f"Whole steps: {_list_some(steps)}." if steps else ""


def _say_numbers(inputs: Inputs, limits: list[LimitFacts], domain: list[LimitFacts]) -> str:
    """Which numbers may change by which norm."""
    norm = inputs.threat.norm
    if not inputs.subject.model.numerical_features:
        return ""
    if not inputs.moving:
        return "What may change: no number that the model reads."
    if norm is None:
        others = "" if any(one["column"] == EVERY for one in limits) else "; every other number stays as it is"
        return f"What may change: numbers within the limits below, all at the same time{others}."
    bounded = ", each within its limits" if limits or domain else ""
    unit = describe_unit(inputs)["divide"]
    counted = f", each counted in {unit}" if unit else ""
    return {
        0: f"What may change: any numbers, as many columns as the radius says{bounded} (norm l0).",
        1: f"What may change: all numbers, the sum of their changes below the radius{counted}{bounded} (l1 norm).",
        2: (
            "What may change: all numbers, the root of the sum of their squared changes below the radius"
            f"{counted}{bounded} (l2 norm)."
        ),
        math.inf: f"What may change: every number by less than the radius, all at once{counted}{bounded} (linf norm).",
    }[float(norm)]


def _say_categories(inputs: Inputs) -> str:
    threat, columns = inputs.threat, inputs.subject.model.categorical_features
    free = [inputs.subject.names[column] for column in columns if column not in threat.frozen]
    if not columns:
        return ""
    if not threat.l0 or not free:
        return "Categories stay as they are."
    values = "any value, also one that training did not see" if threat.unseen else "any value that training saw"
    names = join_words(_cut([_quote(name) for name in free]))
    which = f"{'any one' if threat.l0 == 1 else f'up to {threat.l0}'} of {names}"
    if len(free) <= threat.l0:
        which = names if len(free) == 1 else f"all of {names}"
    allowed = [
        f"{_quote(_name(inputs, at))} only {' or '.join(inputs.subject.describe_value(int(at), one) for one in codes)}"
        for at, codes in threat.may_become.items()
    ]
    exceptions = f", but {'; '.join(allowed)}" if allowed else ""
    return f"At the same time {which} may take {values}{exceptions}."


def _say_missing(inputs: Inputs) -> str:
    """Which numbers may go missing or appear."""
    threat = inputs.threat
    free = [at for at in inputs.subject.model.missing_features if at not in threat.frozen]
    if not inputs.subject.model.missing_features:
        return ""
    if not threat.missing_budget or not free:
        return "No number goes missing, and none that is missing appears."
    names = join_words(_cut([_quote(inputs.subject.names[at]) for at in free]))
    which = f"up to {plural(threat.missing_budget, 'number')} of {names}" if len(free) > 1 else names
    return f"At the same time {which} may go missing or, where it is missing, appear as any number."


def _quote(name: str) -> str:
    return f"“{shorten(name, _NAME_LENGTH)}”"


def _list_some(parts: list[str]) -> str:
    return "; ".join(_cut(parts))


def _cut(parts: list[str]) -> list[str]:
    """The first of many, and how many more there are."""
    more = len(parts) - _LISTED
    return parts if more <= 0 else [*parts[:_LISTED], plural(more, "more column")]


def say_covered(radius: float | None, norm: float | str | None) -> str:
    """The changes that intervals cover, such as "change smaller than 0.25"."""
    if radius is None:
        return "change within the limits"
    if norm == 0:
        return f"change of up to {plural(int(radius), 'number')}, to anything,"
    return f"change smaller than {format_exactly(radius)}"


def say_size(inputs: Inputs, quoted: float) -> str:
    """Changes of a size, by the threat's norm."""
    size, norm = format_exactly(quoted), inputs.threat.norm
    if norm == 0:
        return f"of any {size if quoted > 1 else 'one'} of the row's numbers"
    if norm == math.inf:
        return f"of the row's numbers, all at once and each by less than {size},"
    named = f" in the {name_norm(inputs)} norm" if inputs.has_threat else ""
    return f"of the row's numbers that is smaller than {size}{named}"


def say_also(inputs: Inputs) -> str:
    """What the threat allows or forbids besides a size, in short: its own sentences say it in full."""
    threat = inputs.threat
    also = f" and of up to {plural(threat.l0, 'category', 'categories')}" if threat.l0 else ""
    if threat.missing_budget:
        also += f" and of up to {plural(threat.missing_budget, 'number')} that may go missing or appear"
    if threat.limits or threat.domain:
        return f"{also} within what the table below allows"
    return f"{also} that leaves frozen columns alone" if threat.frozen else also


def say_trained(estimator: object) -> str:
    """All that a model was trained for, such as "0.1 in l2, one category, “age” frozen"; nothing for any other."""
    radius, threat = getattr(estimator, "radius", None), getattr(estimator, "default_threat", None)
    if threat is None or not isinstance(radius, int | float):
        return ""
    parts = ["limits alone" if threat.norm is None else f"{format_exactly(float(radius))} in l{threat.norm:g}"]
    if not radius and threat.norm is not None and not threat.l0 and not threat.missing_budget:
        return "no change"
    if threat.l0:
        parts.append("one category" if threat.l0 == 1 else f"{threat.l0} categories")
    if threat.missing_budget:
        parts.append(f"{plural(threat.missing_budget, 'number')} missing")
    names = getattr(getattr(estimator, "encoding_", None), "names", None)
    parts += _name_some([f"{_quote_column(names, one)} frozen" for one in threat.frozen])
    limits = [f"{_quote_column(names, one)} {say_limit(limit)}" for one, limit in threat.limits.items()]
    domain = [f"{_quote_column(names, one)} {say_domain(*ends)}" for one, ends in threat.domain.items()]
    return ", ".join([*parts, *_name_some(limits + domain)])


def _quote_column(names: Sequence[str] | None, column: int | str) -> str:
    """A column of a threat, by name where it has one."""
    if column == EVERY:
        return "every other number"
    name = column if isinstance(column, str) or names is None else names[column]
    return f"“{shorten(str(name), 30)}”"


def _name_some(told: list[str]) -> list[str]:
    return told if len(told) <= _NAMED else [*told[:_NAMED], f"{len(told) - _NAMED:,} more"]
