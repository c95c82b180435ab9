"""Compiling functions, here and in every room above: kept on disk where that is possible, else for this process alone.

Owns the one decision whether compiled code is kept, and says once where compiling takes a while. Must not know what is
compiled. numba keeps it in the folder that NUMBA_CACHE_DIR names, beside the source, or in the user's own folder, and
raises where it can write to none of them: a container with a read-only image whose user has no home. numba itself is
imported when the first function is called: whoever computes nothing does not wait for it.
"""

from __future__ import annotations

import functools
import glob
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import RLock, local
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from derand._core.progress import announce

Function = TypeVar("Function", bound=Callable[..., Any])
Compiled = Any
"""A compiled function: it takes arrays of more types than its source names."""
Compiler = Callable[..., Compiled]
"""Takes a function and options, among them `cache`: `numba.njit`, `numba.cuda.jit`."""

MOMENT = 0.5
"""Seconds of compiling in a process before it is told."""

_has_warned = False

LOOPS: list[Loop] = []
"""All functions that are compiled for the CPU, of the modules that are imported."""
_lock = RLock()


class EarlyBudget:
    """How much a process may still compute without the compiler. The unit is a number: about 20 nanoseconds of NumPy.

    A process that computes little should not wait for numba to be loaded, or for functions to be compiled. Until the
    budget is spent, functions that say how many numbers a call computes run early versions of themselves, whose
    results are equal to the last bit (README.md, "Early versions").
    """

    NUMBERS = 2**24
    CALL = 2**9
    """Cost of a call itself."""
    OWN = 2**22
    """What each function may compute besides while there is no compiled code of it: compiling takes far longer."""

    def __init__(self) -> None:
        self.left = self.NUMBERS
        """Below 0 it is spent; 0 once `end` was called."""

    def spend(self, numbers: int) -> bool:
        """Whether the budget covers so many numbers; concurrent threads may lose a call."""
        self.left -= numbers + self.CALL
        return self.left >= 0

    def end(self) -> None:
        """Compile from now on whatever is called."""
        self.left = 0


EARLY = EarlyBudget()
"""The budget of this process."""


class _Thread(local):
    """Whether this thread is within an early version."""

    is_early = False


_thread = _Thread()


class Loop:
    """A function that is compiled when it is first called, and finds what it calls compiled, too.

    numba makes a way from Python into every function that it compiles, and keeps each on disk. Most functions are only
    ever called by compiled ones, which contain them: these have no such way, which is a part of what compiling costs.
    numba asks for `py_func`, the function as written, and for `targetoptions`.
    """

    def __init__(
        self,
        function: Callable[..., object],
        options: dict[str, object],
        early: Callable[..., object] | None = None,
        numbers: Callable[..., int] | None = None,
    ) -> None:
        self.py_func, self.targetoptions = function, {"nogil": True, **options}
        self.early, self.numbers = early or function, numbers
        self._own = EARLY.OWN
        functools.update_wrapper(self, function)
        LOOPS.append(self)

    def __call__(self, *arguments: object) -> Compiled:
        """Run the early version while the budget of this process lasts, else compile where types are new, and run."""
        if _thread.is_early:
            return self.early(*arguments)
        if self.numbers is not None and EARLY.left and self._is_little(self.numbers(*arguments)):
            return self.run_early(*arguments)
        return self.entry(*arguments)

    def _is_little(self, numbers: int) -> bool:
        """Whether a call that computes so many numbers need not be compiled."""
        if EARLY.left > 0 and EARLY.spend(numbers):
            return True
        if self._own > 0 and not self._is_compiled:
            self._own -= numbers + EARLY.CALL
        return self._own > 0 and not self._is_compiled

    @functools.cached_property
    def _is_compiled(self) -> bool:
        """Whether there was compiled code of it on disk when this was asked first: numba names its index so."""
        folder, code = self.entry.stats.cache_path, self.py_func.__code__
        index = f"*{glob.escape(self.py_func.__qualname__)}-{code.co_firstlineno}.*.nbi"
        return folder is not None and any(Path(folder).glob(index))

    def run_early(self, *arguments: object) -> Compiled:
        """Run without a compiler, with all that it calls: equal to the last bit, but slowly."""
        _thread.is_early = True
        try:
            with np.errstate(all="ignore"):  # compiled code does not warn, either
                return self.early(*arguments)
        finally:
            _thread.is_early = False

    @functools.cached_property
    def entry(self) -> Compiled:
        """What Python calls; kept on disk."""
        with _lock:
            options = {"no_cfunc_wrapper": True, **self.targetoptions}
            return vars(self).setdefault("entry", compile_once(_load_compiler(), self.py_func, **options))

    @functools.cached_property
    def _numba_type_(self) -> Compiled:
        """What numba sees where a compiled function calls this one: a part of its caller, without a way from Python."""
        return self._part._numba_type_

    @functools.cached_property
    def _part(self) -> Compiled:
        with _lock:
            options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **self.targetoptions}
            return vars(self).setdefault("_part", _widen(_load_compiler()(self.py_func, **options)))


