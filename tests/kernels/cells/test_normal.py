"""The compiled normal law: its series are the right ones, its errors are measured, places do not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from derand import Gaussian
from derand.kernels.cells.normal import COEFFICIENTS, N_TERMS, Widening, bound_cells, bound_sides, upper_tail
from derand.noise import EPSILON, TAIL_ERROR, TAIL_ERROR_GROWTH, TINY
from tests import oracle
from tests.oracle import MP

WIDENING = Widening(TAIL_ERROR, TAIL_ERROR_GROWTH, TINY)
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 40]
"""Around the widths of vector registers."""
DISTANCES = np.unique(
    np.concatenate(
        [
            [0.0, 5e-324, TINY, 1e-300, 5.0],
            np.logspace(-18, 0, 300),
            np.linspace(0, 8, 2500),
            np.linspace(8, 37.5, 1200),
            [math.nextafter(5.0, 0.0), math.nextafter(5.0, 6.0)],
        ]
    )
)


def derive_coefficients(degree: int) -> list[float]:
    """Chebyshev series of (z + 1) exp(z**2 / 2) P(noise > z) in t = (z - 5) / (z + 5), cut and in powers of t."""
    n_nodes = 100
    angles = [MP.pi * (2 * j + 1) / (2 * n_nodes) for j in range(n_nodes)]
    distances = [5 * (1 + MP.cos(angle)) / (1 - MP.cos(angle)) for angle in angles]
    values = [(z + 1) * MP.exp(z * z / 2) * oracle.gaussian_tail(z) for z in distances]
    powers = [MP.mpf(0)] * (degree + 1)
    previous, current = [MP.mpf(0)], [MP.mpf(1)]  # Chebyshev polynomials
    for m in range(degree + 1):
        weight = MP.fsum(v * MP.cos(m * angle) for v, angle in zip(values, angles, strict=True))
        weight *= (1 if m == 0 else 2) / MP.mpf(n_nodes)
        for power, number in enumerate(current):
            powers[power] += weight * number
        shifted = [MP.mpf(0)] + [(1 if m == 0 else 2) * number for number in current]
        following = [a - b for a, b in zip(shifted, previous + [MP.mpf(0)] * len(shifted), strict=False)]
        previous, current = current, following
    return [float(number) for number in powers]


def test_coefficients_are_those_of_the_series() -> None:
    """Every coefficient is what 60-digit arithmetic derives, to the last digit."""
    derived = derive_coefficients(len(COEFFICIENTS) - 1)
    for ours, theirs in zip(COEFFICIENTS, derived, strict=True):
        assert abs(ours - theirs) <= math.ulp(theirs)


def test_error_of_the_tail() -> None:
    """A tail is within 2 epsilons of the true one, and z**2 / 4 of them more by the rounding of the exponent."""
    for z, tail in zip(DISTANCES.tolist(), upper_tail(DISTANCES).tolist(), strict=True):
        truth = oracle.gaussian_tail(MP.mpf(z))
        assert abs(MP.mpf(tail) / truth - 1) <= (2 + z * z / 4) * EPSILON


def sides_at(z: np.ndarray) -> np.ndarray:
    """Both sides of an edge at 0, seen from z."""
    return bound_sides(z[:, None], np.zeros(1), np.ones(1), WIDENING)[:, 0]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_sides_are_tight_upper_bounds(sign: float) -> None:
    """Neither side is ever below the true one, and neither exceeds it by more than step 5 of the argument counts."""
    z = sign * np.concatenate([DISTANCES, np.linspace(37.5, 40, 200), [41.0, 1e5, 1e300]])
    for value, (below, above) in zip(z.tolist(), sides_at(z).tolist(), strict=True):
        small, large = (below, above) if value > 0 else (above, below)
        distance = min(abs(value), 1e3)
        tail = oracle.gaussian_tail(MP.mpf(distance))
        assert tail <= small <= max(tail * (1 + 2 * (TAIL_ERROR + TAIL_ERROR_GROWTH * distance**2)), TINY)
        assert 1 - tail <= large <= min((1 - tail) * (1 + 100 * EPSILON), 1)


def test_sides_mirror_each_other() -> None:
    """An edge as far to the left as to the right has the same sides, the other way round."""
    z = DISTANCES[1:]
    assert (sides_at(z) == sides_at(-z)[:, ::-1]).all()


@pytest.mark.parametrize("size", SIZES)
def test_a_number_does_not_depend_on_its_place(size: int) -> None:
    """Vector instructions and the loop over what they leave round alike: sides and tails are the same bit for bit."""
    rng = np.random.default_rng(size)
    z = rng.normal(size=size) * rng.choice([1e-3, 1.0, 12.0], size)
    edges, scales = rng.normal(size=size), rng.uniform(0.1, 2, size)
    together = bound_sides(np.stack([z, z[::-1], z]), edges, scales, WIDENING)
    for i in range(size):
        alone = bound_sides(z[i : i + 1, None], edges[i : i + 1], scales[i : i + 1], WIDENING)[0, 0]
        assert (together[0, i] == alone).all()
        assert (together[2, i] == alone).all()
        assert upper_tail(np.abs(z))[i] == upper_tail(np.abs(z[i : i + 1]))[0]


# --- cells between edges ---------------------------------------------------------------------------------------

PLACES = [0.0, 1e-300, 1e-9, 0.1, 0.224, 0.4494, 0.4495, 1.0, 1.4, 3.0, 8.0, 20.0, 37.0, 37.4, 37.6, 39.0, 41.0, 1e300]
REACHES = [1e-300, 1e-12, 1e-3, 0.1, 0.9, 0.999, 1.0, 1.001, 1.1, 2.0, 10.0, 100.0, 1e5, 1e300]  # width (place + 2)


def draw_ends() -> list[tuple[float, float]]:
    """Ends of cells: at chosen places and, from there, at drawn ones, of all widths, centred or at the near end."""
    rng = np.random.default_rng(3)
    drawn = zip(rng.uniform(0, 5, 1500), 10 ** rng.uniform(-3, 1, 1500), strict=True)
    ends = []
    for place, reach in [*((p, r) for p in PLACES for r in REACHES), *((float(p), float(r)) for p, r in drawn)]:
        width = reach / (place + 2)
        for low in (place, place - width / 2, place - width, -place - width):
            ends.append((low, max(low + width, math.nextafter(low, math.inf))))
    return ends


def cell_between(low: float, high: float, widening: Widening) -> float:
    """The middle one of three cells, seen from 0."""
    starts = np.array([0, 2])
    return float(bound_cells(np.zeros((1, 2)), np.array([low, high]), np.ones(2), starts, widening)[0, 1])


def true_cell(low: float, high: float) -> oracle.Number:
    """Its true probability; mpmath's range ends before that of doubles, but nothing is left beyond 1e6 scales."""
    low, high = max(low, -1e6), min(high, 1e6)
    return oracle.cell_probabilities(Gaussian(1.0), 0.0, [low, high])[1] if low < high else MP.mpf(0)


