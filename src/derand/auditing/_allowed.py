"""Whether a changed row is one that a threat allows.

Owns this check of witnesses, where limits alone say what may change. Must not know noise, labels or proofs.
"""

from __future__ import annotations

import math

from derand._arrays import FloatArray
from derand.model import Model
from derand.threat import Threat


def is_allowed(threat: Threat, model: Model, row: FloatArray, changed: FloatArray) -> bool:
    """Whether limits, steps, budgets and frozen columns allow a change; columns that no term reads may be anything."""
    moved = [
        at
        for at in range(row.size)
        if not (row[at] == changed[at] or (math.isnan(row[at]) and math.isnan(changed[at])))
    ]
    if any(at in threat.frozen for at in moved):
        return False
    codes = [at for at in model.categorical_features if at in moved]
    numbers = [at for at in model.numerical_features if at in moved]
    gaps = [at for at in numbers if math.isnan(row[at]) or math.isnan(changed[at])]
    if len(codes) > threat.l0 or len(gaps) > threat.missing_budget:
        return False
    low, high = threat.find_box(row[None], model.numerical_features)
    steps = threat.steps_of(row.size)
    for at in (at for at in numbers if at not in gaps):
        if not low[0, at] <= changed[at] <= high[0, at]:
            return False
        if steps[at] and not _is_by_steps(float(row[at]), float(changed[at]), float(steps[at])):
            return False
    return all(_may_become(threat, model, at, float(changed[at])) for at in codes)


def _is_by_steps(x: float, z: float, step: float) -> bool:
    near = round((z - x) / step)
    return any(x + (near + more) * step == z for more in range(-2, 3))


def _may_become(threat: Threat, model: Model, column: int, code: float) -> bool:
    if column in threat.may_become:
        listed = [float(one) for one in threat.may_become[column]]
        return code in listed or (math.isnan(code) and any(map(math.isnan, listed)))
    told = [term.describe() for one in model.members for term in one.terms if term.kind == "category_table"]
    known = {float(one) for table in told if table["feature"] == column for one in table["categories"]}
    return threat.unseen or not known or code in known
