"""The design of a whole model: columns, groups of columns, and the multipliers of what changes cost."""

from __future__ import annotations

import numpy as np

from derand.perturbation import Perturbation
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design, ModelSpec, compute_boxes, design_category, design_number
from derand.train.design.groups import GroupBins, design_group
from derand.train.design.windows import merge_windows

_BUDGET_COSTS = np.geomspace(1e-3, 30.0, 24)  # of a whole radius, in logarithms of odds
_FEWER_BUDGET_COSTS = np.geomspace(0.03, 30.0, 16)
_MANY_COLUMNS = 50  # over which costs even out: fewer multipliers do


def design_model(binned: BinnedTable, spec: ModelSpec, radius: float, *, with_ramp: bool = True) -> Design:
    """The columns of a model for binned rows and changes of a radius, 0 for none."""
    threat, norm = spec.threat, spec.threat.ball_norm
    single = [one for one in binned.numbers if not isinstance(one, GroupBins)]
    units = Perturbation.of(threat, spec.n_features, ()).units
    numbers = (
        *(
            design_number(one, box, units[one.feature], spec, with_ramp, binned.cuts.get(one.feature))
            for one, box in zip(single, compute_boxes(single, spec, radius), strict=True)
        ),
        *(design_group(one, spec, radius) for one in binned.numbers if isinstance(one, GroupBins)),
    )
    categories = tuple(
        design_category(feature, count, has_missing, threat, binned.penalties.get(feature))
        for (feature, count), has_missing in zip(binned.categories, binned.miss_categories(), strict=True)
    )
    free = np.zeros(1)  # at no cost all may change as far as each may: what functions next to nothing lose by
    costs = np.concatenate([free, _BUDGET_COSTS if len(numbers) <= _MANY_COLUMNS else _FEWER_BUDGET_COSTS])
    power = 0.0 if norm is None or not np.isfinite(norm) or radius == 0 else radius**norm
    multipliers = costs / power if power else free
    by_category = costs if threat.l0 and categories else free
    return Design(
        numbers, categories, multipliers, multipliers * power, by_category, by_category * threat.l0, spec.deduction
    )


def bin_windows(binned: BinnedTable, spec: ModelSpec, radius: float) -> BinnedTable:
    """The rows with bins and cuts made for a box, where columns move by themselves and without noise; else as given."""
    norm = spec.threat.ball_norm
    single = [one for one in binned.numbers if not isinstance(one, GroupBins)]  # groups stand after them
    if spec.noise is not None or not radius or norm is None or np.isfinite(norm):
        return binned
    return merge_windows(binned, compute_boxes(single, spec, radius), spec.n_cuts)


def is_changed(binned: BinnedTable, spec: ModelSpec, radius: float) -> bool:
    """Whether a model of these rows is trained against any change, or has a proof to pay for."""
    norm = spec.threat.ball_norm
    if spec.deduction or (spec.threat.l0 and binned.categories) or (radius > 0 and norm is not None and norm < np.inf):
        return True
    parts = [part for one in binned.numbers for part in (one.parts if isinstance(one, GroupBins) else (one,))]
    return any(end.any() for box in compute_boxes(parts, spec, radius) for end in box)
