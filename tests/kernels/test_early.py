"""Early versions compute what the compiled loops compute, to the last bit."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, StepFunction, Threat, certify
from derand.kernels import compiling
from derand.kernels.cells.normal import Widening, bound_cells, bound_sides, upper_tail
from derand.kernels.worst_case import pieces_in_numpy
from derand.kernels.worst_case.curves import Curves
from derand.kernels.worst_case.envelopes import tabulate_envelopes
from derand.model import TreeTerm
from derand.noise import NOISES
from tests.kernels.calls import failures
from tests.kernels.worst_case.test_envelopes import draw_stretches, trace

WIDENING = Widening(2.0**-45, 2.0**-49, 2.0**-1022)


def both_ways(monkeypatch: pytest.MonkeyPatch, compute: Any) -> tuple[Any, Any]:
    """What is computed without a compiler, and with it."""
    results = []
    for budget in (2**62, 0):
        monkeypatch.setattr(compiling.EARLY, "left", budget)
        results.append(compute())
    return results[0], results[1]


def draw_model(rng: np.random.Generator, n_terms: int, most: int = 50) -> AdditiveEnsemble:
    edges = [np.unique(rng.normal(size=rng.integers(1, 8))) for _ in range(n_terms)]
    terms = [StepFunction(i, own, rng.integers(0, most, own.size + 1)) for i, own in enumerate(edges)]
    return AdditiveEnsemble(terms, most // 2 * n_terms, n_terms)


def _name(loop: compiling.Loop) -> str:
    return f"{loop.__module__}.{loop.__name__}"


def test_every_early_version_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each registered pair on the arguments of real calls: what is returned and what is written."""
    seen, entries = set[str](), compiling.Loop.__call__

    def call(loop: compiling.Loop, *arguments: Any) -> Any:
        if not is_paired(loop):
            return entries(loop, *arguments)
        copies = copy.deepcopy(arguments)
        compiled = loop.entry(*copies)
        early = entries(loop, *arguments)
        seen.add(_name(loop))
        for one, other in zip(walk_arrays((early, arguments)), walk_arrays((compiled, copies)), strict=True):
            assert one.tobytes() == other.tobytes(), _name(loop)
        return early

    monkeypatch.setattr(compiling.Loop, "__call__", call)
    monkeypatch.setattr(compiling.EARLY, "left", 2**62)
    rng = np.random.default_rng(2)
    for most in (2, 50):
        for n_cells in (1, 6):
            edges = [np.unique(rng.normal(size=n_cells)) for _ in range(6)]
            terms = [StepFunction(i, own, rng.integers(0, most, own.size + 1)) for i, own in enumerate(edges)]
            threshold = int(sum(term.scores.mean() for term in terms))
            model, rows = AdditiveEnsemble(terms, threshold, 6), rng.normal(size=(4, 6))
            certify(model, rows, "gaussian:0.5")
            for norm in (0, 1, 2, np.inf):
                certify(model, rows, "gaussian:0.5", rule="mean", threat=Threat(norm=norm))
            limits: dict[int | str, Any] = dict.fromkeys(range(6), 0.3)
            certify(model, rows, "gaussian:0.5", rule="mean", threat=Threat(norm=2, limits=limits))
    TreeTerm([0], [0], [0.0], [-1], [-2], [-1, 1], [True]).score_rows(rows)
    upper_tail(np.abs(rows).ravel())
    bound_sides(rows, np.zeros(6), np.ones(6), WIDENING)
    assert seen == {_name(loop) for loop in compiling.LOOPS if is_paired(loop)}


def is_paired(loop: compiling.Loop) -> bool:
    return loop.numbers is not None or loop.early is not loop.py_func


def walk_arrays(values: Any) -> Iterator[np.ndarray]:
    """All numbers and arrays in tuples of tuples."""
    if isinstance(values, tuple):
        for value in values:
            yield from walk_arrays(value)
    elif values is not None:
        yield np.asarray(values)


