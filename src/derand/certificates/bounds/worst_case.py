"""The worst case of a sum: how far a row can be moved before the sum of its terms can fall to a threshold.

The worst case of a sum of functions of one number each is found term by term (docs/theory.md, section 8). Owns the
choice of multipliers, and the tables, which are made when first needed and kept as long as the model lives. Must not
know rules or labels: it is given functions that are to stay high, and thresholds.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray, Numbers
from derand.certificates.bounds.curves import (
    OrientedTerm,
    name_shapes,
    orient_terms,
    place_terms,
    spread_terms,
    trace_curves,
)
from derand.certificates.bounds.grid_curves import orient_blocks
from derand.certificates.bounds.grid_worst_case import DeployedGridCase, SmoothedGridCase
from derand.certificates.bounds.packing import PackedTerms
from derand.certificates.bounds.worst_case_base import DUAL, EXACT, WorstCase, collect_arrays
from derand.kernels.worst_case.curves import UNEVEN, Curves, Positions
from derand.kernels.worst_case.drops import WHOLE
from derand.kernels.worst_case.envelopes import (
    COARSE,
    SUM_ERROR,
    LabelTables,
    MultiplierTables,
    add_curves,
    extend_tables,
    maximise_powers,
    measure_pieces,
    select_spans,
    start_tables,
    widen_tables,
)
from derand.kernels.worst_case.steps import (
    Reach,
    Stairs,
    add_scores,
    compute_lowest,
    measure_distances,
    prepare_stairs,
)
from derand.kernels.worst_case.windows import (
    Asked,
    Box,
    Minima,
    bound_floors,
    count_terms,
    locate_box,
    minimise_curves,
    raise_floors,
    search_windows,
    tabulate_minima,
)
from derand.noise import Noise
from derand.perturbation import Perturbation

NORMS = (None, 0, 1, 2, math.inf)
"""Norms whose worst case is known."""

_RATIO = {1: 4.0, 2: 8.0}
"""Of neighbouring multipliers of the first table, by power; a second table stands between each two of them."""
_HUGE = 1e140
"""Of distances in units: squares of larger ones, and what is multiplied by them, may overflow."""
_FEW_TERMS = 8
"""Up to so many terms the box around a ball is asked, too."""
_KEPT = 12
"""So many worst cases are kept per sum, with their tables."""
_MOST_BYTES = 2**30
"""Of the tables of all sums together."""


class Tables:
    """The curves of some terms with all that is tabulated of them, each table made when it is first asked for."""

    def __init__(self, curves: Curves, positions: Positions) -> None:
        self.curves = curves
        self._made: dict[object, Any] = {}
        self._lock = RLock()
        self._counts = np.bincount(positions.curves, minlength=curves.ranges.size)
        self._spans: dict[int, IntArray] = {}

    def list_arrays(self) -> list[Numbers]:
        """All that is kept, while others may be making more of it."""
        return collect_arrays([self.curves, *list(self._made.values())])

    def _make(self, key: object, make: Callable[[], object]) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    @property
    def minima(self) -> Minima:
        """The least values of curves over runs of intervals."""
        made: Minima = self._make("minima", lambda: tabulate_minima(self.curves))
        return made

    @property
    def lowest(self) -> FloatArray:
        """The least value of each curve."""
        made: FloatArray = self._make("lowest", lambda: minimise_curves(self.curves))
        return made

    def envelopes(self, power: int, blocks: IntArray, spans: IntArray) -> MultiplierTables:
        """Envelopes of multipliers of that power, with fine ones in these blocks and these knots at least."""
        curves = self.curves
        with self._lock:
            known = self._spans.setdefault(power, spans)
            made: MultiplierTables = self._make(
                power, lambda: start_tables(curves, self._choose_multipliers(power), power, known)
            )
            wider = np.stack([np.minimum(known[:, 0], spans[:, 0]), np.maximum(known[:, 1], spans[:, 1])], axis=1)
            if (wider != known).any():
                wider = self._spread(wider)
                made = widen_tables(made, curves, power, known, wider)
                self._made[power], self._spans[power] = made, wider
            if (made.slots[blocks] < 0).any():
                made = self._made[power] = extend_tables(made, curves, power, np.unique(blocks), wider)
            return made

    def _spread(self, spans: IntArray) -> IntArray:
        """As many more knots on either side as there are, so that rows to come seldom ask for more."""
        starts = self.curves.starts
        more = np.maximum(spans[:, 1] - spans[:, 0] + 1, 0)
        low, high = np.maximum(spans[:, 0] - more, starts[:-1]), np.minimum(spans[:, 1] + more, starts[1:] - 1)
        return np.where(more[:, None] > 0, np.stack([low, high], axis=1), spans)

    def get_envelopes(self, power: int) -> MultiplierTables:
        """What is made of them so far, which may be nothing."""
        with self._lock:
            nothing = np.tile(np.array([self.curves.knots.size, -1]), (self.curves.starts.size - 1, 1))
            return self.envelopes(power, np.empty(0, dtype=np.int64), self._spans.get(power, nothing))

    def has_finite_multipliers(self, power: int) -> bool:
        """Whether doubles can hold all distances, their squares and all multipliers."""
        made: bool = self._make((power, "finite"), lambda: self._check_multipliers(power))
        return made

    def _check_multipliers(self, power: int) -> bool:
        with np.errstate(all="ignore"):
            first, last = self.curves.knots[self.curves.starts[:-1]], self.curves.knots[self.curves.starts[1:] - 1]
            spans = (last - first) / self.curves.units
            multipliers = self._choose_multipliers(power)
        return bool((spans < _HUGE).all() and multipliers[0] > 1 / _HUGE**2 and multipliers[-1] < _HUGE**2)

    def _choose_multipliers(self, power: int) -> FloatArray:
        """From the multiplier at which nothing moves (of squared distances hardly anything) downward."""
        slopes, steps = measure_pieces(self.curves)
        slopes = np.maximum(slopes, 1e-9 * self.curves.ranges / steps)
        if power == 1:
            top = float(slopes.max()) * 1.001
        else:
            steepest = float(slopes.max())  # divided out: squares may be too small or too large for doubles
            top = steepest * math.sqrt(float((self._counts * (slopes / steepest) ** 2).sum())) * 2
            top /= float(np.median(steps))
        return top * float(_RATIO[power]) ** -np.arange(COARSE - 1, -1, -1.0)


class SmoothedCase(WorstCase):
    """The worst case of functions under noise."""

    together = 15  # multipliers are added up once for all thresholds

    def __init__(self, tables: Tables, positions: Positions, norm: float | None) -> None:
        self._tables, self._positions, self._norm = tables, positions, norm
        total = float(tables.curves.ranges[positions.curves].sum())
        self._error = (UNEVEN + EPSILON * (positions.features.size + 16)) * total
        self._table_error = self._error + SUM_ERROR * total

    def list_arrays(self) -> list[Numbers]:
        """Those of its tables, which it may share."""
        return self._tables.list_arrays()

    def add_curves(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The sum of all functions at each row, and by how much it may be off."""
        sums, errors = add_curves(rows, self._positions, self._tables.curves)
        return sums, errors + self.curve_error

    @property
    def curve_error(self) -> float:
        """By how much sums of curves may be off wherever a row stands."""
        return self._error + float(self._tables.curves.too_low[self._positions.curves].sum())

    @property
    def curves(self) -> tuple[Positions, Curves]:
        """Where rows stand on which curves."""
        return self._positions, self._tables.curves

    def build_label_tables(self) -> LabelTables | None:
        """What a device needs to find multipliers; None where multipliers alone do not find the radius."""
        power = int(self._norm) if self._norm in (1, 2) else 0
        if not power or self._positions.features.size <= _FEW_TERMS or not self._tables.has_finite_multipliers(power):
            return None
        return LabelTables(self._positions, self._tables.curves, self._tables.get_envelopes(power), self._table_error)

    def root_powers(self, powers: FloatArray, thresholds: FloatArray) -> FloatArray:
        """Radii from best margins per multiplier, without limits; infinite where nothing can bring the sum down."""
        least = self._tables.lowest[self._positions.curves].sum()
        powers = np.maximum(powers, 0.0)  # where no multiplier proves anything, they mean nothing
        roots = powers if self._norm == 1 else np.sqrt(powers) * (1 - 2 * EPSILON)
        return np.where(least - self._table_error > thresholds, np.inf, roots)

    def bound_radii(
        self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found."""
        how = np.full(thresholds.shape, DUAL if self._norm in (1, 2) else EXACT, dtype=np.uint8)
        if self._norm is None:
            assert box is not None  # without a ball there is always one
            return np.where(self.compute_lowest(rows, box)[:, None] > thresholds, np.inf, 0.0), how
        located = None if box is None else locate_box(box.low, box.high, self._positions)
        floors = None if box is None or self._norm not in (1, 2) else self.compute_floors(rows, box)
        if self._norm in (1, 2):
            return self._bound_best(rows, thresholds, located, floors), how
        bound = search_windows if self._norm else count_terms
        return bound(rows, self._positions, self._tables.minima, Asked(thresholds, self._error), located), how

    def sketch_radii(self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None) -> FloatArray | None:
        """By coarse multipliers alone."""
        if self._norm not in (1, 2):
            return None
        floors = None if box is None else self.compute_floors(rows, box)
        return self._maximise_dual(rows, thresholds, floors, int(self._norm or 0), is_sketch=True)

    def _bound_best(
        self, rows: FloatArray, thresholds: FloatArray, located: Box | None, floors: FloatArray | None
    ) -> FloatArray:
        """The best of all multipliers; for few terms, and where no multiplier proves anything, also of larger balls.

        An l1 ball lies in the l2 ball of its radius, and both lie in the box, of which no multiplier knows.
        """
        radii = self._maximise_dual(rows, thresholds, floors, int(self._norm or 0))
        few = self._positions.features.size <= _FEW_TERMS
        at = np.arange(rows.shape[0]) if few else np.flatnonzero((radii == 0).any(axis=1))
        if not at.size:
            return radii
        part = None if located is None else Box(located.low[at], located.high[at])
        asked = Asked(thresholds[at], self._error)
        radii[at] = search_windows(rows[at], self._positions, self._tables.minima, asked, part, known=radii[at])
        if few and self._norm == 1:
            radii = np.maximum(radii, self._maximise_dual(rows, thresholds, floors, 2))
        return radii

    def compute_lowest(self, rows: FloatArray, box: Reach) -> FloatArray:
        """Lower bounds of the least sum within the box."""
        return np.asarray(self.compute_floors(rows, box).sum(axis=1) - self._error)

    def compute_floors(self, rows: FloatArray, box: Reach) -> FloatArray:
        """Lower bounds of the least value of each curve within the box."""
        positions, minima = self._positions, self._tables.minima
        floors = bound_floors(rows, positions, minima, locate_box(box.low, box.high, positions))
        if box.steps.any():
            raise_floors(floors, rows, positions, minima, box)
        return floors

    def _maximise_dual(
        self,
        rows: FloatArray,
        thresholds: FloatArray,
        floors: FloatArray | None,
        power: int,
        *,
        is_sketch: bool = False,
    ) -> FloatArray:
        """The best of all multipliers; tables of finer ones are made where rows ask for them, but not for a sketch."""
        tables = self._tables
        least = tables.lowest[self._positions.curves].sum() if floors is None else floors.sum(axis=1)[:, None]
        free = least - self._table_error > thresholds
        if not tables.has_finite_multipliers(power):
            return np.where(free, np.inf, 0.0)
        blocks = np.empty(0, dtype=np.int64)
        powers, again = np.empty(thresholds.shape), np.arange(rows.shape[0])
        spans = select_spans(rows, self._positions, tables.curves)
        while again.size:
            envelopes = tables.envelopes(power, blocks, spans)
            label = LabelTables(self._positions, tables.curves, envelopes, self._table_error)
            some = None if floors is None else floors[again]
            powers[again], missing = maximise_powers(rows[again], label, thresholds[again], some)
            blocks = np.unique(missing[missing >= 0])
            again = again[(missing >= 0).any(axis=1) & (not is_sketch)]
        roots = powers if power == 1 else np.sqrt(powers) * (1 - 2 * EPSILON)
        return np.where(free, np.inf, roots)


class DeployedCase(WorstCase):
    """The worst case of the functions themselves, without noise; thresholds are whole numbers."""

    def __init__(self, oriented_terms: list[OrientedTerm], norm: float | None, units: FloatArray) -> None:
        self._norm, self._oriented_terms, self._units = norm, oriented_terms, units
        self._stairs = _build_stairs(oriented_terms, units)

    def add_scores(self, rows: FloatArray) -> IntArray:
        """The sum of all functions at each row."""
        return add_scores(rows, self._stairs)

    def bound_radii(
        self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found."""
        if self._norm is None:
            assert box is not None  # without a ball there is always one
            holds = self.compute_lowest(rows, box)[:, None] > thresholds
            return np.where(holds, np.inf, 0.0), np.full(thresholds.shape, EXACT, dtype=np.uint8)
        radii, how = measure_distances(rows, self._stairs, thresholds.astype(np.int64), self._norm, box)
        return radii, np.where(how == WHOLE, EXACT, DUAL).astype(np.uint8)

    def compute_lowest(self, rows: FloatArray, box: Reach) -> FloatArray:
        """The least sum within the box, exactly."""
        return compute_lowest(rows, self._stairs, box).astype(np.float64)

    def compute_floors(self, rows: FloatArray, box: Reach) -> IntArray:
        """The least value of each function within the box, exactly."""
        alone = [
            compute_lowest(rows, _build_stairs([oriented_term], self._units), box)
            for oriented_term in self._oriented_terms
        ]
        return np.stack(alone, axis=1)


def _build_stairs(oriented_terms: list[OrientedTerm], units: FloatArray) -> Stairs:
    features = np.array([oriented_term.feature for oriented_term in oriented_terms], dtype=np.int64)
    edges, scores = ([getattr(one, name) for one in oriented_terms] or [np.empty(0)] for name in ("edges", "scores"))
    return prepare_stairs(
        features,
        np.cumsum([0, *(oriented_term.edges.size for oriented_term in oriented_terms)], dtype=np.int64),
        np.concatenate(edges),
        np.concatenate(scores).astype(np.int64),
        units[features],
    )


def get_case(
    terms: PackedTerms, noise: Noise | None, norm: float | None, units: FloatArray, label: int, cap: float = math.inf
) -> WorstCase:
    """The worst case of a sum for a label, with all tables that were made for it before.

    The sum must stay high for label 1 and low for label 0, and has a term at least. Without a norm there is no ball:
    only a box limits what may change. Under noise functions are cut off above the cap.
    """
    key = (noise, norm, units.tobytes(), label, cap)
    with terms.lock:
        case: WorstCase | None = terms.kept.get(key)
        if case is None:
            for oldest in list(terms.kept)[: len(terms.kept) - _KEPT + 1]:
                terms.kept.pop(oldest, None)
            case = terms.kept[key] = _make_case(terms, noise, norm, units, label, cap)
            _shelve(terms, key)
    return case


def _make_case(
    terms: PackedTerms, noise: Noise | None, norm: float | None, units: FloatArray, label: int, cap: float
) -> WorstCase:
    if terms.grids:
        blocks = orient_blocks(terms, label, cap)
        return DeployedGridCase(blocks, norm, units) if noise is None else SmoothedGridCase(blocks, noise, norm, units)
    oriented_terms = orient_terms(terms, label, cap)
    if noise is None:
        return DeployedCase(oriented_terms, norm, units)
    oriented_terms = spread_terms(oriented_terms, terms.common)
    shapes = name_shapes(oriented_terms, noise, units)
    positions = place_terms(oriented_terms, shapes, units)
    tables = terms.shared.get((noise, units.tobytes(), shapes))
    if tables is None:
        tables = Tables(trace_curves(oriented_terms, shapes, noise, units, terms.common), positions)
        terms.shared[noise, units.tobytes(), shapes] = tables
    return SmoothedCase(tables, positions, norm)


def compute_box(perturbation: Perturbation, rows: FloatArray, is_missing: BoolArray | None = None) -> Reach | None:
    """What the numbers of some rows may become; None for anything. Missing ones stay where they are."""
    if is_missing is None and not perturbation.has_box:
        return None
    low, high = perturbation.box(rows)
    if is_missing is not None:
        low[is_missing] = high[is_missing] = rows[is_missing]
    return Reach(low, high, perturbation.steps)


def take_box(box: Reach | None, rows: IntArray) -> Reach | None:
    """The reach of some of the rows."""
    return None if box is None else Reach(box.low[rows], box.high[rows], box.steps)


_lock = RLock()
_shelf: OrderedDict[tuple[int, object], ref[PackedTerms]] = OrderedDict()
"""Whose worst cases are kept, those that were made last at the end."""


def _shelve(terms: PackedTerms, key: object) -> None:
    """Note that a worst case was made; the oldest ones go where all together take too much memory.

    Models of several classes have many: two for each pair. What is still in use stays until it is not.
    """
    with _lock:
        position = (id(terms), key)
        _shelf[position] = ref(terms)
        _shelf.move_to_end(position)
        total, seen = 0, set[int]()
        for at, owner in reversed(list(_shelf.items())):
            case = None if (known := owner()) is None else known.kept.get(at[1])
            for array in [] if case is None else case.list_arrays():
                total += 0 if id(array) in seen else array.nbytes
                seen.add(id(array))
            if case is None or (total > _MOST_BYTES and at != position):
                del _shelf[at]
                if known is not None:
                    known.kept.pop(at[1], None)
