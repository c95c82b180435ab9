"""The GPU as the backend sees it: whether there is one, streams through which data goes to it and back, their times.

A stream is a queue with page-locked and device memory of its own, kept from call to call and grown where needed. Must
not know what is computed.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from derand._core.arrays import Numbers

_HOW_TO_GO_ON = "Leave `backend` out or give backend='numba' to compute on the CPU: slower, but no less exact."
_PORTABLE_SHARED = 48 * 1024  # bytes of shared memory that every GPU grants without being asked
_STATIC_SHARED = 8 * 1024  # what the kernels use besides
_granted: dict[OnDevice, int] = {}  # by kernel
_owner: int | None = None  # the process that first used the GPU


def explain_absence() -> str | None:
    """Why the GPU backend cannot work here and how to go on without, or None where it can."""
    if (forked := explain_fork()) is not None:
        return forked
    try:
        from numba import cuda

        usable = cuda.is_available()
    except ImportError as error:
        return _refuse(f"{error}: install it with `pip install derand[gpu]`")
    if not usable:
        found = cuda.cuda_error() or "no device, or no compiler library (`pip install numba-cuda[cu12]` brings it)"
        return _refuse(str(found))
    return _explain_lost_function()


def _explain_lost_function() -> str | None:
    """Why numba-cuda cannot compile with this NumPy, or None where it can.

    `numpy.row_stack` went with NumPy 2.5, and numba-cuda 0.30 names it in a module that it loads to compile.
    """
    if hasattr(np, "row_stack"):
        return None
    try:
        import_module("numba.cuda.np.arrayobj")
    except AttributeError as error:
        return _refuse(f"a numba-cuda that does not fit NumPy {np.__version__} ({error}): `pip install 'numpy<2.5'`")
    except ImportError:  # another numba-cuda, which has no such module
        return None
    return None


def explain_fork() -> str | None:
    """Why this process may not use the GPU that its parent has opened, or None where there is no such parent."""
    if _owner in {None, os.getpid()}:
        return None
    return _refuse("a forked copy of the process that uses the GPU: start a fresh process instead")


def _refuse(found: str) -> str:
    rule = "`backend` = 'cuda' needs an NVIDIA GPU, its driver and the package numba-cuda, got: "
    return f"{rule}{' '.join(found.split()).removesuffix('.')}. {_HOW_TO_GO_ON}"


OnDevice = Any
"""Arrays on a device, compiled kernels, and what numba makes of them inside a kernel: it has no types for these."""
Layout = tuple[tuple[tuple[int, ...], OnDevice], ...]
"""Shape and type of each of some arrays."""


class _LaidOut(NamedTuple):
    """Arrays that stand side by side, on the host and on the device."""

    layout: Layout
    staged: Numbers
    target: OnDevice
    on_host: tuple[Numbers, ...]
    on_device: tuple[OnDevice, ...]


def _round_up(n_bytes: int) -> int:
    return max(-(-n_bytes // 256), 1) * 256


def _cut(whole: OnDevice, ends: list[int], layout: Layout) -> tuple[OnDevice, ...]:
    """Arrays within one of bytes."""
    parts = []
    for start, (shape, kind) in zip([0, *ends], layout, strict=False):
        n_bytes = math.prod(shape) * np.dtype(kind).itemsize
        parts.append(whole[start : start + n_bytes].view(np.dtype(kind)).reshape(shape))
    return tuple(parts)


def _load_copies() -> tuple[OnDevice, OnDevice] | None:
    """numba-cuda's functions below the methods of its arrays, which check so much that a copy lasts no longer.

    None where there are none by these names: the methods do the same.
    """
    from numba import config

    if config.ENABLE_CUDASIM:
        return None
    try:
        from numba.cuda.cudadrv.driver import device_to_host, host_to_device
    except ImportError:
        return None
    return host_to_device, device_to_host


class Stream:
    """A queue of copies and kernels, with the memory they use: one name, one array."""

    def __init__(self) -> None:
        from numba import cuda

        self._cuda = cuda
        self.handle = cuda.stream()
        self._on_host: dict[str, Numbers] = {}
        self._on_device: dict[str, OnDevice] = {}
        self._views: dict[str, OnDevice] = {}
        self._laid_out: dict[str, _LaidOut] = {}
        self._copies = _load_copies()
        self.watch: _Watch | None = None

    def launch(
        self, kernel: OnDevice, grid: int, threads: int, arguments: tuple[OnDevice, ...], shared_bytes: int = 0
    ) -> None:
        """Queue a kernel on so many blocks of so many threads, each block with dynamic shared memory."""
        with self._watched("kernels"):
            kernel[grid, threads, self.handle, shared_bytes](*arguments)

    def _stage(self, name: str, n_bytes: int) -> Numbers:
        """So many page-locked bytes; what they held before is gone."""
        if name not in self._on_host or self._on_host[name].size < n_bytes:
            self._on_host[name] = self._cuda.pinned_array(n_bytes, dtype=np.uint8)
        return self._on_host[name][:n_bytes]

    def reserve(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> OnDevice:
        """A device array of that shape; what it held before is gone."""
        size, kind = math.prod(shape), np.dtype(dtype)
        known = self._on_device.get(name)
        if known is None or known.dtype != kind or known.size < size:
            self._on_device[name] = self._cuda.device_array(max(size, 1), dtype=kind)
            self._views.pop(name, None)
        view = self._views.get(name)
        if view is None or view.shape != shape:  # slicing a device array is slow enough to matter
            view = self._views[name] = self._on_device[name][:size].reshape(shape)
        return view

    def send(self, name: str, *arrays: Numbers) -> tuple[OnDevice, ...]:
        """Queue one copy of all arrays to the device: the host takes longer to queue a copy than it lasts."""
        laid_out = self.lay_out(name, tuple((array.shape, array.dtype) for array in arrays))
        for place, array in zip(laid_out.on_host, arrays, strict=True):
            np.copyto(place, array)
        self.send_laid_out(name)
        return laid_out.on_device

    def keep(self, name: str, *arrays: Numbers) -> tuple[OnDevice, ...]:
        """Arrays of 8-byte numbers on the device; copied, and waited for, only where they differ from the last ones."""
        known = self._laid_out.get(name)
        laid_out = self.lay_out(name, tuple((array.shape, array.dtype) for array in arrays))
        pairs = zip(laid_out.on_host, arrays, strict=True)
        if known is laid_out and all(np.array_equal(one.view(np.int64), other.view(np.int64)) for one, other in pairs):
            return laid_out.on_device
        sent = self.send(name, *arrays)
        self.finish()
        return sent

    def lay_out(self, name: str, layout: Layout) -> _LaidOut:
        """Several arrays that travel together, on the host and on the device: one copy for all of them."""
        known = self._laid_out.get(name)
        if known is None or known.layout != layout:
            ends = np.cumsum([_round_up(math.prod(shape) * np.dtype(kind).itemsize) for shape, kind in layout]).tolist()
            staged = self._stage(name, ends[-1])
            target = self.reserve(name, (ends[-1],), np.uint8)
            known = self._laid_out[name] = _LaidOut(
                layout, staged, target, _cut(staged, ends, layout), _cut(target, ends, layout)
            )
        return known

    def send_laid_out(self, name: str) -> None:
        """Queue a copy of the host's side."""
        staged, target = self._laid_out[name].staged, self._laid_out[name].target
        with self._watched("copies"):
            if self._copies is None:
                target.copy_to_device(staged, stream=self.handle)
            else:
                self._copies[0](target, staged, staged.nbytes, stream=self.handle)

    def fetch_laid_out(self, name: str) -> None:
        """Queue a copy back; the host's side holds it once the stream is finished."""
        staged, source = self._laid_out[name].staged, self._laid_out[name].target
        with self._watched("copies"):
            if self._copies is None:
                source.copy_to_host(staged, stream=self.handle)
            else:
                self._copies[1](staged, source, staged.nbytes, stream=self.handle)

    def finish(self) -> None:
        """Wait until everything queued is done."""
        self.handle.synchronize()

    def _watched(self, kind: str) -> AbstractContextManager[None]:
        return nullcontext() if self.watch is None else self.watch.span(kind, self.handle)