def test_tails_and_cells_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow cells, wide ones, cells astride and far out; next to each other and alone."""
    rng = np.random.default_rng(0)
    starts = np.array([0, 1, 4, 5, 25])
    edges = np.concatenate([np.sort(rng.normal(size=n) * rng.choice([0.01, 1.0, 30.0])) for n in np.diff(starts)])
    x, scales = (
        rng.normal(size=(40, 25)) * 3,
        rng.choice([0.1, 1.0], 4)[np.searchsorted(starts, np.arange(25), "right") - 1],
    )
    for compute in (
        lambda: upper_tail(np.abs(x).ravel()),
        lambda: bound_sides(x, edges, scales, WIDENING),
        lambda: bound_cells(x, edges, scales, starts, WIDENING),
    ):
        early, compiled = both_ways(monkeypatch, compute)
        assert early.tobytes() == compiled.tobytes()


@pytest.mark.parametrize("noise", ["gaussian:0.5", "laplace:0.3", "uniform:1"])
@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_certificates_are_the_same(monkeypatch: pytest.MonkeyPatch, noise: str, rule: str) -> None:
    """Few terms and many, near rows and far ones, all norms, with limits and without."""
    rng, no_limits = np.random.default_rng(1), dict[int | str, Any]()
    for n_terms, spread in ((5, 1.0), (12, 20.0)):
        model, rows = draw_model(rng, n_terms), rng.normal(size=(6, n_terms)) * spread
        threats = [Threat(norm=norm) for norm in (0, 1, 2, np.inf)]
        threats.append(Threat(norm=2, limits=no_limits | dict.fromkeys(range(n_terms), 0.3)))
        for threat in threats:
            compute = partial(certify, rule=rule, threat=threat, backend="numba")
            early, compiled = both_ways(monkeypatch, partial(_call_on_copy, compute, model, rows, noise))
            assert early.radius.tobytes() == compiled.radius.tobytes()
            assert (early.label == compiled.label).all()
            assert threat.norm == 0 or (early.radius > 0).any()


def _call_on_copy(compute: Any, model: AdditiveEnsemble, rows: np.ndarray, noise: str) -> Any:
    """For another model that is the same, of which no table is kept."""
    return compute(AdditiveEnsemble(model.terms, model.threshold, model.n_features), rows, noise)


@pytest.mark.parametrize("n_cells", [2, 4])
def test_masses_are_the_same(monkeypatch: pytest.MonkeyPatch, n_cells: int) -> None:
    """Of stumps and of terms of several cells, some of equal score, some impossible, deep in the tails and at ties."""
    rng = np.random.default_rng(4)
    starts = n_cells * np.arange(10)
    scores = rng.integers(1, 12, starts[-1])
    scores[starts[:-1]] = 0
    table = rng.random((12, starts[-1])) ** rng.choice([1, 40], (12, 1)) * (rng.random((12, starts[-1])) > 0.1)
    table[:, starts[:-1]] += 1e-3
    by_term = table.reshape(12, 9, n_cells)
    table = (by_term / by_term.sum(axis=2, keepdims=True)).reshape(12, -1)
    thresholds = rng.integers(0, 60, 12)
    early, compiled = both_ways(monkeypatch, partial(failures, "numba", table, starts, scores, thresholds))
    for one, other in zip(early, compiled, strict=True):
        assert one.tobytes() == other.tobytes()
    assert early.proven.any()
    assert not early.proven.all()


def test_work_ends_the_budget() -> None:
    """However small calls are, many of them are compiled; warming up compiles from the start."""
    budget = compiling.EarlyBudget()
    assert budget.spend(10)
    assert not budget.spend(budget.NUMBERS)
    assert not budget.spend(1)
    budget = compiling.EarlyBudget()
    budget.end()
    assert not budget.spend(0)


@pytest.mark.parametrize("noise", ["gaussian:0.5", "gaussian:0.02", "laplace:0.3", "uniform:1"])
def test_plain_radii_are_hardly_smaller(noise: str) -> None:
    """Than those of the default backend, by the paper's proof, deep in the tails, too; labels are the same."""
    rng = np.random.default_rng(3)
    for n_terms in (1, 6, 30):
        model, rows = draw_model(rng, n_terms), rng.normal(size=(40, n_terms)) * 3
        plain, default = (certify(model, rows, noise, proof="paper", backend=name) for name in ("numpy", "numba"))
        assert (plain.label == default.label).all()
        assert (plain.radius >= default.radius * (1 - 1e-9)).all()


def draw_spans(rng: np.random.Generator, curves: Curves) -> np.ndarray:
    """Some knots of each curve, of some none."""
    counts = np.diff(curves.starts)
    first = curves.starts[:-1] + rng.integers(0, counts)
    last = np.minimum(first + rng.integers(-1, counts), curves.starts[1:] - 1)
    return np.stack([first, last], axis=1)


@pytest.mark.parametrize("noise", list(NOISES))
@pytest.mark.parametrize("power", [1, 2])
def test_tables_of_multipliers_are_the_same(monkeypatch: pytest.MonkeyPatch, noise: str, power: int) -> None:
    """Of near and far edges, in large numbers and small units, at multipliers from next to nothing to very much."""
    rng = np.random.default_rng(power)
    for centre, scale in ((0.0, 1.0), (2000.0, 0.1), (1e8, 1e-3), (-1e-3, 1e-9)):
        width = scale * rng.choice([0.03, 0.5, 4.0])
        units = scale * rng.choice([0.2, 1.0, 5.0], 3)
        curves = trace(draw_stretches(rng, centre, scale), NOISES[noise](width), units)
        top = rng.choice([1e-2, 1.0, 1e4]) / (width / scale) ** power
        multipliers = top * float(rng.choice([1.3, 8.0, 1e3])) ** -np.arange(8.0)
        for spans in (None, draw_spans(rng, curves)):
            early, compiled = both_ways(monkeypatch, partial(tabulate_envelopes, curves, multipliers, power, spans))
            assert early.tobytes() == compiled.tobytes()
            assert np.isfinite(early).any() or (spans is not None and (spans[:, 0] > spans[:, 1]).all())


@pytest.mark.parametrize(("wide", "block"), [(1, 8192), (10**9, 8192), (12, 1)])
def test_how_searches_are_cut_changes_no_table(monkeypatch: pytest.MonkeyPatch, wide: int, block: int) -> None:
    """Made narrower first or not, many at a time or few."""
    rng, multipliers = np.random.default_rng(5), 10.0 ** np.linspace(-3, 4, 8)
    curves = trace(draw_stretches(rng), NOISES["gaussian"](0.4), np.array([1.0, 0.2, 5.0]))
    monkeypatch.setattr(compiling.EARLY, "left", 2**62)
    usual = tabulate_envelopes(curves, multipliers, 2)
    monkeypatch.setattr(pieces_in_numpy, "WIDE", wide)
    monkeypatch.setattr(pieces_in_numpy, "BLOCK", block)
    assert tabulate_envelopes(curves, multipliers, 2).tobytes() == usual.tobytes()
