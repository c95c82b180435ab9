"""Windows: least values within a distance against dense minima."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from derand import Gaussian, Laplace, Uniform
from derand.certificates.bounds.curves import name_shapes, place_terms, trace_curves
from derand.kernels import compiling
from derand.kernels.worst_case.curves import UNEVEN
from derand.kernels.worst_case.windows import Asked, count_terms, locate_box, search_windows, tabulate_minima
from tests.kernels.worst_case.test_envelopes import draw_stretches, smooth

KINDS = [Gaussian, Laplace, Uniform]


@pytest.mark.parametrize("kind", KINDS)
def test_windows_and_counts_against_dense_minima(kind: Any) -> None:
    """Within the distance that is found the least sum stays above the threshold; a little farther mostly not."""
    rng = np.random.default_rng(1)
    tight = []
    for _ in range(8):
        noise, units = kind(0.3), np.array([1.0, 0.2, 5.0])
        stretches = draw_stretches(rng)
        shapes = name_shapes(stretches, noise, units)
        curves, places = trace_curves(stretches, shapes, noise, units), place_terms(stretches, shapes, units)
        minima = tabulate_minima(curves)
        rows = np.stack([rng.choice(one.edges, 6) + rng.normal(0.0, 0.6, 6) for one in stretches], axis=1)
        own = sum(smooth(stretch, noise, rows[:, k]) for k, stretch in enumerate(stretches))
        thresholds = own[:, None] * np.array([0.3, 0.7, 0.95])
        radii = search_windows(rows, places, minima, Asked(thresholds, 1e-9))
        counts = count_terms(rows, places, minima, Asked(thresholds, 1e-9))
        for (row, column), radius in np.ndenumerate(radii):
            falls = []
            for k, stretch in enumerate(stretches):
                wide = np.concatenate([np.linspace(one - 4, one + 4, 161) for one in stretch.edges] + [[-1e6, 1e6]])
                values = smooth(stretch, noise, np.append(wide, rows[row, k]))
                falls.append(values[-1] - values.min())
            left = own[row] - sum(sorted(falls)[::-1][: int(min(counts[row, column], 3))])
            assert left > thresholds[row, column] - 1e-9
            if math.isinf(radius):
                assert own[row] - sum(falls) > thresholds[row, column] - 1e-9
                continue
            within = [least_within(stretches, noise, rows[row], radius * f, units) for f in (1.0, 1 / 0.97)]
            assert within[0] > thresholds[row, column] - 1e-9
            tight.append(within[1] <= thresholds[row, column])
    assert np.mean(tight) > 0.9


def least_within(stretches: Any, noise: Any, row: np.ndarray, radius: float, units: np.ndarray) -> float:
    total = 0.0
    for k, stretch in enumerate(stretches):
        reach = radius * units[k]
        z = row[k] + reach * np.linspace(-1.0, 1.0, 3001)
        near = (stretch.edges[:, None] + np.linspace(-3, 3, 301)).ravel()
        total += smooth(stretch, noise, np.concatenate([z, near[np.abs(near - row[k]) <= reach]])).min()
    return float(total)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_size(kind: Any) -> None:
    """The largest doubles: a radius from 0 on, and no more than the distance to the nearest place that matters."""
    noise, units = kind(1.0), np.array([1e-290, 1.0, 1e290])
    stretches = draw_stretches(np.random.default_rng(2))
    shapes = name_shapes(stretches, noise, units)
    curves, places = trace_curves(stretches, shapes, noise, units), place_terms(stretches, shapes, units)
    rows = np.array([[1e308, -1e308, 1e308], [0.0, 1e308, -1e308], [-1e308, 5e-324, 0.0]])
    thresholds = np.full((3, 1), 0.4 * float(curves.ranges.sum()))
    radii = search_windows(rows, places, tabulate_minima(curves), Asked(thresholds, 1e-9))
    assert (radii >= 0).all()
    assert np.isfinite(radii).all()


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_ends_the_search_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, kind: Any, boxed: bool
) -> None:
    """Beside distances that are known, however near the windows, the larger of both comes out to the last bit."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(compiling.EARLY, "left", 0)  # the compiled loop, which leaves rows out
    for _ in range(12):
        noise, units = kind(0.3), np.array([1.0, 0.2, 5.0])
        stretches = draw_stretches(rng)
        shapes = name_shapes(stretches, noise, units)
        curves, places = trace_curves(stretches, shapes, noise, units), place_terms(stretches, shapes, units)
        minima, error = tabulate_minima(curves), UNEVEN * float(curves.ranges[places.curves].sum())
        rows = np.stack([rng.choice(one.edges, 40) + rng.normal(0.0, 0.6, 40) for one in stretches], axis=1)
        own = sum(smooth(stretch, noise, rows[:, k]) for k, stretch in enumerate(stretches))
        thresholds = own[:, None] * np.array([0.3, 0.7, 0.95, 0.999])
        box = locate_box(rows - 0.5 * units, rows + 0.7 * units, places) if boxed else None
        alone = search_windows(rows, places, minima, Asked(thresholds, error), box)
        factors = [0.0, 0.3, 1 - 2e-7, np.nextafter(1, 0), 1.0, np.nextafter(1, 2), 1 + 2e-7, 1 + 1e-5, 3.0]
        with np.errstate(invalid="ignore"):
            guesses = [alone * factor for factor in factors] + [np.full(alone.shape, one) for one in (0.1, np.inf)]
        for known in guesses:
            known[np.isnan(known)] = 0.0
            found = search_windows(rows, places, minima, Asked(thresholds, error), box, known=known)
            np.testing.assert_array_equal(found, np.maximum(known, alone))
        assert (alone > 0).any()
        assert np.isfinite(alone).any()
