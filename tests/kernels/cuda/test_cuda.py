"""The GPU backend: its own functions and paths are measured here; every other backend test runs on it as well.

Tests marked `gpu` are skipped where there is no GPU. The simulator of numba runs the same kernels, slowly, anywhere.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import special

from derand import AdditiveEnsemble, Gaussian, Noise, StepFunction, Threat, Uniform, certify, kernels
from derand._core.arrays import EPSILON, TINY
from derand.certificates import pack_terms
from derand.kernels import (
    DEFAULT_BACKEND,
    TAIL_ERROR,
    TAIL_ERROR_GROWTH,
    DeviceBackend,
    has_gpu,
    load_backend,
)
from derand.kernels.cuda import device as gpu_device
from derand.kernels.tails.costs import BIG_WORK, Work, suits_device
from derand.noise import NOISES
from tests import oracle
from tests.oracle import MP
from tests.strategies import scale_of

FUNCTIONS = ("erfc", "erf", "exp", "expm1", "cosh", "log")
ON_DEVICE = ["gaussian", "laplace", "uniform"]
"""Noises whose tables the device computes; any other's come from the host."""


@pytest.fixture
def gpu() -> Any:
    """The backend; skips where it cannot work."""
    if not has_gpu():
        pytest.skip("no CUDA device here")
    return load_backend("cuda")


# --- choosing the backend --------------------------------------------------------------------------------------


def test_without_a_gpu_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the parameter, what is missing, how to install it and how to go on without."""
    monkeypatch.setattr("numba.cuda.is_available", lambda: False)
    monkeypatch.delitem(sys.modules, "derand.kernels.cuda.backend", raising=False)
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    with pytest.raises(ValueError, match=r"`backend`.*'cuda'.*NVIDIA GPU.*numba-cuda.*backend='numba'") as error:
        certify(model, [[0.0]], "gaussian:0.25", backend="cuda")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (AttributeError("module 'numpy' has no attribute 'row_stack'"), True),
        (ImportError("no such module in a later numba-cuda"), False),
        (None, False),
    ],
)
def test_a_numpy_that_numba_cuda_cannot_compile_with_is_named(
    error: Exception | None, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the function is gone that numba-cuda asks for, the error says what to install; no version is looked at."""

    def load(name: str) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr("numba.cuda.is_available", lambda: True)
    monkeypatch.setattr(gpu_device, "import_module", load)
    monkeypatch.delattr(np, "row_stack", raising=False)
    explanation = gpu_device.explain_absence()
    assert (explanation is not None) == refused
    assert not refused or re.search(r"'row_stack'.*pip install 'numpy<2.5'.*backend='numba'", str(explanation))


