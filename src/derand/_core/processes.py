"""Work in processes of their own, without sockets: tasks and results go through pipes that no one else can open.

Owns starting such processes, ending them, and what is said where one is lost. Must not know what is computed. Each is
a fresh interpreter that imports nothing of the program that started it, so that scripts need no guard for it.
"""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, BinaryIO, TypeVar

Key = TypeVar("Key")
_SIZE_BYTES = 8
_PATIENCE = 5.0
"""Seconds for a process to remove what it began before it is killed."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class LostProcessError(RuntimeError):
    """A process ended before it had answered: it crashed, or was killed."""


class WorkerProcess:
    """A process that calls one function after another; use it in a `with` block, or `stop` it.

    `silent`: whether nothing that it prints is shown.

    Examples
    --------
    >>> with WorkerProcess() as worker:
    ...     worker.call(divmod, 7, 2)
    (3, 1)
    """

    def __init__(self, *, silent: bool = False) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from derand._core.processes import serve; serve()"
        command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", code]
        with _hold_interrupts():
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if silent else None,
                env={**_ONE_THREAD, **os.environ},
            )

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, function: Callable[..., object], *arguments: object) -> Any:
        """What a function of a module returns there; what it raises is raised here."""
        content = pickle.dumps((function, arguments))
        tasks, results = self._process.stdin, self._process.stdout
        assert tasks is not None
        assert results is not None
        try:
            _write(tasks, content)
            answer = _read(results)
        except (OSError, ValueError):  # the pipe is broken, or closed by `stop`
            answer = None
        if answer is None:
            self.stop()
            raise LostProcessError(f"its process {_describe_end(self._process.returncode)}")
        is_error, found = pickle.loads(answer)
        if is_error:
            raise found
        return found

    def stop(self) -> None:
        """End the process; what it has begun to write is removed."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


class WorkerPool:
    """Several processes that share tasks; all of them end with its `with` block.

    A task whose process is lost is tried once more in another one.
    """

    def __init__(self, n_processes: int) -> None:
        if n_processes < 1:
            raise ValueError(f"`workers` must be 1 or larger, got {n_processes}.")
        self._threads = ThreadPoolExecutor(n_processes)
        self._idle: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []
        self._lock = threading.Lock()
        self._is_stopped = False

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._is_stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._all:
            with suppress(OSError):
                worker._process.terminate()  # all at once; the wait for each comes after
        for worker in self._all:
            worker.stop()
        self._threads.shutdown()

    def run(
        self, function: Callable[..., object], tasks: Mapping[Key, tuple[object, ...]]
    ) -> Iterator[tuple[Key, Any, Exception | None]]:
        """Each key with what the function returns for its arguments, or with its error, as they are done."""
        waiting = {self._threads.submit(self._call, function, task): key for key, task in tasks.items()}
        for future in as_completed(waiting):
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            yield waiting[future], None if error else future.result(), error

    def _call(self, function: Callable[..., object], task: tuple[object, ...]) -> object:
        try:
            return self._call_once(function, task)
        except LostProcessError:
            if self._is_stopped:
                raise
        return self._call_once(function, task)

    def _call_once(self, function: Callable[..., object], task: tuple[object, ...]) -> object:
        worker = self._take()
        try:
            return worker.call(function, *task)
        finally:
            if worker._process.returncode is None:
                self._idle.append(worker)

    def _take(self) -> WorkerProcess:
        with self._lock:
            if self._is_stopped:
                raise LostProcessError("its process was stopped")
            if not self._idle:
                self._all.append(WorkerProcess())
                return self._all[-1]
            return self._idle.pop()


def serve() -> None:
    """What a process does: it calls functions that come by stdin until it ends, or SIGTERM comes.

    Stdout is for results: what functions print goes to stderr.
    """
    tasks, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _leave)
    arrived: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(tasks, arrived), daemon=True).start()
    while True:
        _write(results, _answer(arrived.get()))


def _receive(tasks: BinaryIO, arrived: SimpleQueue[bytes]) -> None:
    """Take tasks as they come; where there is nobody left to send one, the process ends, whatever it does."""
    while (content := _read(tasks)) is not None:
        arrived.put(content)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)  # wakes it from whatever it waits for
    else:  # Windows
        _thread.interrupt_main(signal.SIGTERM)
    arrived.put(b"")


def _answer(content: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(content)
        return pickle.dumps((False, function(*arguments)))
    except Exception as error:
        return pickle.dumps((True, _make_portable(error)))


def _make_portable(error: Exception) -> Exception:
    """An error that the other process can make again: those of other libraries become text."""
    if type(error).__module__.partition(".")[0] in ("builtins", "derand"):
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _leave(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one does not disturb the tidying up
    raise SystemExit(128 + number)


def _write(pipe: Any, content: bytes) -> None:
    pipe.write(len(content).to_bytes(_SIZE_BYTES) + content)
    pipe.flush()


def _read(pipe: Any) -> bytes | None:
    """The next message; None where there is none any more."""
    head = pipe.read(_SIZE_BYTES)
    size = int.from_bytes(head)
    content: bytes = pipe.read(size) if len(head) == _SIZE_BYTES else b""
    return content if len(head) == _SIZE_BYTES and len(content) == size else None


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait while a process is started, which keeps it away from that process for good."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _describe_end(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"