def test_cells_between_edges_are_tight_upper_bounds() -> None:
    """No cell is below the true one, 0 or above 1, or exceeds the truth by more than step 1 says, wherever it lies."""
    for low, high in draw_ends():
        bound, truth = cell_between(low, high, WIDENING), true_cell(low, high)
        distance = min(abs(low), abs(high), 40.0)
        excess = 10 * (TAIL_ERROR + TAIL_ERROR_GROWTH * (distance + 0.5) ** 2)
        assert truth <= bound <= min(max(truth * (1 + excess), TINY), 1), (low, high)
        assert excess < 4e-11


def test_tails_are_rounded_away_from_each_other() -> None:
    """Of two tails on the same side the larger one is widened upward and the smaller one downward, on either side."""
    near, far = (float(oracle.gaussian_tail(z)) for z in (1, 3))
    expected = near * (1 + 1e-3 + 1e-4) - far * (1 - 1e-3 - 9e-4)
    for low, high in ((1.0, 3.0), (-3.0, -1.0)):
        assert math.isclose(cell_between(low, high, Widening(1e-3, 1e-4, TINY)), expected, rel_tol=1e-14)


def test_error_of_a_narrow_cell_is_within_the_widening() -> None:
    """Ten times the error of an unwidened narrow cell, plus the rounding of its ends and width, is widened away."""
    worst = 0.0
    for low, high in draw_ends():
        middle, truth = abs(low + high) / 2, true_cell(low, high)
        if truth > 2 * TINY and high - low < 1 / (middle + 2):
            error = abs(MP.mpf(cell_between(low, high, Widening(0.0, 0.0, TINY))) / truth - 1)
            assert error <= (4 + middle**2 / 4) * EPSILON
            worst = max(worst, float(error) / EPSILON / (4 + middle**2 / 4))
    assert worst > 0.1  # there were some
    z = np.linspace(0, 38, 100)
    needed = 10 * (4 + z**2 / 4) + 1.5 * (z**2 + 1) + 1.5 + 2
    assert (needed * EPSILON <= TAIL_ERROR + TAIL_ERROR_GROWTH * z**2).all()