def compile_loop(
    early: Callable[..., object] | None = None, numbers: Callable[..., int] | None = None, **options: object
) -> Callable[[Function], Function]:
    """Compile a function for the CPU when it is first called; it runs without the GIL: `@compile_loop()`.

    `early` is a NumPy version with the same arguments and results, to the last bit; None: the function as written.
    `numbers` takes the same arguments and returns how many numbers the early version computes, which makes a call from
    Python run it while `EARLY` lasts; None: calls from Python are always compiled. `options` are further ones of
    `numba.njit`, such as `error_model` and `inline`.
    """

    def compile_it(function: Function) -> Function:
        return cast(Function, Loop(function, options, early, numbers))

    return compile_it


def _widen(part: Compiled) -> Compiled:
    """Let a number that a caller writes out be one like any other: numba compiles a function anew for each."""
    from numba.core.types.misc import unliteral

    choose = part.get_call_template

    def choose_widened(arguments: tuple[object, ...], named: dict[str, object]) -> object:
        return choose(tuple(map(unliteral, arguments)), {name: unliteral(one) for name, one in named.items()})

    part.get_call_template = choose_widened
    return part


@functools.cache
def _load_compiler() -> Compiler:
    """numba's, with somebody who listens to what it compiles."""
    from numba import njit
    from numba.core import event

    listener = type("Listener", (_CompileListener, event.Listener), {})
    event.register("numba:compile", listener())
    return njit


def compile_once(compiler: Compiler, function: Callable[..., object], **options: object) -> Compiled:
    """Compile a function and keep the code on disk; where no folder is writable, warn and go on without.

    >>> compile_once(lambda function, cache: function, abs)(-2)
    2
    """
    _load_compiler()  # and with it who listens
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
            f"Compiled code is not kept on disk ({reason}): every process compiles, for some ten seconds or more. "
            "Set NUMBA_CACHE_DIR to a folder that only you can write, to compile only once.",
            stacklevel=2,
        )


class _CompileListener:
    """Says once in a process that functions of this package are being compiled, where that takes more than a moment.

    numba tells of code that it compiles, not of code that it finds on disk. It compiles one function at a time, and
    those that a function calls within it.
    """

    count: ClassVar[int] = 0
    """Functions of this package that were compiled."""

    def __init__(self) -> None:
        self._depth, self._start, self._spent = 0, 0.0, 0.0
        self._has_told = False

    def on_start(self, started: object) -> None:
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

    def on_end(self, ended: object) -> None:
        if _is_ours(ended) and self._depth:
            self._depth -= 1
            _CompileListener.count += 1
            if not self._depth:
                self._spent += time.monotonic() - self._start


def _is_ours(told: Any) -> bool:
    """Whether what numba tells of is a function of this package."""
    function = getattr((told.data or {}).get("dispatcher"), "py_func", None)
    return str(getattr(function, "__module__", "")).startswith("derand.")


def count_compiled() -> int:
    """Functions of this package that this process has compiled, each as often as with other types."""
    return _CompileListener.count


def list_folders() -> list[str]:
    """Where the code of functions that were called is kept on disk; empty where it is not."""
    paths = {loop.entry.stats.cache_path for loop in LOOPS if "entry" in vars(loop)}
    return sorted(str(path) for path in paths if path)
