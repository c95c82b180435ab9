"""Compiling functions, here and in every room above: kept on disk where that is possible, else for this process alone.

Owns the one decision whether compiled code is kept. Must not know what is compiled. numba keeps it in the folder that
NUMBA_CACHE_DIR names, beside the source, or in the user's own folder, and raises where it can write to none of them: a
container with a read-only image whose user has no home.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from numba import njit

Compiler = Callable[..., Any]
"""Takes a function and options, among them `cache`: `numba.njit`, `numba.cuda.jit`."""

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
