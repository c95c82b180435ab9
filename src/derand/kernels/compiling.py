"""Compiling functions, here and in every room above: kept on disk where that is possible, else for this process alone.

Owns the one decision whether compiled code is kept, and says once where compiling takes a while. Must not know what is
compiled. numba keeps it in the folder that NUMBA_CACHE_DIR names, beside the source, or in the user's own folder, and
raises where it can write to none of them: a container with a read-only image whose user has no home.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event

from derand.progress import announce

Compiler = Callable[..., Any]
"""Takes a function and options, among them `cache`: `numba.njit`, `numba.cuda.jit`."""

MOMENT = 0.5
"""Seconds of compiling in a process before it is told."""

_has_warned = False


def compile_loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for the CPU when it is first called; it runs without the GIL: `@compile_loop()`.

    Parameters
    ----------
    **options
        Further ones of `numba.njit`, such as `error_model` and `inline`.

    Returns
    -------
    callable
        A decorator.
    """
    return lambda function: compile_once(njit, function, nogil=True, **options)


def compile_once(compiler: Compiler, function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function and keep the code on disk; where no folder is writable, warn and go on without.

    Parameters
    ----------
    compiler : callable
        `numba.njit` or `numba.cuda.jit`.
    function : callable
    **options
        Of the compiler.

    Examples
    --------
    >>> compile_once(lambda function, cache: function, abs)(-2)
    2
    """
    try:
        return compiler(function, cache=True, **options)
    except RuntimeError as error:
        compiled = compiler(function, **options)
        _warn_of_no_cache(str(error))
        return compiled


def _warn_of_no_cache(reason: str) -> None:
    """Say so once in a process, whatever the filters of warnings are."""
    global _has_warned  # noqa: PLW0603 - the first function speaks for all
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            f"Compiled code is not kept on disk ({reason}): every process compiles anew, for some ten seconds or more. "
            "Set NUMBA_CACHE_DIR to a folder that can be written to compile only once.",
            stacklevel=2,
        )


class _CompileListener(event.Listener):  # type: ignore[misc] # numba has no types
    """Says once in a process that functions of this package are being compiled, where that takes more than a moment.

    numba tells of code that it compiles, not of code that it finds on disk. It compiles one function at a time, and
    those that a function calls within it.
    """

    def __init__(self) -> None:
        self._depth, self._start, self._spent = 0, 0.0, 0.0
        self._has_told = False

    def on_start(self, started: Any) -> None:
        now = time.monotonic()
        if not _is_ours(started):
            return
        if not self._depth:
            self._start = now
        self._depth += 1
        if not self._has_told and self._spent + now - self._start > MOMENT:
            self._has_told = True
            where = "for this process alone" if _has_warned else "once on this machine"
            announce(f"compiling, {where} (about ten seconds) ...")

    def on_end(self, ended: Any) -> None:
        if _is_ours(ended) and self._depth:
            self._depth -= 1
            if not self._depth:
                self._spent += time.monotonic() - self._start


def _is_ours(told: Any) -> bool:
    """Whether what numba tells of is a function of this package."""
    function = getattr((told.data or {}).get("dispatcher"), "py_func", None)
    return str(getattr(function, "__module__", "")).startswith("derand.")


event.register("numba:compile", _CompileListener())