@cache
def open_streams() -> tuple[Stream, Stream]:
    """The two streams of this process."""
    global _owner  # noqa: PLW0603 - a device belongs to the process that opened it
    _owner = os.getpid()
    return Stream(), Stream()


@dataclass
class DeviceTimes:
    """For how long the device was at work, in milliseconds; kernels and copies may overlap."""

    kernel_ms: float = 0.0
    transfer_ms: float = 0.0
    busy_ms: float = 0.0
    """Of either of them; the rest of the time is the host's."""


@contextmanager
def watch_device() -> Iterator[DeviceTimes]:
    """Watch all streams; what is yielded is filled at the end.

    A time is that in which at least one kernel, or one copy, was under way by the device's own events; where the device
    had nothing else to do, it includes the host's queueing. Results stay the same; an event costs some microseconds.
    """
    times, streams = DeviceTimes(), open_streams()
    watch = _Watch(streams[0])
    for stream in streams:
        stream.watch = watch
    try:
        yield times
    finally:
        for stream in streams:
            stream.watch = None
    for stream in streams:
        stream.finish()
    kernels, copies = watch.spans("kernels"), watch.spans("copies")
    times.kernel_ms, times.transfer_ms, times.busy_ms = cover(kernels), cover(copies), cover(kernels + copies)


