"""Progress of long work, told in short texts to whoever listens. Must not know what is done, nor what is shown of it.

Work calls `tell`, which costs next to nothing unless somebody listens: an estimator with `verbose=True` prints lines, a
command moves its bar. Who listens hears the thread that he began to listen in; what concerns the whole process, such as
compiling, is told to the newest listener of all (`announce`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

PATIENCE = 1.0
"""Seconds between two texts that count."""

Listener = Callable[[str], None]
"""Is told what is being done."""


@dataclass(slots=True)
class _Count:
    """What is done, to how many rows in all, and when it was told last."""

    what: str
    total: int
    told: float = field(default_factory=time.monotonic)


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_count: ContextVar[_Count | None] = ContextVar("count", default=None)
_open: list[Listener] = []


@contextmanager
def listen(listener: Listener | None) -> Iterator[None]:
    """Let a listener hear what is told while the block runs; None changes nothing.

    Examples
    --------
    >>> with listen(print):
    ...     tell("digging")
    digging
    """
    if listener is None:
        yield
        return
    before = _listener.set(listener)
    try:
        with hear_announcements(listener):
            yield
    finally:
        _listener.reset(before)


@contextmanager
def hear_announcements(listener: Listener) -> Iterator[None]:
    """Let a listener hear while the block runs what concerns the whole process, and nothing else."""
    _open.append(listener)
    try:
        yield
    finally:
        _open.remove(listener)


def tell(text: str) -> None:
    """Tell what is being done."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


def announce(text: str) -> None:
    """Tell what concerns the whole process, from any thread: the newest listener, or whoever sits at the terminal."""
    if _open:
        _open[-1](text)
    elif sys.stderr is not None and sys.stderr.isatty():
        print_line(text)


@contextmanager
def counting(what: str, total: int) -> Iterator[None]:
    """Tell that something is done to so many rows, and let `count` say how far it is.

    Examples
    --------
    >>> with listen(print), counting("certifying", 1000):
    ...     count(10, 1000)  # a moment later there would be nothing new
    certifying 1,000 rows
    """
    tell(f"{what} {total:,} rows")
    before = _count.set(_Count(what, total))
    try:
        yield
    finally:
        _count.reset(before)


def count(done: int, total: int) -> None:
    """Say how many are done, where just so many are being counted and it was not told a moment ago."""
    current = _count.get()
    if current is None or total != current.total or done >= total or _listener.get() is None:
        return
    now = time.monotonic()
    if now - current.told >= PATIENCE:
        current.told = now
        tell(f"{current.what} {done:,} of {total:,} rows")


def count_rounds(n_rounds: int, what: str) -> Iterator[int]:
    """0, 1, ..., told as rounds that are done.

    Examples
    --------
    >>> list(count_rounds(3, "boosting"))
    [0, 1, 2]
    """
    told = time.monotonic()
    tell(f"{what} {n_rounds:,} rounds")
    for number in range(n_rounds):
        if time.monotonic() - told >= PATIENCE:
            told = time.monotonic()
            tell(f"{what} {number:,} of {n_rounds:,} rounds")
        yield number


def print_line(text: str) -> None:
    """Print what is told as a line on standard error."""
    with suppress(OSError, ValueError, AttributeError):  # nobody is there to read it
        sys.stderr.write(f"derand: {text}\n")
        sys.stderr.flush()
