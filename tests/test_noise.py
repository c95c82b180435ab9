"""The noises: cell probabilities are tight upper bounds, radii tight lower ones, and the constants are earned."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from derand import AdditiveEnsemble, Gaussian, Laplace, Noise, Uniform, distribution, parse_noise
from derand.kernels.cells.normal import upper_tail
from derand.kernels.cells.quantile import upper_quantile
from derand.noise import (
    EPSILON,
    NOISES,
    RADIUS_ERROR,
    TAIL_ERROR,
    TAIL_ERROR_GROWTH,
    TINY,
    as_noise,
    exp_upward,
    resolve_noise,
)
from tests import oracle
from tests.oracle import MP
from tests.strategies import edge_lists, noises, positions, scale_of

KINDS = sorted(NOISES)
SIGNED = np.concatenate([-np.logspace(1.58, -12, 60), [0.0], np.logspace(-12, 1.58, 60)])  # z from -38 to 38


def relative_excess(bound: float, truth: oracle.Number) -> float:
    return float((MP.mpf(bound) - exact(truth)) / exact(truth))


def exact(number: oracle.Number) -> oracle.Number:
    if isinstance(number, Fraction):
        return MP.mpf(number.numerator) / MP.mpf(number.denominator)
    return MP.mpf(number)


def check_cells(noise: Noise, x: float, edges: list[float], feature: int = 0) -> None:
    bounds = noise.cell_probabilities([x], edges, feature)[0]
    for bound, truth in zip(bounds.tolist(), oracle.cell_probabilities(noise, x, edges, feature), strict=True):
        assert truth <= bound <= 1.0
        if math.isfinite(noise.support):  # bounded: absolute accuracy, and 0 where a cell cannot be reached
            assert bound - float(truth) < 1e-13
            assert (bound > 0) or truth == 0
        elif truth > 2 * TINY:
            assert relative_excess(bound, truth) < 1e-10
        else:
            assert 0 < bound < 4 * TINY


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [None, (0.7,)])
def test_cells_over_the_whole_range(kind: str, units: tuple[float, ...] | None) -> None:
    """A cell's probability is never below the true one and hardly above it, from -38 to 38 scales, wide or narrow."""
    noise = NOISES[kind](0.3, units)
    scale = scale_of(noise, 0)
    for z in SIGNED.tolist():
        for width in (1e-300, 1e-9, 3e-4, 0.009, 0.011, 0.1, 0.9, 1.1, 3.0, 80.0):
            low = z * scale
            check_cells(noise, 0.0, [low, max(low + width * scale, math.nextafter(low, math.inf))])