class _Watch:
    """Events around kernels and copies, on a common clock that starts with the watch."""

    def __init__(self, stream: Stream) -> None:
        from numba import cuda

        self._new_event = cuda.event
        self._events: dict[str, list[tuple[OnDevice, OnDevice]]] = {"kernels": [], "copies": []}
        self._origin = self._new_event()
        self._origin.record(stream.handle)

    @contextmanager
    def span(self, kind: str, handle: OnDevice) -> Iterator[None]:
        """Note when what is queued inside starts and ends."""
        start, stop = self._new_event(), self._new_event()
        start.record(handle)
        yield
        stop.record(handle)
        self._events[kind].append((start, stop))

    def spans(self, kind: str) -> list[tuple[float, float]]:
        """Start and end of everything of a kind, in milliseconds, once all of it is over."""
        since = self._origin.elapsed_time
        return [(since(start), since(stop)) for start, stop in self._events[kind]]


def cover(spans: list[tuple[float, float]]) -> float:
    """Length of what the spans cover together: time in which several were under way counts once."""
    total, reached = 0.0, -math.inf
    for start, stop in sorted(spans):
        total += max(stop - max(start, reached), 0.0)
        reached = max(reached, stop)
    return total


def grant_shared(kernel: OnDevice, arguments: tuple[OnDevice, ...], n_bytes: int) -> int:
    """Bytes of dynamic shared memory that a kernel may have, at most `n_bytes`: beyond 48 KB they have to be asked for.

    No public function of numba-cuda does this; where its inner names have changed, the kernel makes do with 48 KB.
    """
    from numba import config, cuda

    if config.ENABLE_CUDASIM:
        return min(n_bytes, _PORTABLE_SHARED)
    if kernel.py_func not in _granted:
        granted = _PORTABLE_SHARED - _STATIC_SHARED
        with contextlib.suppress(ImportError, AttributeError, TypeError):
            from numba.cuda.cudadrv import driver as inner

            kernel.compile(tuple(kernel.typeof_pyval(argument) for argument in arguments))
            (compiled,) = kernel.overloads.values()
            function = compiled._codelibrary.get_cufunc()
            attribute = inner.binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            most = cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN - _STATIC_SHARED
            inner.driver.cuKernelSetAttribute(attribute, most, function.handle, function.device.id)
            granted = most
        _granted[kernel.py_func] = granted
    return min(n_bytes, _granted[kernel.py_func])
