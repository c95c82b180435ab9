"""Envelopes: tables are lower bounds between knots, at them and beyond, and not much lower than need be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from derand import Gaussian, Laplace, Uniform
from derand.certificates.bounds.curves import OrientedTerm, name_shapes, place_terms, trace_curves
from derand.kernels.worst_case.curves import Curves, list_tracks, locate
from derand.kernels.worst_case.envelopes import (
    COARSE,
    add_curves,
    extend_tables,
    round_down,
    start_tables,
    tabulate_envelopes,
    widen_tables,
)
from tests.certificates.searching import distribute
from tests.oracle import MP, cell_probabilities

KINDS = [Gaussian, Laplace, Uniform]


def draw_stretches(rng: np.random.Generator, centre: float = 0.0, scale: float = 1.0) -> list[OrientedTerm]:
    """A few terms of several edges each."""
    stretches = []
    for feature in range(3):
        edges = np.unique(centre + scale * rng.normal(0.0, rng.choice([0.3, 3.0, 100.0]), rng.integers(2, 7)))
        scores = rng.integers(0, 9, edges.size + 1).astype(np.float64)
        scores[rng.integers(scores.size)] = 9.0
        scores -= scores.min()
        stretches.append(OrientedTerm(edges, scores, feature))
    return stretches


def trace(stretches: list[OrientedTerm], noise: Any, units: np.ndarray) -> Curves:
    return trace_curves(stretches, name_shapes(stretches, noise, units), noise, units)


def smooth(stretch: OrientedTerm, noise: Any, z: np.ndarray) -> np.ndarray:
    below = distribute(noise, (z[:, None] - stretch.edges) / noise.magnitude)
    return np.asarray(stretch.scores[0] + below @ np.diff(stretch.scores))


def look_up(curves: Curves, k: int, column: np.ndarray, x: np.ndarray) -> np.ndarray:
    found = [locate(one, list_tracks(curves)[k], curves.knots) for one in x]
    at, share = np.array([one[0] for one in found]), np.array([one[1] for one in found])
    return (1 - share) * column[at] + share * column[at + 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("power", [1, 2])
def test_no_chord_of_a_table_exceeds_the_envelope(kind: Any, power: int) -> None:
    """At random places between knots, at knots and beyond them; in half of them it is hardly lower, either."""
    rng = np.random.default_rng(power)
    for noise in (kind(0.1), kind(1.0)):
        units = np.array([1.0, 0.2, 5.0])
        stretches = draw_stretches(rng)
        curves = trace(stretches, noise, units)
        multipliers = np.geomspace(1e-3, 300.0, 8)
        tables = tabulate_envelopes(curves, multipliers, power).astype(np.float64)
        for k, stretch in enumerate(stretches):
            part = slice(curves.starts[k], curves.starts[k + 1])
            knots = curves.knots[part]
            ends = stretch.edges[[0, -1]] + noise.magnitude * np.array([-12.0, 12.0])
            x = np.concatenate([rng.uniform(*ends, 60), rng.choice(knots, 30), [knots[0] - 9.0, knots[-1] + 1e4]])
            z = np.concatenate([np.linspace(*ends, 4001), knots, x])
            values = smooth(stretch, noise, z)
            for column, multiplier in enumerate(multipliers):
                costs = multiplier * (np.abs(x[:, None] - z) / units[k]) ** power
                true = (values + costs).min(axis=1)
                low = look_up(curves, k, tables[:, column], x)
                assert (low <= true + 1e-12).all()
                assert np.median(true - low) <= 0.02 * stretch.range


@pytest.mark.parametrize("power", [1, 2])
def test_widened_tables_are_those_of_all_knots(power: int) -> None:
    """Bit by bit, of a curve without entries as well."""
    curves = trace(draw_stretches(np.random.default_rng(7)), Gaussian(0.5), np.ones(3))
    multipliers = np.geomspace(1e-3, 100.0, COARSE)
    first, last = curves.starts[:-1], curves.starts[1:] - 1
    some = np.array([[curves.knots.size, -1], [first[1] + 9, first[1] + 20], [first[2], last[2] - 5]])
    tables = extend_tables(start_tables(curves, multipliers, power, some), curves, power, np.array([3]), some)
    assert np.isnan(tables.coarse[: last[0]]).all()
    wide = widen_tables(tables, curves, power, some, np.stack([first, last], axis=1))
    assert np.array_equal(wide.coarse, tabulate_envelopes(curves, multipliers, power))
    assert np.array_equal(wide.fine[0], tabulate_envelopes(curves, wide.fine_multipliers[0], power))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.0), (2000.0, 0.1), (1e8, 1e-3), (1e8, 1e-7), (-1e-3, 1e-9)])
def test_knots_are_lower_bounds_with_sixty_digits(kind: Any, centre: float, scale: float) -> None:
    """And what a curve says beyond its knots; too low by no more than `too_low`."""
    rng = np.random.default_rng(5)
    noise = kind(scale)
    stretches = draw_stretches(rng, centre, scale)
    curves = trace(stretches, noise, np.ones(3))
    for k, stretch in enumerate(stretches):
        knots = np.arange(curves.starts[k], curves.starts[k + 1])
        for knot in (*rng.choice(knots, 12), knots[0], knots[-1]):
            cells = cell_probabilities(noise, float(curves.knots[knot]), stretch.edges.tolist())
            true = sum(MP.mpf(float(s)) * _mp(p) for s, p in zip(stretch.scores, cells, strict=True))
            assert curves.low[knot] <= true <= curves.low[knot] + curves.too_low[k]
        assert curves.ends[k, 0] <= stretch.scores[0]
        assert curves.ends[k, 1] <= stretch.scores[-1]


def _mp(number: Any) -> Any:
    return MP.mpf(number.numerator) / number.denominator if hasattr(number, "numerator") else MP.mpf(number)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.0), (2000.0, 0.1), (1e8, 1e-3), (1e8, 1e-6)])
def test_sums_of_chords_are_as_near_as_they_say(kind: Any, centre: float, scale: float) -> None:
    rng = np.random.default_rng(6)
    noise, units = kind(scale), np.ones(3)
    stretches = draw_stretches(rng, centre, scale)
    shapes = name_shapes(stretches, noise, units)
    curves, places = trace_curves(stretches, shapes, noise, units), place_terms(stretches, shapes, units)
    rows = centre + scale * rng.normal(0.0, 2.0, (200, 3))
    sums, errors = add_curves(rows, places, curves)
    true = sum(smooth(stretch, noise, rows[:, k]) for k, stretch in enumerate(stretches))
    assert (np.abs(sums - true) <= errors + curves.too_low.sum() + 1e-8 * curves.ranges.sum()).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.0), (2000.0, 0.1), (1e8, 1e-3), (1e8, 3e-6), (1e8, 1e-7)])
def test_locate_at_every_knot_and_beside_it(kind: Any, centre: float, scale: float) -> None:
    """The place between two knots is the right one, but for less than 1e-8 of their distance."""
    rng = np.random.default_rng(7)
    stretches = draw_stretches(rng, centre, scale)
    curves = trace(stretches, kind(scale), np.ones(3))
    for k in range(len(stretches)):
        first, last = curves.starts[k], curves.starts[k + 1] - 1
        knots = curves.knots[first : last + 1]
        for x in np.concatenate([knots, np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)]):
            at, share = locate(x, list_tracks(curves)[k], curves.knots)
            assert first <= at < last
            assert 0.0 <= share <= 1.0
            width = curves.knots[at + 1] - curves.knots[at]
            place = min(max(x, knots[0]), knots[-1])
            assert abs((place - curves.knots[at]) - share * width) <= 1e-8 * width


def test_round_down_is_never_larger() -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(size=10_000) * 10.0 ** rng.integers(-50, 38, 10_000)
    values = np.concatenate([values, [0.0, -0.0, 5e-324, -5e-324, 1e-46, -1e-46, 3.4e38, -3.4e38, math.pi]])
    single = round_down(values)
    assert single.dtype == np.float32
    assert (single.astype(np.float64) <= values).all()
    assert (np.nextafter(single, np.float32(np.inf)).astype(np.float64) > values).all()


def test_entries_do_not_depend_on_which_others_are_made() -> None:
    """Those of some knots are the same to the last bit as in the whole table; the others prove nothing."""
    rng = np.random.default_rng(8)
    for kind in KINDS:
        curves = trace(draw_stretches(rng), kind(0.4), np.array([1.0, 0.2, 5.0]))
        multipliers = 10.0 ** np.linspace(-2, 4, 7)
        whole = tabulate_envelopes(curves, multipliers, 2)
        for _ in range(5):
            counts = np.diff(curves.starts)
            first = curves.starts[:-1] + rng.integers(0, counts)
            last = np.minimum(first + rng.integers(-1, counts), curves.starts[1:] - 1)
            part = tabulate_envelopes(curves, multipliers, 2, np.stack([first, last], axis=1))
            made = np.zeros(curves.knots.size, dtype=bool)
            for start, stop in zip(first, last, strict=True):
                made[start : stop + 1] = True
            assert np.array_equal(part[made], whole[made])
            assert np.isnan(part[~made]).all()
