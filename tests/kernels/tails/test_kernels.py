"""Kernels: every backend adds up exactly the outcomes that are asked for, within its stated rounding bound."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand.kernels import BACKENDS, DEFAULT_BACKEND, FLOOR, has_gpu, load_backend, rounding_bound
from tests.kernels.calls import failures, laws, tails
from tests.oracle import MP

probabilities = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0, 1e-16, 1e-150, 1e-305, 2.0**-1022])


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row's cell probabilities (upper bounds: a term's add up to 1 or more), starts and reduced scores."""
    cells: list[float] = []
    scores: list[int] = []
    starts = [0]
    for size in draw(st.lists(st.integers(1, 5), max_size=5)):
        row = draw(st.lists(probabilities, min_size=size, max_size=size))
        chosen = draw(st.integers(0, size - 1))
        rest = 1.0 - math.fsum(row[:chosen] + row[chosen + 1 :])
        row[chosen] = max(row[chosen], math.nextafter(rest, 2.0) if rest > 0 else 0.0)
        drawn = np.array(draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)))
        cells += row
        scores += (drawn - drawn.min()).tolist()
        starts.append(len(cells))
    return np.array([cells]), np.array(starts, dtype=np.int64), np.array(scores, dtype=np.int64)


def exact_law(table: np.ndarray, starts: np.ndarray, scores: np.ndarray) -> dict[int, Fraction]:
    """All cells enumerated."""
    law: dict[int, Fraction] = {}
    terms = [range(first, stop) for first, stop in itertools.pairwise(starts.tolist())]
    for outcome in itertools.product(*terms):
        mass = Fraction(1)
        for cell in outcome:
            mass *= Fraction(table[0, cell])
        score = sum(int(scores[cell]) for cell in outcome)
        law[score] = law.get(score, Fraction(0)) + mass
    return law


def assert_bounded(mass: float, truth: Fraction, possible: bool, n_cells: int) -> None:
    """Within the contract: relative, apart from FLOOR, and 0 exactly where nothing is possible."""
    error = Fraction(rounding_bound(n_cells))
    assert (mass > 0) == possible
    if possible:
        assert truth * (1 - error) <= mass <= truth * (1 + error) + Fraction(2 * FLOOR)
        assert mass * (1 + rounding_bound(n_cells)) >= truth  # what `certify` makes of it is an upper bound


@given(problem=tables(), thresholds=st.lists(st.integers(-2, 32), min_size=1, max_size=3))
def test_tails_agree_with_enumeration(
    backend: str, problem: tuple[np.ndarray, np.ndarray, np.ndarray], thresholds: list[int]
) -> None:
    """Both tails are the exact sums within the rounding bound, 0 if and only if no possible outcome lies there."""
    law = exact_law(*problem)
    cuts = np.array([thresholds], dtype=np.int64)
    low, high = tails(backend, *problem, cuts, cuts[:, ::-1].copy())
    assert low.shape == high.shape == cuts.shape
    for cut, below, above in zip(thresholds, low[0].tolist(), high[0, ::-1].tolist(), strict=True):
        inside = [mass for score, mass in law.items() if score <= cut]
        outside = [mass for score, mass in law.items() if score > cut]
        assert_bounded(below, sum(inside, Fraction(0)), any(inside), problem[2].size)
        assert_bounded(above, sum(outside, Fraction(0)), any(outside), problem[2].size)


@given(problem=tables(), threshold=st.integers(-2, 32))
def test_failures_agree_with_enumeration(
    backend: str, problem: tuple[np.ndarray, np.ndarray, np.ndarray], threshold: int
) -> None:
    """The logarithm of the failing mass bounds the exact one from above, closely where no cell is extreme."""
    law = exact_law(*problem)
    below = sum((mass for score, mass in law.items() if score <= threshold), Fraction(0))
    above = sum((mass for score, mass in law.items() if score > threshold), Fraction(0))
    (proven,), (log_mass,), _ = failures(backend, *problem, np.array([threshold]))
    assert 2 * below < 1 if proven else 2 * below > 1 - Fraction(1, 10**10)
    exact = below if proven else above
    if not exact:
        assert log_mass == -math.inf
        return
    truth = MP.log(exact.numerator) - MP.log(exact.denominator)
    assert truth <= log_mass < math.inf
    if problem[0].min(initial=1.0, where=problem[0] > 0) > 1e-17:
        assert log_mass - truth <= 1e-10


