"""Gradual underflow: a thread in which subnormal numbers count as zero is refused, wherever kernels start."""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from derand import AdditiveEnsemble, WeightedVote, certify, distribution
from derand.certificates import _by_vote
from derand.kernels import require_gradual_underflow

MODEL = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
ROWS = np.linspace(-3, 3, 600)[:, None]
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


@on_this_processor
@pytest.mark.parametrize("flag", [FLUSH_RESULTS, FLUSH_OPERANDS, FLUSH_RESULTS | FLUSH_OPERANDS])
def test_a_thread_that_flushes_to_zero_is_refused(flag: int) -> None:
    """One line says what is wrong and what to do; afterwards all is well again."""
    calls: list[Callable[[], object]] = [
        lambda: certify(MODEL, ROWS, "gaussian:0.25", n_jobs=1),
        lambda: certify(MODEL, ROWS, "gaussian:0.25", n_jobs=2),  # new threads inherit the setting
        lambda: certify(MODEL, ROWS, "laplace:0.25", l0=[0, 1], backend="numpy"),
        lambda: certify(WeightedVote([MODEL], [1.0]), ROWS, "uniform:0.25"),
        lambda: distribution(MODEL, ROWS, "gaussian:0.25"),
    ]
    for call in calls:
        call()
        with control_word(DEFAULT | flag), pytest.raises(ValueError, match=r"flushes subnormal.*Set it back") as error:
            call()
        assert "\n" not in str(error.value)
        call()


@on_this_processor
def test_a_single_worker_thread_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check runs in the thread that computes, not in the one that asks."""
    run_blocks = _by_vote.run_blocks

    def disturb(work: Callable[[slice], None], n_rows: int, block: int, jobs: int) -> None:
        def disturbed(part: slice) -> None:
            if part.start:
                with control_word(DEFAULT | FLUSH_RESULTS):
                    work(part)
            else:
                work(part)

        run_blocks(disturbed, n_rows, 100, jobs)

    monkeypatch.setattr(_by_vote, "run_blocks", disturb)
    with pytest.raises(ValueError, match="flushes subnormal"):
        certify(MODEL, ROWS, "gaussian:0.25", n_jobs=2)


def test_an_ordinary_thread_passes() -> None:
    """Nothing is said where nothing is wrong."""
    require_gradual_underflow()
