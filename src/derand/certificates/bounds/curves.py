"""The terms of a sum as curves: what noise makes of each step function, as lower bounds at knots.

Owns where knots are placed and why what is said between and beyond them holds (docs/theory.md, section 8). Must not
know rules, thresholds or threats, but for the units in which distances count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, TINY, FloatArray
from derand.certificates.bounds.packing import PackedTerms
from derand.certificates.bounds.shared_edges import SharedEdges, round_up
from derand.kernels import TAIL_ERROR
from derand.kernels.worst_case.curves import UNEVEN, Curves, Positions
from derand.noise import Noise

_KNOTS = 200_000  # of all curves together: 64 columns of single precision then take 51 MB
_MOST_KNOTS = 4096  # of one curve
_FEWEST_KNOTS = 96
_PER_SCALE = 32  # knots in one noise scale, where there is room
_GROWTH = 1.12  # of the distances between knots away from edges
# where comparisons share knots: their edges are more and reach farther; more knots stand among them and fewer beyond
_COMMON_KNOTS, _COMMON_GROWTH = 256_000, 1.18
_FARTHEST = 6000.0  # noise scales beyond the outermost edges
_FAINT = 1e-5  # share of the noise beyond which knots may be sparse
LARGEST = 1e100
"""Of a noise scale in units, and of its inverse."""
FAR = 1e30
"""Noise scales that edges may lie away from 0."""
_CHUNK = 2**21


@dataclass(frozen=True, slots=True, eq=False)
class OrientedTerm:
    """One term as a function that is to stay high: its edges, and scores from 0 on.

    Attributes
    ----------
    edges : array of shape (n_edges,)
    scores : array of shape (n_edges + 1,)
    feature : int
    """

    edges: FloatArray
    scores: FloatArray
    feature: int

    @property
    def range(self) -> float:
        return float(self.scores.max())

    @property
    def variation(self) -> float:
        return float(np.abs(np.diff(self.scores)).sum())


def orient_terms(terms: PackedTerms, label: int, cap: float = math.inf) -> list[OrientedTerm]:
    """The terms of a sum of one column as functions that must stay high for the label to hold, cut off above a cap.

    For class 0 those are ranges less scores. Cutting off lowers a function, which proves no more than before.
    """
    oriented_terms = []
    for i in range(terms.n_plain):
        scores = terms.scores[terms.starts[i] : terms.starts[i + 1]].astype(np.float64)
        first = terms.starts[i] - i
        edges = terms.edges[first : first + scores.size - 1]
        oriented = scores if label else scores.max() - scores
        oriented_terms.append(OrientedTerm(edges, np.minimum(oriented, cap), int(terms.edge_features[first])))
    return oriented_terms


def spread_terms(oriented_terms: list[OrientedTerm], common: SharedEdges | None) -> list[OrientedTerm]:
    """The same functions with all edges that other comparisons have in their columns, too."""
    if common is None:
        return oriented_terms
    return [OrientedTerm(*common.spread(one.feature, one.edges, one.scores), one.feature) for one in oriented_terms]


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """A curve before it stands beside others; fields as in `Curves`."""

    knots: FloatArray
    low: FloatArray
    sag: FloatArray
    too_low: float
    ends: tuple[float, float]
    range: float
    unit: float
    bend: float
    even: tuple[int, int]


class KnotTable(NamedTuple):
    """Where a curve is known, and what the noise does there, whatever the curve's scores are."""

    knots: FloatArray
    even: tuple[int, int]
    widths: FloatArray
    """Distances between knots in noise scales, rounded upward."""
    reach: float
    """Of the noise, in noise scales; at most 1e6."""
    beyond: tuple[float, float]
    """Upper bounds of the mass that does not lie in the first cell at the first knot, and in the last at the last."""
    masses: FloatArray | None
    """(n_knots, n_cells): upper bounds of the noise's mass in each cell; None where that takes too much memory."""
    seen: FloatArray | None
    """(n_edges, n_knots - 1): the same between knots, seen from each edge; None also where a noise has kinks."""