@given(st.data())
def test_cells_of_drawn_edges(data: st.DataObject) -> None:
    """Cells between drawn edges, touching or apart, have tight upper bounds for every noise and unit."""
    noise = data.draw(noises(2))
    scale = scale_of(noise, 1)
    edges = data.draw(edge_lists(scale))
    check_cells(noise, data.draw(positions(edges, scale)), edges, feature=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("z", [37.3, 37.6, 38.0, 705.0, 709.0, 1e9])
def test_cells_at_the_end_of_double_precision(kind: str, z: float) -> None:
    """Where probabilities leave the range of doubles, the bound stays above them and positive."""
    noise = NOISES[kind](1.0)
    for edges in ([z, z + 1e3], [-z - 1e3, -z], [z, z + 0.01], [z, 2 * z]):
        for bound, truth in zip(
            noise.cell_probabilities([0.0], edges)[0].tolist(),
            oracle.cell_probabilities(noise, 0.0, edges),
            strict=True,
        ):
            assert bound >= truth


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("magnitude", [1e-200, 1.0, 1e200])
def test_cells_far_beyond_the_range(kind: str, magnitude: float) -> None:
    """Values near the largest double give bounds between 0 and 1, without a warning and without NaN."""
    noise = NOISES[kind](magnitude)
    edges = [-1.7e308, -1.0, 0.0, 5e-324, 2.0, 1.7e308]
    bounds = noise.cell_probabilities([-1.7e308, -1e300, 0.0, 3.0, 1.7e308], edges)
    assert ((bounds >= 0) & (bounds <= 1)).all()
    assert (bounds.sum(axis=1) >= 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_many_touching_cells_add_up_to_little_more_than_one(kind: str) -> None:
    """The bounds of a thousand cells of any width add up to 1 within 10 times the error allowed for one term."""
    noise = NOISES[kind](1.0)
    for width in (1e-3, 0.0099, 0.0101, 0.05, 0.3):
        edges = np.arange(-min(500, 8 / width), min(500, 8 / width)) * width + 0.0123
        total = math.fsum(noise.cell_probabilities([0.0], edges)[0].tolist())
        assert 1.0 <= total <= 1 + 8 * TAIL_ERROR + 3 * edges.size * EPSILON


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_where_the_edges_say(kind: str) -> None:
    """Cells come out in the order of the edges, and a term without edges has one cell of probability 1."""
    noise = NOISES[kind](0.6)
    assert noise.cell_probabilities([0.0, 5.0], []).tolist() == [[1.0], [1.0]]
    left, middle, right = noise.cell_probabilities([0.0], [-0.75, 0.5])[0]
    assert left < right < middle


def draw_terms(rng: np.random.Generator, sizes: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, features and terms of terms with so many edges each, every term on a feature of its own."""
    terms = np.repeat(np.arange(len(sizes)), sizes)
    edges = np.concatenate([np.empty(0), *(np.sort(rng.normal(size=size)) for size in sizes)])
    return edges, terms, terms


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sizes",
    [[1], [1, 1, 1, 1], [0, 1, 1, 1], [1, 1, 0, 1], [1, 1, 0], [3, 2], [0, 0], [1, 3, 0, 1, 2, 1], [*([1] * 37), 5]],
)
def test_a_table_holds_the_cells_of_its_terms(kind: str, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each term and row has the same cells alone and among others, bit for bit, however they are cut into chunks."""
    rng = np.random.default_rng(5)
    edges, features, terms = draw_terms(rng, sizes)
    noise = NOISES[kind](0.6, tuple(rng.uniform(0.5, 2, len(sizes))))
    rows = rng.normal(size=(11, len(sizes))) * 3
    table = noise.cell_table(rows[:, features], edges, features, terms, len(sizes))
    ends = np.cumsum([size + 1 for size in sizes])
    for term, cells in enumerate(np.split(table, ends[:-1], axis=1)):
        own = edges[terms == term]
        assert (cells == noise.cell_probabilities(rows[:, term], own, term)).all()
        assert (cells[4] == noise.cell_probabilities(rows[4:5, term], own, term)[0]).all()
    for numbers, in_a_row in ((3 * max(edges.size, 1), 1000), (1000, 3), (7, 1)):
        monkeypatch.setattr("derand.noise._CHUNK_NUMBERS", numbers)
        monkeypatch.setattr("derand.noise._CHUNK_EDGES", in_a_row)
        assert (table == noise.cell_table(rows[:, features], edges, features, terms, len(sizes))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_layout_of_the_values_does_not_matter(kind: str) -> None:
    """Values whose columns are contiguous, or that are read backwards, have the same cells."""
    rng = np.random.default_rng(6)
    edges, features, terms = draw_terms(rng, [1, 1, 2, 1])
    noise = NOISES[kind](0.6)
    x = rng.normal(size=(9, 5))
    table = noise.cell_table(x, edges, features, terms, 4)
    for same in (np.asfortranarray(x), x[::-1].copy()[::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        assert (noise.cell_table(same, edges, features, terms, 4) == table).all()


@pytest.mark.parametrize("kind", KINDS)
def test_differences_that_overflow_are_far_for_every_noise(kind: str) -> None:
    """Between the largest doubles a noise of the largest magnitude still has upper bounds; a larger one is refused."""
    noise = NOISES[kind](0.99e300)
    for x, edge in ((1.7e308, -1.7e308), (-1.7e308, 1.7e308), (0.9e308, -0.9e308), (2e301, 0.0)):
        for bound, truth in zip(
            noise.cell_probabilities([x], [edge])[0].tolist(), oracle.cell_probabilities(noise, x, [edge]), strict=True
        ):
            assert truth <= bound <= 1
    with pytest.raises(ValueError, match="1e300"):
        NOISES[kind](1e301)


# --- constants -------------------------------------------------------------------------------------------------


def library_error(function: object, truth: object, points: np.ndarray) -> np.ndarray:
    """Relative error of a library function at each point."""
    values = function(points)  # type: ignore[operator]
    errors = []
    for point, value in zip(points.tolist(), values.tolist(), strict=True):
        true = truth(MP.mpf(point))  # type: ignore[operator]
        errors.append(float(abs((MP.mpf(value) - true) / true)))
    return np.array(errors)


def worst_so_far(errors: np.ndarray, reach: int = 200) -> np.ndarray:
    """The worst error among the neighbours of each point: a point may have been lucky."""
    padded = np.pad(errors, reach, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)


def hazard(z: np.ndarray) -> np.ndarray:
    """Density divided by tail."""
    return np.exp(-z * z / 2 - special.log_ndtr(-z)) / math.sqrt(2 * math.pi)


def test_error_of_the_normal_tail_is_within_the_widening() -> None:
    """Ten times the measured error of a tail, plus the rounding of its argument, stays within the widening.

    Subtraction, scale and division each move z by half an epsilon, 1.5 in all; the tail then moves by z * hazard(z)
    times that. Widening itself rounds twice. In the larger side, 1 - tail, the tail's error weighs tail / (1 - tail).
    """
    z = np.sort(np.concatenate([np.logspace(-12, -2, 200), np.linspace(0.0, 37.5, 2500), np.linspace(0.0, 3.0, 2500)]))
    measured = worst_so_far(library_error(upper_tail, oracle.gaussian_tail, z))
    needed = 10 * measured + 1.5 * EPSILON * z * hazard(z)
    allowed = TAIL_ERROR + TAIL_ERROR_GROWTH * z * z
    assert (needed + EPSILON <= allowed).all(), f"{((needed + EPSILON) / allowed).max():.2f} of what is allowed"
    odds = special.ndtr(-z) / special.ndtr(z)
    assert (needed * odds + EPSILON <= TAIL_ERROR).all()


def test_error_of_exp_and_expm1_is_within_the_widening() -> None:
    """Ten times the measured errors of exp and expm1, plus 1.5 epsilons per unit of z, stay within the widening."""
    z = np.sort(np.concatenate([np.linspace(0, 708, 2000), np.logspace(-300, 0, 500)]))
    measured = worst_so_far(library_error(np.exp, MP.exp, -z))
    measured_one = library_error(np.expm1, MP.expm1, -np.concatenate([z[z > 0], np.linspace(0.01, 3, 1000)])).max()
    needed = 10 * (measured + measured_one) + EPSILON * (1.5 * z + 1.5 + 2)
    assert (needed <= TAIL_ERROR + TAIL_ERROR_GROWTH * z).all()
    # the larger side, 1 - exp(-z) / 2: the error of the smaller one weighs exp(-z) / (2 - exp(-z))
    assert (needed * np.exp(-z) / (2 - np.exp(-z)) + EPSILON <= TAIL_ERROR).all()


def test_error_of_the_quantile_is_within_the_radius_error() -> None:
    """Ten times its measured error, plus the product and the subtraction, stays within RADIUS_ERROR, also of masses
    that no double can hold."""
    near_half, near_ends = 0.5 - np.logspace(-15, -2, 50), [0.0749, 0.0750001, math.exp(-25), math.exp(-25.0001)]
    masses = np.concatenate([np.linspace(1e-3, 0.49, 1000), np.logspace(-300, -2, 1000), near_half, near_ends])
    logs = -np.concatenate([np.linspace(600, 5000, 300), np.logspace(math.log10(5000), 7, 300), [728.99, 729.01]])
    of_masses = zip(map(MP.mpf, masses.tolist()), upper_quantile(masses, np.log(masses)).tolist(), strict=True)
    of_logs = zip(map(MP.exp, map(MP.mpf, logs.tolist())), upper_quantile(np.exp(logs), logs).tolist(), strict=True)
    needed = []
    for mass, z in itertools.chain(of_masses, of_logs):
        error = abs(MP.mpf(z) - oracle.true_radius(Gaussian(1.0), mass))
        needed.append(float(10 * error + 2 * EPSILON * z) / (1 + z))
    assert max(needed) <= RADIUS_ERROR
    assert upper_quantile(np.array([0.0]), np.array([-math.inf])).tolist() == [math.inf]


def test_error_of_log_is_within_the_radius_error() -> None:
    """Ten times the measured error of log, plus the product and the subtraction, stays within RADIUS_ERROR."""
    masses = np.concatenate([np.logspace(-307, -0.01, 2500), 1 - np.logspace(-15, -2, 300)])
    for mass, value in zip(masses.tolist(), (-np.log(masses)).tolist(), strict=True):
        error = abs(MP.mpf(value) + MP.log(MP.mpf(mass)))
        assert float(10 * error + 1.5 * EPSILON * value) <= RADIUS_ERROR * (1 + value)


def test_exp_upward_is_an_upper_bound() -> None:
    """A mass from its logarithm is never below the true one, 0 only for -inf, and 1 at most."""
    logs = np.concatenate([-np.logspace(-16, 2.85, 2000), [0.0, 1e-12]])
    for log, mass in zip(logs.tolist(), exp_upward(logs).tolist(), strict=True):
        truth = min(MP.exp(MP.mpf(log)), 1)
        assert truth <= mass <= min(truth * (1 + 16 * EPSILON), 1)
    assert exp_upward([-math.inf, -1e5]).tolist() == [0.0, TINY]


# --- radius ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("magnitude", [0.25, 1.0, 1e-3, 123.4])
def test_radius_is_a_tight_lower_bound(kind: str, magnitude: float) -> None:
    """The radius of a mass never exceeds the true one and is closer than 1e-12 of the radius and the scale."""
    noise = NOISES[kind](magnitude)
    masses = np.concatenate([np.logspace(-300, -1, 300), np.linspace(0.1, 0.5, 200), [0.5 - 1e-15, 0.5 - 2**-54]])
    for mass, radius in zip(masses.tolist(), noise.radius(masses).tolist(), strict=True):
        truth = exact(oracle.true_radius(noise, Fraction(mass) if kind == "uniform" else MP.mpf(mass)))
        assert 0 <= radius <= truth
        assert truth - radius <= 1e-12 * max(radius, magnitude)


@pytest.mark.parametrize("kind", KINDS)
def test_radius_of_a_logarithm_is_a_tight_lower_bound(kind: str) -> None:
    """Radii of masses given by their logarithm are tight lower bounds, also of masses that no double can hold."""
    noise = NOISES[kind](0.25)
    logs = -np.concatenate([np.linspace(0.694, 20, 100), np.linspace(20, 2000, 200), [4999.0, 5001.0, 2e4, 1e6]])
    for log, radius in zip(logs.tolist(), noise.radius_of_log(logs).tolist(), strict=True):
        mass = MP.exp(MP.mpf(log))
        truth = exact(oracle.true_radius(noise, mass))
        assert truth * (1 - 1e-9) - 1e-12 <= radius <= truth
    assert noise.radius_of_log([-math.inf, 0.0]).tolist() == [0.25 * noise.support, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_radius_at_the_ends(kind: str) -> None:
    """A mass of 1/2 or more certifies nothing; a mass of 0 certifies all that the noise can."""
    noise = NOISES[kind](0.3)
    assert noise.radius([0.5, 0.7, 1.0]).tolist() == [0.0, 0.0, 0.0]
    assert noise.radius(0.0) == 0.3 * noise.support


@pytest.mark.parametrize("kind", KINDS)
def test_failure_at_inverts_radius(kind: str) -> None:
    """`failure_at` gives back the mass whose radius was taken."""
    noise = NOISES[kind](2.5)
    masses = np.array([0.49, 0.3, 0.01, 1e-4])
    np.testing.assert_allclose(noise.failure_at(noise.radius(masses)), masses, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_cdf_agrees_with_the_oracle(kind: str) -> None:
    """The nearest cdf agrees with the exact one in both tails."""
    noise = NOISES[kind](1.0)
    z = np.linspace(-30, 30, 121)
    truth = [float(exact(oracle.cell_probabilities(noise, 0.0, [value])[0])) for value in z.tolist()]
    np.testing.assert_allclose(noise.cdf(z), truth, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_follow_the_cells(kind: str) -> None:
    """Sampled noise falls into each cell as often as its probability says, in the feature's own unit."""
    noise = NOISES[kind](0.5, (1.0, 4.0))
    size, edges = 200_000, np.array([-1.0, 0.2, 2.0])
    draws = noise.sample([[0.3, 0.3]], size, rng=7)
    assert draws.shape == (size, 1, 2)
    for feature in (0, 1):
        cells = np.searchsorted(edges, draws[:, 0, feature], side="right")
        counts = np.bincount(cells, minlength=4)
        truth = np.array([float(exact(p)) for p in oracle.cell_probabilities(noise, 0.3, edges, feature)])
        assert (np.abs(counts - size * truth) <= 6 * np.sqrt(size * truth * (1 - truth)) + 1).all()


def test_samples_repeat_with_a_seed() -> None:
    """The same seed draws the same noise."""
    first, second = (Gaussian(1.0).sample([[0.0]], 5, rng=3) for _ in range(2))
    assert (first == second).all()


# --- objects ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_a_value(kind: str) -> None:
    """Noises compare and hash by value, read back from their text and take other units."""
    noise = NOISES[kind](0.25)
    assert noise == NOISES[kind](np.float64(0.25)) == parse_noise(str(noise)) == as_noise(f"{kind}:0.25")
    assert hash(noise) == hash(NOISES[kind](0.25))
    assert noise.with_units([1, 2]).units == (1.0, 2.0)
    assert noise.with_units([1, 2]) != noise == noise.with_units([1, 2]).with_units(None)


def test_norms() -> None:
    """Gaussian noise certifies l2 balls, uniform and Laplace noise l1 balls."""
    norms = {kind: NOISES[kind].norm for kind in KINDS}
    assert norms == {**norms, "gaussian": 2, "laplace": 1, "uniform": 1}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Gaussian(0.0), ValueError, ["`sigma`", "positive", "0.0"]),
        (lambda: Gaussian(-1.0), ValueError, ["`sigma`", "positive", "-1.0"]),
        (lambda: Uniform(0), ValueError, ["`half_width`", "positive", "0"]),
        (lambda: Uniform(math.inf), ValueError, ["`half_width`", "finite", "inf"]),
        (lambda: Laplace(math.nan), ValueError, ["`scale`", "finite", "nan"]),
        (lambda: Laplace("1"), TypeError, ["`scale`", "positive number", "'1'"]),  # type: ignore[arg-type]
        (lambda: Gaussian(True), TypeError, ["`sigma`", "positive number", "True"]),
        (lambda: Gaussian(1.0, (1.0, 0.0)), ValueError, ["`units`", "positive", "0.0"]),
        (lambda: Gaussian(1.0, (1.0, math.nan)), ValueError, ["`units`", "finite", "nan"]),
        (lambda: Gaussian(1e-200, (1e-200,)), ValueError, ["`units`", "sigma"]),
        (lambda: Uniform(1e200, (1e200,)), ValueError, ["`units`", "half_width"]),
        (lambda: parse_noise("cauchy:1"), ValueError, ["cauchy", "gaussian", "uniform", "laplace"]),
        (lambda: parse_noise("gaussian"), ValueError, ["gaussian", "number"]),
        (lambda: parse_noise("gaussian:wide"), ValueError, ["gaussian:wide", "number"]),
        (lambda: parse_noise("gaussian:-1"), ValueError, ["`sigma`", "positive", "-1"]),
        (lambda: as_noise([0.25]), TypeError, ["`noise`", "Gaussian(0.25)", "[0.25]"]),  # type: ignore[arg-type]
    ],
)
def test_bad_noise(make: object, error: type[Exception], words: list[str]) -> None:
    """What is not a noise is refused in words that name the parameter, the rule and what was given."""
    with pytest.raises(error) as caught:
        make()  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", sorted(NOISES))
@pytest.mark.parametrize("magnitude", [1e-3, 0.25, 40.0])
def test_the_margin_at_ties_keeps_the_failure_mass_from_one_half(kind: str, magnitude: float) -> None:
    """Given up at the edge of the ball, it leaves more than the band between the failure mass and 1/2."""
    noise = NOISES[kind](magnitude)  # type: ignore[call-arg]
    for band in (1e-3, 1e-6, 1e-9):
        assert 0.5 - float(noise.failure_at(noise.tie_margin(band))) > band


@pytest.mark.parametrize("kind", list(NOISES))
def test_rough_choices_are_those_of_the_distribution(kind: str) -> None:
    """Without SciPy as with it: where knots are dense, and how far a noise is felt."""
    noise = NOISES[kind](0.5)
    distances = np.concatenate([np.arange(0.0, 64.0, 0.25), 2.0 ** np.arange(8.0, 1024.0, 50.0)])
    np.testing.assert_allclose(noise.share_beyond(distances), noise.cdf(-distances), rtol=1e-11, atol=1e-300)
    far = distances[np.asarray(noise.cdf(-distances)) <= 2.0**-60]
    assert 0 <= noise.reach - far[0] < 1


def test_none_is_not_given_and_the_word_is_no_noise() -> None:
    """None takes the default of whoever asks, "none" is no noise, all else is read as a noise."""
    assert resolve_noise(None) is None
    assert resolve_noise(None, Uniform(2.0)) == Uniform(2.0)
    assert resolve_noise("none", Uniform(2.0)) is None
    assert resolve_noise(0.25, Uniform(2.0), norm=1) == Laplace(0.25)
    assert resolve_noise(0.25, norm=1, like=Uniform(2.0)) == Uniform(0.25)


@pytest.mark.parametrize("noise", [None, "none"])
def test_a_distribution_of_scores_needs_a_noise(noise: str | None) -> None:
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    with pytest.raises(ValueError, match="`distribution` needs a noise"):
        distribution(model, [[0.0]], noise)  # type: ignore[arg-type]