def exact_tails(moves: np.ndarray, stays: np.ndarray, shifts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """P(S <= s) and P(S > s) of two-cell terms for every s, with 60 digits: shape (2, largest + 1)."""
    law = np.array([MP.mpf(1)], dtype=object)
    for move, stay, shift in zip(moves.tolist(), stays.tolist(), shifts.tolist(), strict=True):
        grown = np.array([MP.mpf(0)] * (law.size + shift), dtype=object)
        grown[: law.size] += law * MP.mpf(stay)
        grown[shift:] += law * MP.mpf(move)
        law = grown
    upward, downward = np.cumsum(law), np.cumsum(law[::-1])[::-1]
    return np.stack([upward, np.append(downward[1:], MP.mpf(0))])[:, rows]


@pytest.mark.parametrize("n_terms", [63, 64, 150])
@pytest.mark.parametrize("chance", [0.5, 1e-3, 1e-9])
def test_many_stumps_agree_with_the_exact_law(n_terms: int, chance: float, backend: str) -> None:
    """Many terms of two cells, at thresholds from one end of the law to the other: the bound is sound and tight."""
    rng = np.random.default_rng(n_terms)
    moves = np.clip(chance * 10.0 ** rng.normal(0, 0.5, n_terms), 1e-300, 0.999)
    moves = np.where(rng.random(n_terms) < 0.3, 1 - moves, moves)
    stays = np.nextafter(1 - moves, 2.0)
    shifts = rng.integers(1, 12, n_terms)
    flip = rng.random(n_terms) < 0.5  # the higher score may be in the left cell
    table = np.stack([np.where(flip, moves, stays), np.where(flip, stays, moves)], axis=1).reshape(1, -1)
    scores = np.stack([np.where(flip, shifts, 0), np.where(flip, 0, shifts)], axis=1).ravel()
    steps = np.array([0, 1, 2, 5, 20, 60, 150, 400])
    cuts = int(moves @ shifts) + np.unique([-steps, steps])
    cuts = cuts[(cuts >= 0) & (cuts < shifts.sum())]
    below, above = exact_tails(moves, stays, shifts, cuts)
    starts = np.arange(0, 2 * n_terms + 1, 2)
    proven, logs, _ = failures(backend, np.repeat(table, cuts.size, axis=0), starts, scores, cuts)
    for at in range(cuts.size):
        assert below[at] < 0.5 if proven[at] else below[at] > 0.5 - 1e-10
        excess = float(logs[at] - MP.log(below[at] if proven[at] else above[at]))
        assert 0 <= excess <= 1e-9


def test_failures_far_below_the_smallest_double(backend: str) -> None:
    """Masses of 1e-4000 keep their relative accuracy in the logarithm."""
    chance, count = 1e-150, 40
    table, starts, scores = np.tile([1.0, chance], (1, count)), np.arange(0, 2 * count + 1, 2), np.tile([0, 1], count)
    for least in (5, 27, 40):
        proven, log_mass, _ = failures(backend, table, starts, scores, np.array([least - 1]))
        exact = sum(MP.binomial(count, k) * MP.mpf(chance) ** k for k in range(least, count + 1))
        assert not proven[0]
        assert 0 <= log_mass[0] - MP.log(exact) <= 1e-10
        proven, mirrored, _ = failures(backend, table[:, ::-1].copy(), starts, scores, np.array([count - least]))
        assert proven[0]
        assert mirrored[0] == pytest.approx(log_mass[0], abs=1e-9)


@given(problem=tables())
def test_laws_agree_with_enumeration(backend: str, problem: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Each level of the law is the exact sum within the rounding bound."""
    law = exact_law(*problem)
    (computed,) = laws(backend, *problem)
    largest = sum(int(problem[2][first:stop].max()) for first, stop in itertools.pairwise(problem[1].tolist()))
    assert computed.shape == (largest + 1,)
    error = Fraction(rounding_bound(problem[2].size))
    for score, mass in enumerate(computed.tolist()):
        truth = law.get(score, Fraction(0))
        assert abs(mass - truth) <= truth * error + Fraction(FLOOR)


def test_rows_do_not_disturb_each_other(backend: str) -> None:
    """A row's masses are the same alone and among others."""
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.ones(4), size=(20, 3)).reshape(20, 12)
    table[::3, :3] = 0.0
    starts, scores = np.array([0, 4, 8, 12]), rng.integers(0, 9, 12)
    cuts = rng.integers(0, 20, (20, 2))
    together = tails(backend, table, starts, scores, cuts, cuts)
    together_failing = failures(backend, table, starts, scores, cuts[:, 0].copy())
    for row in range(20):
        alone = tails(backend, table[row : row + 1], starts, scores, cuts[row : row + 1], cuts[row : row + 1])
        for all_rows, one_row in zip(together, alone, strict=True):
            assert all_rows[row].tolist() == one_row[0].tolist()
        proven, log_mass, _ = failures(backend, table[row : row + 1], starts, scores, cuts[row : row + 1, 0].copy())
        assert (proven[0], log_mass[0]) == (together_failing[0][row], together_failing[1][row])


def test_no_rows_and_no_terms(backend: str) -> None:
    """No rows give no masses; no terms put all mass on score 0."""
    starts, scores = np.array([0, 2]), np.array([0, 1])
    nothing = np.empty((0, 1), dtype=np.int64)
    assert [part.shape for part in tails(backend, np.empty((0, 2)), starts, scores, nothing, nothing)] == [(0, 1)] * 2
    cuts = np.array([[-1, 0]])
    low, high = tails(backend, np.empty((1, 0)), np.array([0]), np.empty(0, dtype=np.int64), cuts, cuts)
    assert (low[0].tolist(), high[0].tolist()) == ([0.0, 1.0], [1.0, 0.0])
    assert laws(backend, np.empty((1, 0)), np.array([0]), np.empty(0, dtype=np.int64)).tolist() == [[1.0]]


def test_a_certain_outcome_is_a_shift(backend: str) -> None:
    """A term whose possible cells have one score moves the law and changes no mass."""
    table = np.array([[0.25, 0.75, 0.0, 0.5, 0.5]])
    starts, scores = np.array([0, 2, 5]), np.array([0, 3, 0, 7, 7])
    assert laws(backend, table, starts, scores)[0].nonzero()[0].tolist() == [7, 10]
    cuts = np.array([[6, 7, 9, 10]])
    low, high = tails(backend, table, starts, scores, cuts, cuts)
    assert (low[0].tolist(), high[0].tolist()) == ([0.0, 0.25, 0.25, 1.0], [1.0, 0.75, 0.75, 0.0])


def test_backends_agree_on_a_large_model() -> None:
    """On 60 terms with up to 300 cells all backends give the same masses within their bounds, deep in the tail too."""
    rng = np.random.default_rng(2)
    sizes = np.append(rng.integers(1, 8, 59), 300)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.integers(0, 40, starts[-1])
    table = rng.random((3, starts[-1])) ** 8
    for first, stop in itertools.pairwise(starts.tolist()):
        scores[first:stop] -= scores[first:stop].min()
        table[:, first:stop] /= table[:, first:stop].sum(axis=1, keepdims=True)
    cuts = np.array([[20, 300, 700, 1000, 1500]] * 3)
    names = [name for name in BACKENDS if name != "cuda" or has_gpu()]
    results = [tails(name, table, starts, scores, cuts, cuts) for name in names]
    assert results[0][0].min() < 1e-30
    assert results[0][0].max() > 0.1
    for other in results[1:]:
        np.testing.assert_allclose(other[0], results[0][0], rtol=2 * rounding_bound(int(starts[-1])), atol=2 * FLOOR)
        np.testing.assert_allclose(other[1], results[0][1], rtol=2 * rounding_bound(int(starts[-1])), atol=2 * FLOOR)


def test_masses_of_a_binomial_down_to_the_floor(backend: str) -> None:
    """k equal terms give binomial tails with full relative accuracy until FLOOR, and FLOOR below."""
    chance = 1e-10
    table = np.tile([1 - chance, chance], (1, 40))
    starts, scores = np.arange(0, 81, 2), np.tile([0, 1], 40)
    cuts = np.arange(40)[None]
    _, above = tails(backend, table, starts, scores, cuts, cuts)
    stay, move = Fraction(float(table[0, 0])), Fraction(float(table[0, 1]))
    pmf = [Fraction(1)]
    for _ in range(40):
        padded = [Fraction(0), *pmf, Fraction(0)]
        pmf = [move * padded[k] + stay * padded[k + 1] for k in range(len(padded) - 1)]
    for cut, mass in enumerate(above[0].tolist()):
        truth = sum(pmf[cut + 1 :])
        assert truth <= Fraction(mass) * (1 + Fraction(rounding_bound(80)))
        assert mass <= float(truth) * (1 + 2 * rounding_bound(80)) + 2 * FLOOR


def test_unknown_backend_is_refused() -> None:
    """The error names the parameter and the backends there are."""
    with pytest.raises(ValueError, match=r"`backend`.*numba.*numpy.*'cupy'"):
        load_backend("cupy")


def test_default_backend() -> None:
    """None is the default backend, which is one of the registered ones."""
    assert load_backend(None) is load_backend(DEFAULT_BACKEND)


def law_of_stumps(row: np.ndarray, scores: np.ndarray) -> dict[int, Any]:
    """The law of terms of two cells to 60 digits, term after term."""
    law = {0: MP.mpf(1)}
    for begin in range(0, row.size, 2):
        grown: dict[int, Any] = {}
        for score, mass in law.items():
            for cell in (begin, begin + 1):
                at = score + int(scores[cell])
                grown[at] = grown.get(at, MP.mpf(0)) + mass * MP.mpf(float(row[cell]))
        law = grown
    return law


@pytest.mark.parametrize("n_terms", [14, 70])
def test_stumps_of_extreme_probabilities(n_terms: int, backend: str) -> None:
    """Terms from even to all but certain, thresholds anywhere: the failing mass is never below the exact one."""
    rng = np.random.default_rng(n_terms)
    starts = np.arange(0, 2 * n_terms + 1, 2)
    for _ in range(20 if n_terms < 50 else 1):
        small = 10.0 ** -rng.choice([0.31, 1.0, 4.0, 9.0, 50.0, 300.0], size=n_terms) * rng.uniform(0.5, 1, n_terms)
        pairs = np.stack([small, 1.0 - small], axis=1)
        table = np.where(rng.integers(0, 2, size=(n_terms, 1)) == 1, pairs, pairs[:, ::-1]).reshape(1, -1)
        scores = (np.eye(2, dtype=np.int64)[rng.integers(0, 2, n_terms)] * rng.integers(1, 99, (n_terms, 1))).ravel()
        law = law_of_stumps(table[0], scores)
        threshold = int(rng.integers(0, scores.sum()))
        proven, log_failure, _ = failures(backend, table, starts, scores, np.array([threshold]))
        low = MP.fsum(mass for score, mass in law.items() if score <= threshold)
        high = MP.fsum(mass for score, mass in law.items() if score > threshold)
        assert proven[0] == (low < 0.5)
        exact = MP.log(low if proven[0] else high)
        assert exact <= log_failure[0]
        if exact > -600:
            assert log_failure[0] - exact < 1e-9


def test_a_row_whose_tilt_is_hard_to_find(backend: str) -> None:
    """Nearly certain terms make the tilted mean jump; weights and powers of two different tilts must never mix."""
    table = np.array(
        [
            [0.9999990231628985, 9.768371228036978e-07, 0.7855877148429274, 0.21441228515709418],
            [0.999999994757261, 5.2427603693213955e-09, 0.24933004427737268, 0.7506699557226488],
            [0.001128193493539597, 0.9988718065064818, 0.9999999967110907, 3.288930574374293e-09],
            [0.00026110485582254365, 0.9997388951441988, 6.285256245445728e-05, 0.9999371474375669],
            [0.000200471781755313, 0.999799528218266, 3.6121574963709046e-49, 1.0],
            [0.1542034677404593, 0.8457965322595622, 0.9751097844234956, 0.02489021557652588],
            [0.9999995943934629, 4.056065585058431e-07, 1.260277449991256e-05, 0.9999873972255214],
        ]
    ).reshape(1, -1)
    scores = np.array([0, 9, 22, 0, 0, 26, 39, 0, 46, 0, 0, 63, 92, 0, 0, 5, 22, 0, 0, 24, 0, 28, 41, 0, 0, 51, 0, 64])
    proven, log_failure, _ = failures(backend, table, np.arange(0, 29, 2), scores, np.array([266]))
    exact = MP.fsum(mass for score, mass in law_of_stumps(table[0], scores).items() if score > 266)
    assert not proven[0]
    assert math.exp(log_failure[0]) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("n_terms", [40, 700])
def test_many_terms_with_a_cell_next_to_underflow(n_terms: int, backend: str) -> None:
    """Terms whose cells are all below 1/2, one of them tiny: the product of their normalisers must not overflow."""
    row = np.array([0.2, 0.2, 0.2, 0.2, 0.2, 1e-300])
    table, starts = np.tile(row, (1, n_terms)), np.arange(0, 6 * n_terms + 1, 6)
    scores, cut = np.tile([0, 1, 2, 3, 4, 7], n_terms), np.array([int(1.8 * n_terms)])
    proven, log_mass, _ = failures(backend, table, starts, scores, cut)
    _, expected, _ = failures("numpy", table, starts, scores, cut)
    assert proven[0]
    assert log_mass[0] == pytest.approx(expected[0], abs=1e-9)


def test_masses_of_cells_far_out_are_not_lost_to_the_tilt() -> None:
    """Eight cells of exp(-690) each, some 37 scales of Gaussian noise away, all of which must come: exp(-5520)."""
    table = np.tile([math.exp(-690.0), 1.0], (1, 8))
    scores = np.tile([0, 1], 8)
    _, log_mass, _ = failures("numba", table, np.arange(0, 17, 2), scores, np.array([0]))
    assert 8 * -690.0 <= log_mass[0] < 8 * -690.0 + 1e-6