class Shape(NamedTuple):
    """What a curve depends on: equal for terms that share one, as those of one edge do that step by as much."""

    range: float
    scale: float
    """Of the noise in units; 0 for a term that shares its curve with no other, which its feature and bytes tell."""
    feature: int = -1
    bytes: bytes = b""


def name_shapes(oriented_terms: list[OrientedTerm], noise: Noise, units: FloatArray) -> tuple[Shape, ...]:
    """The shape of each term."""
    shapes = []
    for oriented_term in oriented_terms:
        own = float(noise.units_of(np.array([oriented_term.feature]))[0])
        scale = noise.magnitude * (own / float(units[oriented_term.feature]))
        if oriented_term.edges.size == 1 and 1 / LARGEST < scale < LARGEST:
            shapes.append(Shape(oriented_term.range, scale))
        else:
            content = oriented_term.edges.tobytes() + oriented_term.scores.tobytes()
            shapes.append(Shape(oriented_term.range, 0.0, oriented_term.feature, content))
    return tuple(shapes)


def trace_curves(
    oriented_terms: list[OrientedTerm],
    shapes: tuple[Shape, ...],
    noise: Noise,
    units: FloatArray,
    common: SharedEdges | None = None,
) -> Curves:
    """The curves of all shapes under noise, in the order in which shapes first occur.

    Terms are not constant; distances count in `units`, (n_features,). What other comparisons need as well is kept in
    `common`.
    """
    first = dict(zip(reversed(shapes), reversed(oriented_terms), strict=True))
    share = _KNOTS // len(first) if common is None else _COMMON_KNOTS // round_up(len(first))
    limit = int(np.clip(share, _FEWEST_KNOTS, _MOST_KNOTS))
    curves = []
    for shape in dict.fromkeys(shapes):
        if shape.scale:
            rising = OrientedTerm(np.zeros(1), np.array([0.0, shape.range]), 0)
            curves.append(_trace(rising, type(noise)(shape.scale), 1.0, limit, common))  # type: ignore[call-arg]
        else:
            curves.append(_trace(first[shape], noise, float(units[shape.feature]), limit, common))
    return _join(curves)


def place_terms(oriented_terms: list[OrientedTerm], shapes: tuple[Shape, ...], units: FloatArray) -> Positions:
    """Where terms look up the curves that `trace_curves` returns for their shapes."""
    known = {shape: at for at, shape in enumerate(dict.fromkeys(shapes))}
    features = np.array([oriented_term.feature for oriented_term in oriented_terms], dtype=np.int64)
    shared = np.array([shape.scale > 0 for shape in shapes])
    signs = np.array(
        [1.0 if oriented_term.scores[-1] > oriented_term.scores[0] else -1.0 for oriented_term in oriented_terms]
    )
    return Positions(
        features,
        np.array([known[shape] for shape in shapes], dtype=np.int64),
        np.where(shared, [oriented_term.edges[0] for oriented_term in oriented_terms], 0.0),
        np.where(shared, signs / units[features], 1.0),
    )


def _trace(oriented_term: OrientedTerm, noise: Noise, unit: float, limit: int, common: SharedEdges | None) -> _Curve:
    """One curve in raw numbers of its column."""
    edges, scale = oriented_term.edges, float(noise.scales(np.array([oriented_term.feature]))[0])
    if not (1 / LARGEST < scale / unit < LARGEST and np.abs(edges).max() / FAR < scale < 1 / TINY / FAR):
        return _know_nothing(oriented_term, unit)
    table = _lay_knots(oriented_term, noise, scale, limit, common)
    knots = table.knots
    spread = np.float64(oriented_term.range)
    first, last = table.beyond
    error = EPSILON * (4 * knots.size + oriented_term.scores.size + 4 * table.reach + 64) * spread
    ends = (
        float(oriented_term.scores[0] - spread * first - error),
        float(oriented_term.scores[-1] - spread * last - error),
    )
    bend = min(noise.bends[0] * oriented_term.variation, noise.bends[1] * spread)
    sag = np.append(_bound_sag(oriented_term, noise, table, scale, bend), 0.0)
    low = _bound_low(oriented_term, noise, table) - error
    too_low = float(2 * error + 3 * TAIL_ERROR * edges.size * spread)
    steepest = bend * (unit / scale) ** 2 * (1 + 8 * EPSILON)
    return _Curve(knots, low, sag, too_low, ends, float(spread), unit, steepest, table.even)


