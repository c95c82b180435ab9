"""The design of a whole model: columns, groups of columns, and the multipliers of what changes cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from derand.perturbation import Perturbation
from derand.train.bins import BinnedTable, NumberBins
from derand.train.design.columns import Design, ModelSpec, compute_boxes, design_category, design_number
from derand.train.design.groups import GroupBins, design_group, group_columns
from derand.train.design.joint import JointBins, JointColumn, Reach, design_joint, join_windows, reach_axis
from derand.train.design.windows import Box, merge_windows

_BUDGET_COSTS = np.geomspace(1e-3, 30.0, 24)  # of a whole radius, in logarithms of odds
_FEWER_BUDGET_COSTS = np.geomspace(0.03, 30.0, 16)
_MANY_COLUMNS = 50  # over which costs even out: fewer multipliers do


def design_model(binned: BinnedTable, spec: ModelSpec, radius: float, *, with_ramp: bool = True) -> Design:
    """The columns of a model for binned rows and changes of a radius, 0 for none."""
    threat, norm = spec.threat, spec.threat.ball_norm
    single = [one for one in binned.numbers if not isinstance(one, GroupBins | JointBins)]
    units = Perturbation.of(threat, spec.n_features, ()).units
    numbers = (
        *(
            design_number(one, box, units[one.feature], spec, with_ramp, binned.cuts.get(one.feature))
            for one, box in zip(single, compute_boxes(single, spec, radius), strict=True)
        ),
        *(design_group(one, spec, radius) for one in binned.numbers if isinstance(one, GroupBins)),
        *_design_joints([one for one in binned.numbers if isinstance(one, JointBins)], spec, radius),
    )
    categories = tuple(
        design_category(feature, count, has_missing, threat, binned.penalties.get(feature))
        for (feature, count), has_missing in zip(binned.categories, binned.miss_categories(), strict=True)
    )
    free = np.zeros(1)  # at no cost all may change as far as each may: what functions next to nothing lose by
    costs = np.concatenate([free, _BUDGET_COSTS if len(numbers) <= _MANY_COLUMNS else _FEWER_BUDGET_COSTS])
    power = 0.0 if norm is None or not np.isfinite(norm) or radius == 0 else radius**norm
    multipliers = costs / power if power else free
    has_categories = bool(categories) or any(one.places.is_category for one in numbers if isinstance(one, JointColumn))
    by_category = costs if threat.l0 and has_categories else free
    return Design(
        numbers, categories, multipliers, multipliers * power, by_category, by_category * threat.l0, spec.deduction
    )


def _design_joints(joints: Sequence[JointBins], spec: ModelSpec, radius: float) -> list[JointColumn]:
    """The functions of groups without noise; a change of a category costs each of its groups a share."""
    axes = {id(axis): axis for one in joints for axis in one.axes}
    numbers = [axis for axis in axes.values() if axis.bins is not None]
    boxes = _measure_boxes([axis.bins for axis in numbers if axis.bins is not None], spec, radius)
    box_of = {id(axis): box for axis, box in zip(numbers, boxes, strict=True)}
    used = Counter(axis.feature for one in joints for axis in one.axes)
    reaches: dict[int, Reach] = {}
    for key, axis in axes.items():
        cells, cost = None, 0.0
        if axis.n_categories and spec.threat.l0 and axis.feature not in spec.threat.frozen:
            column = design_category(axis.feature, axis.n_categories, axis.has_missing, spec.threat, None)
            cells = np.concatenate([column.reachable, [column.unseen], np.zeros(int(axis.has_missing), dtype=bool)])
            cost = 1.0 / used[axis.feature]
        reaches[key] = reach_axis(axis, box_of.get(key), cells, cost)
    return [design_joint(one, [reaches[id(axis)] for axis in one.axes]) for one in joints]


def _measure_boxes(numbers: Sequence[NumberBins], spec: ModelSpec, radius: float) -> list[Box]:
    """As `compute_boxes`, of columns that may come in several ways."""
    found: dict[int, Box] = {}
    left = dict(enumerate(numbers))
    while left:
        some = {one.feature: at for at, one in left.items()}
        boxes = compute_boxes([numbers[at] for at in some.values()], spec, radius)
        found.update(zip(some.values(), boxes, strict=True))
        left = {at: one for at, one in left.items() if at not in found}
    return [found[at] for at in range(len(numbers))]


def is_joint(spec: ModelSpec, radius: float) -> bool:
    """Whether groups are looked at cell by cell: without noise, where each column moves by itself, or none does."""
    norm = spec.threat.ball_norm
    return spec.noise is None and (radius == 0 or norm is None or norm == np.inf)


def may_overlap(spec: ModelSpec, radius: float, n_classes: int) -> bool:
    """Whether groups that are looked for may share columns: where a search certifies the model in any case."""
    norm = spec.threat.ball_norm
    return n_classes == 2 and is_joint(spec, radius) and (norm is None or norm == np.inf)


def group_rows(
    binned: BinnedTable, groups: Sequence[Sequence[int]], spec: ModelSpec, radius: float, n_classes: int
) -> BinnedTable:
    """The rows with joint codes of groups, and with bins and cuts made for a box where columns move by themselves."""
    if groups and n_classes == 2 and is_joint(spec, radius):
        binned = join_windows(binned, groups, lambda some: _measure_boxes(some, spec, radius), spec.group_cuts)
    else:
        binned = group_columns(binned, groups, spec.group_cuts)
    return bin_windows(binned, spec, radius)


def bin_windows(binned: BinnedTable, spec: ModelSpec, radius: float) -> BinnedTable:
    """The rows with bins and cuts made for a box, where columns move by themselves and without noise; else as given."""
    norm = spec.threat.ball_norm
    single = [one for one in binned.numbers if not isinstance(one, GroupBins | JointBins)]  # groups stand after them
    if spec.noise is not None or not radius or norm is None or np.isfinite(norm):
        return binned
    return merge_windows(binned, compute_boxes(single, spec, radius), spec.n_cuts)


def is_changed(binned: BinnedTable, spec: ModelSpec, radius: float) -> bool:
    """Whether a model of these rows is trained against any change, or has a proof to pay for."""
    norm = spec.threat.ball_norm
    if spec.deduction or (spec.threat.l0 and binned.categories) or (radius > 0 and norm is not None and norm < np.inf):
        return True
    kinds = GroupBins | JointBins
    parts = [part for one in binned.numbers for part in (one.parts if isinstance(one, kinds) else (one,))]
    return any(end.any() for box in _measure_boxes(parts, spec, radius) for end in box)