def test_a_forked_copy_of_a_process_that_uses_the_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device belongs to the process that opened it: a copy is told so, and by itself goes to the CPU."""
    monkeypatch.setattr(gpu_device, "_owner", os.getpid() + 1)
    assert "forked" in str(gpu_device.explain_absence())
    assert load_backend(None, BIG) is load_backend(DEFAULT_BACKEND)


def make_work(n_rows: int, n_terms: int = 64, largest: float = 10.0) -> Work:
    return Work(n_rows, n_terms, 2 * n_terms, largest, 0.5 * largest * math.sqrt(n_terms), 2)


BIG = make_work(BIG_WORK // 128)


def test_big_work_goes_to_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name, small work and machines without a GPU get the default backend, big work the GPU's."""
    default, device = load_backend(DEFAULT_BACKEND), load_backend("numpy")
    monkeypatch.setitem(kernels.BACKENDS, "cuda", kernels.BACKENDS["numpy"])
    monkeypatch.setattr(kernels, "has_gpu", lambda: True)
    assert load_backend(None, make_work(BIG_WORK // 128 - 1)) is default
    assert load_backend(None, BIG) is device
    monkeypatch.setattr(kernels, "has_gpu", lambda: False)
    assert load_backend(None, BIG) is default


def test_scores_of_many_levels_stay_on_the_cpu() -> None:
    """A GPU builds laws of them, where the CPU inverts; more threads make the CPU's case stronger."""
    fine = make_work(10**6, 300, 10_000.0)
    assert suits_device(make_work(10**6, 300, 100.0))
    assert not suits_device(fine)
    assert suits_device(make_work(10**7, 14, 100.0))
    assert not suits_device(BIG._replace(n_threads=10_000))


# --- the simulator ---------------------------------------------------------------------------------------------

_SIMULATED = """
import numpy as np
from derand import AdditiveEnsemble, CategoryTable, StepFunction, certify, distribution
from derand.kernels.cuda import backend
from derand.kernels.cuda.device import Stream
steps = [StepFunction(0, [0.0, 0.1, 2.0], [0, 5, 2, 9]), StepFunction(1, [0.5], [3, 0]), StepFunction(2, [], [4])]
model = AdditiveEnsemble([*steps, CategoryTable(3, [0, 1], [1, 4], 0)], 10, 4)
rows = np.array([[0.05, 0.5, 0.0, 1.0], [2.5, -1.0, 0.0, 0.0]])
backend._BLOCK_NUMBERS = backend._FEW_ROWS = 1  # every row is a block, the streams take turns
cases = [("gaussian:0.3", 0, 4096), ("laplace:0.2", 1, 4096), ("uniform:0.4", 0, 3)]
for noise, l0, states in cases:
    backend._STATES_IN_SHARED = states  # with few of them, laws do not fit
    ours, plain = (certify(model, rows, noise, l0=l0, backend=name, n_jobs=1) for name in ("cuda", "numpy"))
    assert ours.label.tolist() == plain.label.tolist()
    np.testing.assert_allclose(ours.log_failure, plain.log_failure, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(ours.radius, plain.radius, rtol=1e-9, atol=1e-12)
backend.NOISES = frozenset()  # as for a noise that the device does not know: tables come from the host
for noise in ("gaussian:0.3",):
    ours, plain = (certify(model, rows, noise, l0=[0, 1], backend=name, n_jobs=1)[1] for name in ("cuda", "numpy"))
    np.testing.assert_allclose(ours.log_failure, plain.log_failure, rtol=1e-10, atol=1e-11)
ours, plain = (distribution(model, rows[:1], "gaussian:0.3", backend=name).pmf for name in ("cuda", "numpy"))
np.testing.assert_allclose(ours, plain, rtol=1e-14)
stream = Stream()  # tables that are computed and tables that are sent have one name, but not one memory
stream.reserve("table", (600,), np.float64)
assert stream.send("table", np.arange(3.0))[0].copy_to_host().tolist() == [0.0, 1.0, 2.0]
assert stream.reserve("table", (1, 2), np.float64).dtype == np.float64
print("agrees")
"""


_STUMPS = """
import numpy as np
from derand import AdditiveEnsemble, StepFunction, certify
from derand.kernels.cuda import blocks, settle
from derand.noise import as_noise
from tests import oracle

def draw(n_terms, largest):
    rng = np.random.default_rng(n_terms)
    scores = [(0, score) if rng.integers(2) else (score, 0) for score in rng.integers(1, largest + 1, n_terms)]
    steps = [StepFunction(at, [rng.uniform()], pair) for at, pair in enumerate(scores)]
    return AdditiveEnsemble(steps, sum(map(sum, scores)) // 2, n_terms), rng.uniform(size=(3, n_terms))

def compare(n_terms, largest, noise, n_rows, paths):
    model, rows = draw(n_terms, largest)
    ours = certify(model, rows[:n_rows], noise, backend="cuda", proof="paper")
    assert set(ours.path) == paths, ours.path
    for row, label, found in zip(rows, ours.label, ours.log_failure):
        law = oracle.numerical_law(model, row, as_noise(noise))
        mass = sum(p for s, p in law.items() if (s > model.threshold) != label)
        exact = float(oracle.MP.log(mass)) if mass else -np.inf
        slack = 1e-9 * max(1, abs(exact))
        assert found == exact or exact <= found + 1e-15 * abs(exact) <= exact + slack, (found, exact)

compare(5, 9, "uniform:0.4", 1, {"law"})
compare(7, 9, "gaussian:0.01", 3, {"law", "tilted"})  # one mass is too faint to be listed
blocks._BLOCK_NUMBERS, blocks._FEW_ROWS = 1, 1  # every row is a block, the streams take turns
settle._FIRST_STATES, settle._MORE_STATES = 8, 16  # laws outgrow them
compare(17, 3, "gaussian:0.3", 1, {"tilted"})
compare(100, 30, "gaussian:0.5", 1, {"inverted"})
print("agrees")
"""

_MEANS = """
import numpy as np
from derand import AdditiveEnsemble, StepFunction, certify
from derand.certificates.rules import mean_on_device as _mean_on_device
from derand.kernels.cuda import backend

_mean_on_device._HOST_ROWS = 2
rng = np.random.default_rng(0)
steps = [StepFunction(at, [0.3, 0.6][: 1 + at % 2], rng.permutation(3)[: 2 + at % 2]) for at in range(10)]
model, rows = AdditiveEnsemble(steps, 9, 10), rng.uniform(size=(5, 10))
seen = []
bound = backend.bound_means
backend.bound_means = lambda *asked, **how: seen.append(bound(*asked, **how)) or seen[-1]
for noise in ("gaussian:0.3", "uniform:0.4"):
    ours = [certify(model, rows, noise, rule="mean", backend="cuda") for _ in range(2)]
    assert (seen[-1][0] >= 0).any()  # tables that the first call left are used by the second
    plain = certify(model, rows, noise, rule="mean", backend="numba")
    for one in ours:
        assert one.label.tolist() == plain.label.tolist()
        np.testing.assert_allclose(one.radius, plain.radius, rtol=1e-5)
for rule in ("vote", "mean"):
    for value, column in ((np.nan, 3), (np.inf, 3)):
        gapped = rows.copy()
        gapped[1, column] = value
        try:
            certify(model, gapped, "gaussian:0.3", rule=rule, backend="cuda", proof="best")
        except ValueError as error:
            assert "column 3 (1 rows)" in str(error)
        else:
            raise AssertionError
print("agrees")
"""

_MEASURED = """
import itertools
from numba import cuda
from derand import AdditiveEnsemble, certify
from derand.kernels.cuda.device import watch_device, open_streams

clock = itertools.count()  # as many ticks as it is asked

class Event:  # the simulator's own knows no time; as it waits for everything, the order of events will do
    def record(self, stream):
        self.at = next(clock)

    def elapsed_time(self, later):
        return later.at - self.at

cuda.event = Event
model = AdditiveEnsemble.from_stumps([0, 1], [0.5, 0.2], [0.1, 0.7], [0.9, 0.3], n_features=2)
rows = [[0.0, 0.4], [2.0, 1.0]]
plain = certify(model, rows, "gaussian:0.25", backend="cuda")
start = next(clock)
with watch_device() as device:
    measured = certify(model, rows, "gaussian:0.25", backend="cuda")
whole = next(clock) - start
assert measured.log_failure.tolist() == plain.log_failure.tolist()
assert 0 < device.transfer_ms and 0 < device.kernel_ms
assert device.kernel_ms + device.transfer_ms < whole
assert all(stream.watch is None for stream in open_streams())
print("agrees")
"""


def simulate(script: str) -> None:
    """Run a script with numba's simulator in place of a GPU; its last line says that all held."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "agrees\n", run.stderr


def test_the_simulated_kernels_agree_with_the_plain_backend() -> None:
    """Run by numba's simulator, certificates and laws are those of the plain backend, streamed and in either memory."""
    simulate(_SIMULATED)


def test_simulated_stumps_are_tight_upper_bounds() -> None:
    """Listed, by laws in either memory and by inversion: no mass is below the exact one or above it by 1e-9."""
    simulate(_STUMPS)


@pytest.mark.long
def test_the_simulated_mean_rule_agrees_with_the_default_backend() -> None:
    """By tables on the device labels are the same and radii equal but for rounding; NaN and infinity are refused."""
    simulate(_MEANS)


_SINES = """
import numpy as np
from derand.kernels.cuda.fourier import _square_of_sine
worst, rng = 0.0, np.random.default_rng(0)
for period in (64, 65, 1237, 65535, 1000003):
    largest = min(2**24 // (period // 2 + 1), 2000)
    turns = rng.integers(0, period // 2 + 1, 2000) * rng.integers(1, largest + 1, 2000)
    inverse, length = np.float32(1 / period), np.float32(period)
    found = [_square_of_sine(np.float32(turn), inverse, length) for turn in turns]
    worst = max(worst, np.abs(found - np.sin(np.pi * (turns % period) / period) ** 2).max())
assert 1e-7 < worst < 5e-7, worst
print("agrees")
"""


def test_squares_of_sines_in_single_precision_are_as_good_as_the_bound_says() -> None:
    """README.md, step 8, counts on 5e-7 for whole numbers of turns below 2**24."""
    simulate(_SINES)


def test_measuring_the_device_changes_no_result() -> None:
    """Masses are the same; kernels and copies, which follow each other in the simulator, take less than the whole."""
    simulate(_MEASURED)


@pytest.mark.parametrize(
    ("spans", "milliseconds"),
    [([], 0.0), ([(1.0, 2.5)], 1.5), ([(4.0, 5.0), (0.0, 2.0), (1.0, 3.0), (1.5, 1.75)], 4.0)],
)
def test_time_in_which_spans_overlap_counts_once(spans: list[tuple[float, float]], milliseconds: float) -> None:
    """Two streams may work at the same time: what they cover together is counted, gaps are not."""
    assert gpu_device.cover(spans) == milliseconds


# --- what the rounding argument rests on -----------------------------------------------------------------------


def evaluate(points: np.ndarray) -> dict[str, np.ndarray]:
    """Each of FUNCTIONS at the points, computed by the device."""
    from numba import cuda

    @cuda.jit(fastmath=False)
    def fill(x: np.ndarray, values: np.ndarray) -> None:
        at = cuda.grid(1)
        if at < x.size:
            values[0, at] = math.erfc(x[at])
            values[1, at] = math.erf(x[at])
            values[2, at] = math.exp(x[at])
            values[3, at] = math.expm1(x[at])
            values[4, at] = math.cosh(x[at])
            values[5, at] = math.log(abs(x[at]))

    values = cuda.device_array((len(FUNCTIONS), points.size))
    fill[max(128, -(-points.size // 128)), 128](cuda.to_device(points), values)
    return dict(zip(FUNCTIONS, values.copy_to_host(), strict=True))


def measure(name: str, points: np.ndarray) -> np.ndarray:
    """Relative error of a device function at each point, against 60 digits; for log, relative to 1 + |log|."""
    errors = []
    for point, value in zip(points.tolist(), evaluate(points)[name].tolist(), strict=True):
        truth = getattr(MP, name)(MP.mpf(point))
        size = 1 + abs(truth) if name == "log" else abs(truth)
        errors.append(float(abs(MP.mpf(value) - truth) / size))
    return np.array(errors)


def worst_nearby(errors: np.ndarray, reach: int = 200) -> np.ndarray:
    """The worst error among the neighbours of each point: a point may have been lucky."""
    padded = np.pad(errors, reach, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)


@pytest.mark.gpu
def test_errors_of_the_device_functions_are_within_the_widenings(gpu: Any, record_property: Any) -> None:
    """Ten times the measured errors of erfc, erf, exp, expm1, cosh and log, plus the arguments', are allowed for."""
    z = np.sort(np.concatenate([np.linspace(-8.0, 37.5, 2500), np.linspace(0.5, 1.7, 2500)]))
    erfc = measure("erfc", z * math.sqrt(0.5))
    hazard = np.exp(-z * z / 2 - special.log_ndtr(-z)) / math.sqrt(2 * math.pi)
    needed = 10 * worst_nearby(erfc) + EPSILON * (2.5 * np.abs(z) * hazard + 1)
    assert (needed <= TAIL_ERROR + TAIL_ERROR_GROWTH * np.maximum(z, 0) ** 2).all()
    small = np.concatenate([np.linspace(1e-6, 6, 2000), np.logspace(-300, 0, 1000)])
    erf = measure("erf", small)
    assert 10 * erf.max() + 4.5 * EPSILON <= 2 * TAIL_ERROR
    y = np.sort(np.concatenate([np.linspace(0, 708, 2000), np.logspace(-300, 0, 500)]))
    exp, expm1 = measure("exp", -y), measure("expm1", -np.concatenate([y[y > 0], np.linspace(0.01, 3, 1000)]))
    needed = 10 * (worst_nearby(exp) + expm1.max()) + EPSILON * (1.5 * y + 3.5)
    assert (needed <= TAIL_ERROR + TAIL_ERROR_GROWTH * y).all()
    cosh = measure("cosh", np.linspace(0.0, 1.0, 1000))
    needed = 10 * (worst_nearby(exp) + cosh.max()) + EPSILON * (3.5 * y + 6)
    assert (needed <= TAIL_ERROR + 2 * TAIL_ERROR_GROWTH * y).all()
    log = measure("log", np.concatenate([np.logspace(-300, 0, 1000), np.linspace(0.5, 1.0, 1000)]))
    assert log.max() <= EPSILON  # half of what the sums of logarithms allow
    for name, errors in zip(FUNCTIONS, (erfc, erf, exp, expm1, cosh, log), strict=True):
        print(f"{name}: at most {errors.max() / EPSILON:.2f} epsilons")
        record_property(name, float(errors.max() / EPSILON))


@pytest.mark.gpu
def test_divisions_are_exact_and_nothing_is_flushed_to_zero(gpu: Any) -> None:
    """The compiled kernels divide by the IEEE rule: no fast approximation got in."""
    certify(AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1), [[0.0]], "laplace:1", backend="cuda")
    for kernel in (gpu.fill_table, gpu.failures_in_shared):
        for code in kernel.inspect_asm().values():
            assert "div.rn.f64" in code
            assert "div.approx" not in code
            assert "div.full" not in code
            assert "add.ftz" not in code


def fetch_table(gpu: Any, noise: Noise, rows: np.ndarray, model: AdditiveEnsemble) -> np.ndarray:
    """The probability table as the device computes it."""
    packed = pack_terms(model.terms)
    tables = gpu._ComputedTables(packed.plan(gpu), rows, packed.edges_under(noise))
    tables.send_model()
    stream = gpu_device.open_streams()[0]
    table = tables.bring(stream, slice(0, len(rows)))
    stream.finish()
    return np.array(table.copy_to_host())


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ON_DEVICE)
@pytest.mark.parametrize("units", [None, (0.7,)])
def test_cells_are_tight_upper_bounds(kind: str, units: tuple[float, ...] | None, gpu: Any) -> None:
    """Cells computed by the device are never below the true ones and hardly above, from -38 to 38 scales."""
    noise = NOISES[kind](0.3, units)  # type: ignore[call-arg]
    scale = scale_of(noise, 0)
    for width in (1e-9, 3e-4, 0.011, 0.1, 0.9, 1.1, 3.0):
        edges = [0.0, width * scale]
        distances = np.concatenate([-np.logspace(1.58, -12, 60), [0.0], np.logspace(-12, 1.58, 60)])
        rows = (distances * scale)[:, None]
        table = fetch_table(gpu, noise, rows, AdditiveEnsemble([StepFunction(0, edges, [0, 1, 2])], 0, 1))
        for x, bounds in zip(rows[:, 0].tolist(), table.tolist(), strict=True):
            for bound, truth in zip(bounds, oracle.cell_probabilities(noise, x, edges), strict=True):
                assert truth <= bound <= 1.0
                if noise.name == "uniform":
                    assert bound - float(truth) < 1e-13
                    assert bound > 0 or truth == 0
                elif truth > 2 * TINY:
                    assert bound <= truth * (1 + MP.mpf(1e-10))
                else:
                    assert 0 < bound < 4 * TINY


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ON_DEVICE)
def test_cells_far_beyond_the_range(kind: str, gpu: Any) -> None:
    """Values near the largest double give the bounds of the host, between 0 and 1 and without NaN."""
    rows = np.array([-1.7e308, -1e300, 0.0, 3.0, 1.7e308])[:, None]
    step = StepFunction(0, [-1.7e308, -1.0, 0.0, 5e-324, 2.0, 1.7e308], np.arange(7))
    for magnitude in (1e-200, 1.0, 1e200):
        noise = NOISES[kind](magnitude)  # type: ignore[call-arg]
        table = fetch_table(gpu, noise, rows, AdditiveEnsemble([step], 0, 1))
        assert ((table >= 0) & (table <= 1)).all()
        np.testing.assert_allclose(table, noise.cell_probabilities(rows[:, 0], step.edges), rtol=1e-12)


@pytest.mark.gpu
def test_times_of_the_device_are_part_of_the_whole(gpu: Any) -> None:
    """By the device's own events kernels and copies take time, each less than the call; the masses stay the same."""
    model, rows = draw_problem(200, 3000, 2, 60, seed=5)
    plain = certify(model, rows, Gaussian(0.25), backend="cuda")
    start = time.perf_counter()
    with gpu_device.watch_device() as device:
        measured = certify(model, rows, Gaussian(0.25), backend="cuda")
    whole = 1000 * (time.perf_counter() - start)
    assert 0 < device.transfer_ms < whole
    assert 0 < device.kernel_ms < whole
    assert measured.log_failure.tolist() == plain.log_failure.tolist()


# --- paths -----------------------------------------------------------------------------------------------------


def draw_problem(n_terms: int, n_rows: int, cells: int, reach: int, seed: int) -> tuple[AdditiveEnsemble, np.ndarray]:
    """A random model of terms with up to that many cells, and rows around its edges."""
    rng = np.random.default_rng(seed)
    steps = [
        StepFunction(feature, np.sort(rng.uniform(size=size - 1)), rng.integers(0, reach, size))
        for feature, size in enumerate(rng.integers(min(2, cells), cells + 1, n_terms).tolist())
    ]
    threshold = int(sum(step.scores.mean() for step in steps))
    return AdditiveEnsemble(steps, threshold, n_terms), rng.uniform(size=(n_rows, n_terms))


@pytest.mark.gpu
@pytest.mark.parametrize("noise", [Gaussian(0.25), Gaussian(0.02), Uniform(1.0), Uniform(0.1)])
@pytest.mark.parametrize(
    ("n_terms", "cells", "reach"), [(14, 2, 100), (14, 30, 100), (300, 2, 60), (700, 3, 60), (6, 4, 300_000)]
)
def test_agrees_with_the_default_backend(noise: Noise, n_terms: int, cells: int, reach: int, gpu: Any) -> None:
    """Small and large models, laws in shared memory and beyond it: masses agree to 1e-9, labels wholly."""
    model, rows = draw_problem(n_terms, 200, cells, reach, seed=n_terms)
    ours, other = certify(model, rows, noise, backend="cuda"), certify(model, rows, noise, backend=DEFAULT_BACKEND)
    assert ours.label.tolist() == other.label.tolist()
    np.testing.assert_allclose(ours.log_failure, other.log_failure, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.radius, other.radius, rtol=1e-9, atol=1e-9)


@pytest.mark.gpu
def test_rows_that_do_not_fit_shared_memory_go_to_device_memory(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little shared memory the same masses come out, up to rounding."""
    model, rows = draw_problem(200, 300, 2, 60, seed=1)
    roomy = certify(model, rows, Gaussian(0.25), backend="cuda")
    monkeypatch.setattr("derand.kernels.cuda.settle._MORE_STATES", 300)
    monkeypatch.setattr("derand.kernels.cuda.settle._FIRST_STATES", 200)
    tight = certify(model, rows, Gaussian(0.25), backend="cuda")
    np.testing.assert_allclose(tight.log_failure, roomy.log_failure, rtol=1e-10, atol=1e-10)


@pytest.mark.gpu
def test_blocks_do_not_change_a_row(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamed in many blocks through both streams, every row has bit for bit the certificate that it has alone."""
    model, rows = draw_problem(50, 1000, 4, 40, seed=3)
    whole = certify(model, rows, Gaussian(0.25), backend="cuda")
    monkeypatch.setattr(gpu, "_BLOCK_NUMBERS", 1)
    monkeypatch.setattr(gpu, "_FEW_ROWS", 7)
    pieces = certify(model, rows, Gaussian(0.25), backend="cuda")
    assert pieces.log_failure.tolist() == whole.log_failure.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("n_terms", [14, 100])
@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_blocks_do_not_change_a_row_of_stumps(
    n_terms: int, rule: str, gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where outcomes are listed, where laws are inverted and where prices are looked up."""
    model, rows = draw_problem(n_terms, 1000, 2, 40, seed=4)
    certify(model, rows, Gaussian(0.25), backend="cuda", rule=rule)  # makes the tables
    whole = certify(model, rows, Gaussian(0.25), backend="cuda", rule=rule)
    monkeypatch.setattr("derand.kernels.cuda.blocks._BLOCK_NUMBERS", 1)
    monkeypatch.setattr("derand.kernels.cuda.blocks._FEW_ROWS", 70)
    pieces = certify(model, rows, Gaussian(0.25), backend="cuda", rule=rule)
    assert pieces.radius.tolist() == whole.radius.tolist()
    assert pieces.label.tolist() == whole.label.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("cells", [2, 4])
def test_the_mean_rule_agrees_with_the_default_backend(norm: int, cells: int, gpu: Any) -> None:
    """Labels are the same, and radii but for the rounding of single precision."""
    model, rows = draw_problem(40, 300, cells, 60, seed=5)
    _, ours, other = (  # the first call makes the tables, which the second finds on the device
        certify(model, rows, Gaussian(0.25), backend=name, rule="mean", threat=Threat(norm=norm))
        for name in ("cuda", "cuda", DEFAULT_BACKEND)
    )
    assert ours.label.tolist() == other.label.tolist()
    np.testing.assert_allclose(ours.radius, other.radius, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("n_terms", [14, 100])
def test_numbers_that_are_not_finite_are_found_on_the_device(rule: str, n_terms: int, gpu: Any) -> None:
    """NaN and infinity are named by their column; NaN where no term reads it is nothing wrong."""
    model, rows = draw_problem(n_terms, 100, 2, 40, seed=6)
    for value in (np.nan, np.inf):
        gapped = rows.copy()
        gapped[7, 3] = value
        with pytest.raises(ValueError, match=r"column 3 \(1 rows\)"):
            certify(model, gapped, Gaussian(0.25), backend="cuda", rule=rule)
    wide = AdditiveEnsemble(model.terms, model.threshold, n_terms + 1)
    padded = np.column_stack([rows, np.full(len(rows), np.nan)])
    ours, other = (certify(wide, padded, Gaussian(0.25), backend=name, rule=rule) for name in ("cuda", DEFAULT_BACKEND))
    np.testing.assert_allclose(ours.radius, other.radius, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_calls_from_several_threads(gpu: Any) -> None:
    """Threads that certify different models at the same time get their own results."""
    problems = [draw_problem(20 + seed, 500, 3, 50, seed) for seed in range(8)]
    alone = [certify(model, rows, Gaussian(0.25), backend="cuda").log_failure.tolist() for model, rows in problems]
    with ThreadPoolExecutor(8) as pool:
        together = pool.map(
            lambda p: certify(p[0], p[1], Gaussian(0.25), backend="cuda").log_failure.tolist(), problems
        )
        assert list(together) == alone


def _certify_in_child(name: str | None) -> str:
    model, rows = draw_problem(5, 10, 3, 20, seed=2)
    try:
        return str(certify(model, rows, Gaussian(0.25), backend=name).label.tolist())
    except ValueError as error:
        return str(error)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forking beside threads
def test_a_forked_process_gets_an_error_not_a_crash(gpu: Any) -> None:
    """After a fork the GPU is refused with words, and the CPU goes on working."""
    expected = _certify_in_child("cuda")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert "forked" in pool.apply_async(_certify_in_child, ("cuda",)).get(timeout=600)
        assert pool.apply_async(_certify_in_child, (None,)).get(timeout=600) == expected


@pytest.mark.gpu
def test_few_columns_of_many_travel(gpu: Any) -> None:
    """A model that reads three of a thousand columns gives what it gives on these three."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 1000))
    at = np.array([7, 500, 999])
    edges, scores = rng.normal(size=3), rng.integers(1, 30, 3)
    wide = [StepFunction(int(f), [e], [0, s]) for f, e, s in zip(at, edges, scores, strict=True)]
    narrow = [StepFunction(f, [e], [0, s]) for f, (e, s) in enumerate(zip(edges, scores, strict=True))]
    ours = certify(AdditiveEnsemble(wide, 20, 1000), rows, Gaussian(0.5), backend="cuda")
    same = certify(AdditiveEnsemble(narrow, 20, 3), rows[:, at], Gaussian(0.5), backend="cuda")
    assert ours.log_failure.tolist() == same.log_failure.tolist()


@pytest.mark.gpu
def test_the_gpu_is_a_device_backend(gpu: Any) -> None:
    """It offers what certificates ask of a device, and computes the tables of some of the package's noises."""
    assert isinstance(gpu, DeviceBackend)
    assert set(ON_DEVICE) == gpu.NOISES <= set(NOISES)
    assert load_backend(None, BIG) is gpu