def _know_nothing(oriented_term: OrientedTerm, unit: float) -> _Curve:
    """A curve of which only its range is known: where doubles cannot hold noise, units and edges side by side."""
    half, nothing = 0.5 * oriented_term.range, np.zeros(2)
    knots = np.array([-unit, unit])
    return _Curve(knots, nothing + half, nothing + half, 0.0, (0.0, 0.0), oriented_term.range, unit, math.inf, (0, 0))


def _lay_knots(
    oriented_term: OrientedTerm, noise: Noise, scale: float, limit: int, common: SharedEdges | None
) -> KnotTable:
    """Where to place knots for the edges of a term; with masses only where others share them."""
    edges, feature = oriented_term.edges, oriented_term.feature

    def lay() -> KnotTable:
        knots, even = place_knots(edges, scale, noise, limit, _GROWTH if common is None else _COMMON_GROWTH)
        first = noise.cell_probabilities(knots[[0]], edges[[0]], feature)[0, 1]
        last = noise.cell_probabilities(knots[[-1]], edges[[-1]], feature)[0, 0]
        widths = np.diff(knots) / scale * (1 + 8 * EPSILON)
        plain = KnotTable(knots, even, widths, min(noise.reach, 1e6), (first, last), None, None)
        if common is None or knots.size * (edges.size + 1) > _CHUNK:
            return plain
        masses = noise.cell_probabilities(knots, edges, feature)
        seen = None if noise.kinks else noise.cell_probabilities(edges, knots, feature)[:, 1:-1].copy()
        return plain._replace(masses=masses, seen=seen)

    return lay() if common is None else common.find((type(noise), scale, edges.tobytes(), limit), lay)