def test_what_the_series_of_a_narrow_cell_leaves_out() -> None:
    """The terms left out are below 7e-18 together wherever a cell is narrow, and the series is that of the cell."""
    for share in np.linspace(0, 1, 101).tolist():
        aside = MP.mpf(share) / 2  # the middle times half the width
        half = (MP.mpf(1) / 2 - aside) / 2
        terms, power = [MP.mpf(1)], MP.mpf(1)
        for k in range(1, 40):
            power *= aside**2 / (2 * k * (2 * k - 1))
            terms.append((half**2 * terms[-1] + power) / (2 * k + 1))
        assert MP.fsum(terms[N_TERMS:]) < 7e-18
        if half > 0.01:
            start, stop = aside / half - half, aside / half + half
            mean = MP.sqrt(oracle.gaussian_density(start) * oracle.gaussian_density(stop))
            truth = oracle.gaussian_tail(start) - oracle.gaussian_tail(stop)
            assert abs(mean * 2 * half * MP.fsum(terms) / truth - 1) < 1e-40


@pytest.mark.parametrize("x", [0.0, 0.3, -2.0, 9.0, -37.0, 1e300])
def test_cells_of_a_term_add_up_to_hardly_more_than_one(x: float) -> None:
    """All cells of a term together have at least mass 1 and no more excess than step 5 of the argument counts."""
    rng = np.random.default_rng(7)
    for n_edges in (1, 2, 3, 10, 300):
        for spread in (1e-9, 0.1, 1.0, 10.0, 1e300):
            edges = np.sort(rng.normal(size=n_edges)) * spread
            cells = bound_cells(np.full((1, n_edges), x), edges, np.ones(n_edges), np.array([0, n_edges]), WIDENING)
            total = math.fsum(cells[0].tolist())
            assert 1 <= total <= 1 + 3 * n_edges * TAIL_ERROR
            assert total <= 1 + 20 * TAIL_ERROR


def test_cells_of_one_edge_are_its_sides() -> None:
    """A term with one edge has the same cells as the loop for such terms gives, bit for bit."""
    rng = np.random.default_rng(8)
    x, edges, scales = rng.normal(size=(5, 30)) * 9, rng.normal(size=30), rng.uniform(0.1, 2, 30)
    cells = bound_cells(x, edges, scales, np.arange(31), WIDENING)
    assert (cells == bound_sides(x, edges, scales, WIDENING).reshape(5, 60)).all()


@pytest.mark.parametrize("size", SIZES[:-2])
def test_a_term_does_not_depend_on_its_place(size: int) -> None:
    """A term alone and among others, of its own size or larger, has the same cells bit for bit."""
    rng = np.random.default_rng(size)
    sizes = [size, 1, size, 7, size, size]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    edges = np.concatenate([np.sort(rng.normal(size=n) * rng.choice([1e-6, 0.1, 1.0, 20.0], n)) for n in sizes])
    x, scales = rng.normal(size=(3, edges.size)), np.repeat(rng.uniform(0.1, 2, len(sizes)), sizes)
    together = bound_cells(x, edges, scales, starts, WIDENING)
    for term, n in enumerate(sizes):
        own, cells = slice(starts[term], starts[term + 1]), slice(starts[term] + term, starts[term + 1] + term + 1)
        for row in range(3):
            alone = bound_cells(x[row : row + 1, own], edges[own], scales[own], np.array([0, n]), WIDENING)
            assert (alone[0] == together[row, cells]).all()


@pytest.mark.parametrize("size", SIZES)
def test_the_exponential_does_not_depend_on_its_place(size: int) -> None:
    """NumPy's exponential of a number is the same bit for bit wherever it stands, at the end of the range, too."""
    rng = np.random.default_rng(size)
    for reach in (1.0, 40.0, 800.0):
        x = -rng.random(size) * reach
        with np.errstate(under="ignore"):
            together = np.exp(x)
            for offset in range(9):  # any alignment in memory
                room = np.concatenate([np.zeros(offset), x])
                assert (np.exp(room[offset:]) == together).all()
            assert [float(np.exp(x[i : i + 1])[0]) for i in range(size)] == together.tolist()
