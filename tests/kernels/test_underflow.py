"""Gradual underflow: a thread in which subnormal numbers count as zero is refused, whatever is certified."""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    StepFunction,
    Threat,
    WeightedVote,
    attack,
    certify,
    certify_interval,
    certify_radius,
    distribution,
)
from derand.certificates import explain, find_answers, find_labels
from derand.certificates.rules import base as _rule
from derand.kernels import require_gradual_underflow
from derand.model import Argmax, GridTerm, LinearTerm, Model, Value

MODEL = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
ROWS = np.linspace(-3, 3, 600)[:, None]
PAIRS = np.repeat(ROWS[::60], 2, axis=1)
MODELS: dict[str, Model] = {
    "steps": AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], 1, 2),
    "vote": WeightedVote([AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], 1, 2)], [1.0]),
    "grid": AdditiveEnsemble([GridTerm([0, 1], [[0.0], [0.5]], [1, 5, 4, 2])], 3, 2),
    "line": AdditiveEnsemble([LinearTerm(0, [1.0]), LinearTerm(1, [1e-310])], 1, 2),
    "two outputs": AdditiveEnsemble([StepFunction(0, [0.5], [[0, 3], [2, 1]])], Argmax((0, 0)), 2),
    "classes": AdditiveEnsemble([StepFunction(0, [0.5], [[0, 3, 1], [2, 1, 4]])], Argmax((0, 0, 0)), 2),
    "lines of classes": AdditiveEnsemble([LinearTerm(0, [1.0, 0.5, 1e-310])], Argmax((0, 0, 0)), 2),
}
NUMBERS: dict[str, Model] = {
    "steps": AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], Value(1), 2),
    "grid": AdditiveEnsemble([GridTerm([0, 1], [[0.0], [0.5]], [1, 5, 4, 2])], Value(3), 2),
    "line": AdditiveEnsemble([LinearTerm(0, [1.0]), LinearTerm(1, [1e-310])], Value(0), 2),
}
WAYS: list[tuple[str | None, str]] = [("gaussian:0.25", "vote"), ("uniform:0.25", "mean"), (None, "mean")]
FLUSH_RESULTS, FLUSH_OPERANDS, DEFAULT = 0x8000, 0x0040, 0x1F80

on_this_processor = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="sets a register of x86")


@contextmanager
def control_word(value: int) -> Iterator[None]:
    """The control word of this thread's floating-point unit, for a while: `ldmxcsr [rdi]; ret`."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x0f\xae\x17\xc3")
    load = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    try:
        load(ctypes.addressof(ctypes.c_uint32(value)))
        yield
    finally:
        load(ctypes.addressof(ctypes.c_uint32(DEFAULT)))


Call = Callable[[], object]


def require_refused(call: Call, flag: int) -> None:
    """One line where numbers are flushed; before and afterwards all is well."""
    call()
    with control_word(DEFAULT | flag), pytest.raises(ValueError, match=r"flushes subnormal.*Set it back") as error:
        call()
    assert "\n" not in str(error.value)
    call()


@on_this_processor
@pytest.mark.parametrize("flag", [FLUSH_RESULTS, FLUSH_OPERANDS, FLUSH_RESULTS | FLUSH_OPERANDS])
def test_a_thread_that_flushes_to_zero_is_refused(flag: int) -> None:
    """One line says what is wrong and what to do; afterwards all is well again."""
    calls: list[Call] = [
        lambda: certify(MODEL, ROWS, "gaussian:0.25", n_jobs=1),
        lambda: certify(MODEL, ROWS, "gaussian:0.25", n_jobs=2),  # new threads inherit the setting
        lambda: certify(MODEL, ROWS, "laplace:0.25", l0=[0, 1], backend="numpy"),
        lambda: certify(WeightedVote([MODEL], [1.0]), ROWS, "uniform:0.25"),
        lambda: distribution(MODEL, ROWS, "gaussian:0.25"),
    ]
    for call in calls:
        require_refused(call, flag)


@on_this_processor
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("noise", "rule"), WAYS)
def test_every_kind_of_model_is_refused(kind: str, noise: str | None, rule: str) -> None:
    """Certificates, in a ball and within limits, labels, attacks and explanations."""
    model, limits = MODELS[kind], Threat(norm=None, limits={0: 0.5})
    smoothing = certify(model, PAIRS, noise, rule=rule).noise
    require_refused(lambda: certify(model, PAIRS, noise, rule=rule), FLUSH_RESULTS)
    require_refused(lambda: certify(model, PAIRS, noise, rule=rule, threat=limits), FLUSH_OPERANDS)
    require_refused(lambda: find_labels(model, PAIRS, smoothing, rule=rule), FLUSH_RESULTS)
    require_refused(lambda: attack(model, PAIRS[:1], noise, rule=rule), FLUSH_RESULTS)
    require_refused(lambda: explain(model, PAIRS[0], noise, rule=rule), FLUSH_RESULTS)


@on_this_processor
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(("noise", "rule"), WAYS)
def test_every_kind_of_regression_is_refused(kind: str, noise: str | None, rule: str) -> None:
    model = NUMBERS[kind]
    smoothing = certify_interval(model, PAIRS, noise, 0.5, rule=rule).noise
    require_refused(lambda: certify_interval(model, PAIRS, noise, 0.5, rule=rule), FLUSH_RESULTS)
    require_refused(lambda: certify_radius(model, PAIRS, noise, 0.5, rule=rule), FLUSH_OPERANDS)
    require_refused(lambda: find_answers(model, PAIRS, smoothing, rule=rule), FLUSH_RESULTS)


@on_this_processor
def test_a_single_worker_thread_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check runs in the thread that computes, not in the one that asks."""
    run_blocks = _rule.run_blocks

    def disturb(work: Callable[[slice], None], n_rows: int, block: int, jobs: int) -> None:
        def disturbed(part: slice) -> None:
            if part.start:
                with control_word(DEFAULT | FLUSH_RESULTS):
                    work(part)
            else:
                work(part)

        run_blocks(disturbed, n_rows, 100, jobs)

    monkeypatch.setattr(_rule, "run_blocks", disturb)
    with pytest.raises(ValueError, match="flushes subnormal"):
        certify(MODEL, ROWS, "gaussian:0.25", n_jobs=2)


def test_an_ordinary_thread_passes() -> None:
    """Nothing is said where nothing is wrong."""
    require_gradual_underflow()