def _bound_low(oriented_term: OrientedTerm, noise: Noise, table: KnotTable) -> FloatArray:
    """Lower bounds at knots: the range, less what upper bounds of probabilities take away from it."""
    missing, knots = oriented_term.range - oriented_term.scores, table.knots
    if table.masses is not None:
        return np.asarray(oriented_term.range - table.masses @ missing)
    low = np.empty(knots.size)
    size = max(1, _CHUNK // missing.size)
    for start in range(0, knots.size, size):
        part = slice(start, start + size)
        low[part] = (
            oriented_term.range
            - noise.cell_probabilities(knots[part], oriented_term.edges, oriented_term.feature) @ missing
        )
    return low


def _bound_sag(oriented_term: OrientedTerm, noise: Noise, table: KnotTable, scale: float, bend: float) -> FloatArray:
    """By how much the curve may leave its chord on each interval between knots.

    At most by what it varies there, which is the noise's mass between the knots seen from each edge; by its second
    derivative; or, where a noise has kinks that are all knots, by their rounding alone.
    """
    jumps, widths = np.abs(np.diff(oriented_term.scores)), table.widths
    if noise.kinks:
        reach = np.abs(oriented_term.edges).max() + 2 * scale
        return np.full(widths.size, 4 * EPSILON * oriented_term.variation * reach / scale)
    sag = np.zeros(widths.size)
    size = jumps.size if table.seen is not None else max(1, _CHUNK // table.knots.size)
    for start in range(0, jumps.size, size):
        part = slice(start, start + size)
        seen = table.seen
        if seen is None:
            seen = noise.cell_probabilities(oriented_term.edges[part], table.knots, oriented_term.feature)[:, 1:-1]
        sag += jumps[part] @ seen
    if math.isfinite(bend):
        sag = np.minimum(sag, bend / 8 * widths**2)
    return sag * (1 + 16 * EPSILON * (jumps.size + 1))


def place_knots(
    edges: FloatArray, scale: float, noise: Noise, limit: int, growth: float = _GROWTH
) -> tuple[FloatArray, tuple[int, int]]:
    """Knots of one curve, and the first and the number of intervals of the longest evenly spaced run.

    Dense wherever an edge is near enough for the noise to be felt, ever sparser away from edges.
    """
    if noise.kinks:
        ends = np.asarray(noise.kinks, dtype=np.float64)
    else:
        steps = np.arange(0.5, 64.0, 0.5)
        faint = steps[noise.share_beyond(steps) <= _FAINT]
        ends = np.array([-1.0, 1.0]) * (faint[0] if faint.size else steps[-1])
    starts, stops = edges + ends[0] * scale, edges + ends[-1] * scale
    opens = np.append(True, starts[1:] > stops[:-1] + scale / _PER_SCALE)
    runs = list(zip(starts[opens], stops[np.append(opens[1:], True)], strict=True))
    length = sum(stop - start for start, stop in runs)
    step = max(scale / _PER_SCALE, length / max(limit // 2, 1))
    parts, longest = [], (0, 0)
    outer = _grow(step, _FARTHEST * scale, growth)
    for at, (start, stop) in enumerate(runs):
        room = outer if at == 0 else _grow(step, (start - runs[at - 1][1]) / 2, growth)
        count = max(2, math.ceil((stop - start) / step))
        parts += [start - room[::-1], np.linspace(start, stop, count + 1)]
        longest = max(longest, (count, at))
        room = outer if at == len(runs) - 1 else _grow(step, (runs[at + 1][0] - stop) / 2, growth)
        parts.append(stop + room)
    kinks = (edges[:, None] + ends * scale).ravel() if noise.kinks else np.empty(0)
    knots = np.unique(np.concatenate([*parts, kinks]))
    run = np.linspace(*runs[longest[1]], longest[0] + 1)
    first = int(np.searchsorted(knots, run[0]))
    unbroken = np.array_equal(knots[first : first + run.size], run)  # else kinks stand in it
    return knots, (first, longest[0] if unbroken and _is_even(run) else 0)


def _is_even(run: FloatArray) -> bool:
    """Whether knots are evenly spaced but for a trifle; large ones close together are not, as each is rounded."""
    positions = (run - run[0]) * (1 / ((run[-1] - run[0]) / (run.size - 1)))
    return bool(np.abs(positions - np.arange(run.size)).max() <= 0.5 * UNEVEN)


def _grow(step: float, farthest: float, growth: float) -> FloatArray:
    """Ever larger distances, from one step on."""
    if farthest <= step:
        return np.empty(0)
    count = math.ceil(math.log1p(farthest / step * (growth - 1)) / math.log(growth))
    distances = step * np.expm1(np.arange(1, count + 1) * math.log(growth)) / (growth - 1)
    return np.asarray(distances[distances < farthest])


def _join(curves: list[_Curve]) -> Curves:
    starts = np.cumsum([0, *(curve.knots.size for curve in curves)], dtype=np.int64)
    begins = starts[:-1] + np.array([curve.even[0] for curve in curves], dtype=np.int64)
    knots = np.concatenate([curve.knots for curve in curves])
    counts = np.array([curve.even[1] for curve in curves], dtype=np.int64)
    ends = begins + counts
    steps = (knots[ends] - knots[begins]) / np.maximum(counts, 1)
    return Curves(
        starts=starts,
        knots=knots,
        low=np.concatenate([curve.low for curve in curves]),
        sag=np.concatenate([curve.sag for curve in curves]),
        too_low=np.array([curve.too_low for curve in curves]),
        ends=np.array([curve.ends for curve in curves]),
        ranges=np.array([curve.range for curve in curves]),
        units=np.array([curve.unit for curve in curves]),
        bends=np.array([curve.bend for curve in curves]),
        even=np.stack([knots[begins], np.where(counts > 0, 1 / np.where(counts > 0, steps, 1.0), 0.0)], axis=1),
        even_knots=np.stack([begins, counts], axis=1),
    )
