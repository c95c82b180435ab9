"""Two models on the same rows, against the same changes: shares, curves, and rows on which they differ.

Every share and probability comes from `derand.metrics`. Must not know how it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import format_count, format_exactly, format_short, format_short_down, format_up
from derand.certificates import Certificates
from derand.metrics import certified_share, find_paired_chance, find_wilson_interval
from derand.report._accuracy import find_end, name_budget, spread_radii
from derand.report._audit_types import ComparedLine, ComparedShare, Comparison, Disagreement, DisagreementTable
from derand.report._group_contrasts import LEVEL, write_interval
from derand.report._inputs import Inputs, name_estimator
from derand.report._other import OtherModel
from derand.report._text import join_words, percent, plural, shorten
from derand.report._threat import say_domain, say_limit
from derand.report._types import Scale
from derand.threat import EVERY

THIS = "this model"
MOST_ROWS = 20
"""Rows of a table of disagreements."""
_NAMED = 3


def summarize_comparison(inputs: Inputs, other: OtherModel | None, scale: Scale) -> Comparison | None:
    """The model of a report beside another one; None where there is none."""
    if other is None:
        return None
    both = (inputs.plain, other.certificates[0])
    right = _find_right(inputs, both)
    radii, major, end = _choose_radii(both, scale)
    curves = [certified_share(ok, one.radius, radii).tolist() for ok, one in zip(right, both, strict=True)]
    shares = _list_shares(inputs, other, right, scale["quoted"])
    same = np.asarray(both[0].label == both[1].label)
    at = [radii.index(radius) for radius in major]
    return {
        "names": [THIS, other.name],
        "measure": "certified share" if inputs.labels is None else "certified accuracy",
        "sentence": _say(inputs, shares, int(same.sum()), scale),
        "remarks": _list_remarks(inputs, other),
        "same_answers": int(same.sum()),
        "shares": shares,
        "lines": [*_list_facts(inputs, other), *map(_write_share, shares), *_list_medians(both)],
        "radii": radii,
        "end": end,
        "curves": curves,
        "major": major,
        "table": [[percent(curve[k]) for k in at] for curve in curves],
        "disagreements": _list_disagreements(inputs, both, right, same, scale["quoted"]),
    }


def _find_right(inputs: Inputs, both: Sequence[Certificates]) -> list[BoolArray]:
    """Which answers of each are right; all count where there are no labels."""
    if inputs.labels is None:
        return [np.ones(inputs.n_rows, dtype=bool) for _ in both]
    return [np.asarray(one.label == inputs.labels) for one in both]


def _choose_radii(both: Sequence[Certificates], scale: Scale) -> tuple[list[float], list[float], float]:
    """Radii of the curves, as far as the larger ones of both go, those of the table, and the end of the chart."""
    if both[0].norm is None:
        return [0.0], [0.0], 0.0
    quoted = scale["quoted"]
    radii, major = max((spread_radii(one) for one in both), key=lambda found: found[0][-1])
    return sorted({*radii, quoted}), sorted({*major, quoted}), find_end(radii[-1], quoted)


def _hold(certificates: Certificates, radius: float) -> BoolArray:
    """Which rows are certified at a radius, as `certified_share` counts them."""
    return np.asarray((certificates.radius >= radius) & (certificates.radius > 0))


def _list_shares(inputs: Inputs, other: OtherModel, right: list[BoolArray], radius: float) -> list[ComparedShare]:
    """Right answers, where there are labels, and what is certified, also with categories changed."""
    found = [] if inputs.labels is None else [_compare_share("Right answers", *right)]
    at_radius = f" at {format_exactly(radius)}" if radius else ""
    start = ("Certified" if inputs.labels is None else "Right and certified") + at_radius
    for mine, theirs in zip(inputs.certificates, other.certificates, strict=True):
        held = [ok & _hold(one, radius) for ok, one in zip(right, (mine, theirs), strict=True)]
        many = len(inputs.certificates) > 1 and mine.l0 > 0
        found.append(_compare_share(f"{start}, {name_budget(mine.l0, np.zeros(0))['label']}" if many else start, *held))
    return found


def _compare_share(name: str, first: BoolArray, second: BoolArray) -> ComparedShare:
    only = [int((first & ~second).sum()), int((second & ~first).sum())]
    return {
        "name": name,
        "shares": [find_wilson_interval(int(one.sum()), one.size).to_dict() for one in (first, second)],
        "only": only,
        "chance": find_paired_chance(*only),
    }


def _write_share(one: ComparedShare) -> ComparedLine:
    texts = [percent(share["value"]) for share in one["shares"]]
    intervals = [write_interval(share["value"], share["low"], share["high"]) for share in one["shares"]]
    return {"name": one["name"], "texts": texts, "intervals": intervals}


def _list_medians(both: Sequence[Certificates]) -> list[ComparedLine]:
    if both[0].norm is None:
        return []
    medians = [float(np.quantile(one.radius, 0.5, method="lower")) for one in both]
    return [{"name": "Median radius", "texts": [format_short_down(one) for one in medians], "intervals": ["", ""]}]


def _list_facts(inputs: Inputs, other: OtherModel) -> list[ComparedLine]:
    """What the two are."""
    subject, theirs = inputs.subject, other.certificates[0]
    own = "bare model" if subject.estimator is None else name_estimator(subject.estimator)
    noises = ["none" if noise is None else str(noise) for noise in (subject.noise, theirs.noise)]
    told = {
        "Model": [own, other.kind],
        "Noise": [shorten(noise.split("(")[0], 40) for noise in noises],
        "Rule": [inputs.plain.rule, theirs.rule],
        "Trained for": [_say_trained(subject.estimator), _say_trained(other.classifier)],
    }
    return [
        {"name": name, "texts": texts, "intervals": ["", ""]}
        for name, texts in told.items()
        if name != "Trained for" or any(texts)
    ]


def _say_trained(estimator: object) -> str:
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
    parts += _list_some([f"{_quote_column(names, one)} frozen" for one in threat.frozen])
    limits = [f"{_quote_column(names, one)} {say_limit(limit)}" for one, limit in threat.limits.items()]
    domain = [f"{_quote_column(names, one)} {say_domain(*ends)}" for one, ends in threat.domain.items()]
    return ", ".join([*parts, *_list_some(limits + domain)])


def _quote_column(names: Sequence[str] | None, column: int | str) -> str:
    """A column of a threat, by name where it has one."""
    if column == EVERY:
        return "every other number"
    name = column if isinstance(column, str) or names is None else names[column]
    return f"“{shorten(str(name), 30)}”"


def _list_some(told: list[str]) -> list[str]:
    return told if len(told) <= _NAMED else [*told[:_NAMED], f"{len(told) - _NAMED:,} more"]


def _list_remarks(inputs: Inputs, other: OtherModel) -> list[str]:
    """What a reader must know to compare the two."""
    threat, theirs = inputs.threat, other.classifier.default_threat.resolve(other.classifier.noise_)
    remarks = ["Both are certified on the same rows, against the same changes: those of this report."]
    if theirs.norm != threat.norm:
        norms = [f"l{one}" if one is not None else "limits alone" for one in (theirs.norm, threat.norm)]
        remarks.append(
            f"The other model was trained for another kind of change, {norms[0]}; here both are certified for "
            f"{norms[1]}."
        )
    trained = [_say_trained(inputs.subject.estimator), _say_trained(other.classifier)]
    if all(trained) and trained[0] != trained[1]:
        remarks.append(
            f"The two were trained for different changes, this model for {trained[0]}, the other for {trained[1]}: "
            "what is certified may differ for that reason alone."
        )
    differ = _find_other_units(inputs, other)
    if differ:
        more = f" and {len(differ) - _NAMED:,} more" if len(differ) > _NAMED else ""
        remarks.append(
            "The other model counts changes in other units; here both count in those of this report, which may cost "
            f"the other one some of its radii. What is a change of 1: {'; '.join(differ[:_NAMED])}{more}."
        )
    missed = [name for at, name in enumerate(inputs.subject.names) if at not in other.places]
    if missed:
        named = [f"“{shorten(name, 30)}”" for name in missed[:_NAMED]]
        named += [f"{len(missed) - _NAMED:,} more"] if len(missed) > _NAMED else []
        remarks.append(f"The other model does not know {join_words(named)}: there they may become anything.")
    return remarks


def _find_other_units(inputs: Inputs, other: OtherModel) -> list[str]:
    """Numbers that the other model counts in another unit than the report."""
    if inputs.threat.norm in (None, 0):
        return []
    theirs = other.classifier.units
    own, numbers = inputs.units, set(other.classifier.ensemble_.numerical_features)
    found = []
    for at, place in enumerate(other.places):
        unit = 1.0 if theirs is None else float(theirs[at])
        if at in numbers and not math.isclose(unit, float(own[place]), rel_tol=1e-9):
            name = shorten(inputs.subject.names[place], 30)
            found.append(f"“{name}”: {format_short(float(own[place]))} here, {format_short(unit)} there")
    return found


def _say(inputs: Inputs, shares: list[ComparedShare], same: int, scale: Scale) -> str:
    """The comparison in a few sentences."""
    certified = next(one for one in shares if "ertified" in one["name"])
    counts = [round(share["value"] * inputs.n_rows) for share in certified["shares"]]
    what = "proven" if inputs.labels is None else "right and proven"
    where = f" at radius {format_exactly(scale['quoted'])}" if scale["quoted"] else ""
    mine, theirs = certified["only"]
    chance = certified["chance"]
    verdict = "more than chance explains" if chance <= LEVEL else "no more than chance explains"
    return (
        f"Both give the same answer to {format_count(same)} of {plural(inputs.n_rows, 'row')}. Of all "
        f"{plural(inputs.n_rows, 'row')}, {THIS} is {what}{where} on {format_count(counts[0])}, the other one on "
        f"{format_count(counts[1])}: "
        f"{plural(mine, 'row')} by this one alone, {format_count(theirs)} by the other alone. That is {verdict} "
        f"(McNemar's exact test: {format_up(chance, 2)})."
    )


def _list_disagreements(
    inputs: Inputs, both: Sequence[Certificates], right: list[BoolArray], same: BoolArray, radius: float
) -> list[DisagreementTable]:
    """Rows with other answers, those that both are surest of first; and rows that one certifies alone, by how much."""
    first, second = (ok & _hold(one, radius) for ok, one in zip(right, both, strict=True))
    mine, theirs = (np.asarray(one.radius, dtype=np.float64) for one in both)
    proven = "proven" if inputs.labels is None else "right and proven"
    wanted: list[tuple[Literal["answers", "first", "second"], str, BoolArray, FloatArray]] = [
        ("answers", "Rows with different answers", ~same, np.minimum(mine, theirs)),
        ("first", f"Rows that this model alone has {proven}", first & ~second, _subtract(mine, theirs)),
        ("second", f"Rows that the other model alone has {proven}", second & ~first, _subtract(theirs, mine)),
    ]
    found: list[DisagreementTable] = []
    for key, title, mask, worth in wanted:
        rows = np.flatnonzero(mask)
        chosen = rows[np.argsort(-worth[rows], kind="stable")][:MOST_ROWS]
        listed = [_describe_row(inputs, both, int(row)) for row in chosen]
        found.append({"key": key, "title": title, "n_rows": int(rows.size), "rows": listed})
    return found


def _subtract(one: FloatArray, other: FloatArray) -> FloatArray:
    """A difference of radii; two without a limit differ by nothing."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(one - other, nan=0.0)


def _describe_row(inputs: Inputs, both: Sequence[Certificates], row: int) -> Disagreement:
    radii = [float(one.radius[row]) for one in both]
    verdicts = [one.verdict for one in both]
    texts = [
        format_short_down(radius) if verdict is None else str(verdict[row])
        for radius, verdict in zip(radii, verdicts, strict=True)
    ]
    return {
        "row": row + 1,
        "name": inputs.name_row(row),
        "truth": None if inputs.labels is None else str(inputs.labels[row]),
        "labels": [str(one.label[row]) for one in both],
        "radii": radii,  # type: ignore[typeddict-item] # infinity becomes text with all the others
        "texts": texts,
    }
