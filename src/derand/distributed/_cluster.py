"""The Dask cluster that does the work: one that runs already, or one of worker processes on this machine.

Owns connecting, and what is said where that fails or versions differ. Whoever can connect to a cluster can run code in
it: one that is started here talks by TLS, with keys that exist in its processes alone. Must not know what is computed.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import derand
from derand._core.later import import_extra
from derand._core.origin import Cell, Fitted

_PATIENCE = "10s"


def get_current_client() -> Any:
    """The Dask client that is there, or None."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def connect(scheduler: str | None = None, workers: int | None = None, memory: str | None = None) -> Iterator[Cell]:
    """A client of a scheduler that runs, or of worker processes that are started here and end with the block.

    Parameters
    ----------
    scheduler : str or None
        Its address, such as "tls://10.0.0.1:8786". Where it is that of the client that is there, this client is used;
        keys and certificates for others come from Dask's configuration (`distributed.comm.tls`).
    workers : int or None
        How many processes to start, of one thread each, where no scheduler is named. They take connections of this
        program alone.
    memory : str or None
        Limit of each of these, such as "2GB".
    """
    import_extra("distributed", "dask", "Work on many machines")
    if scheduler is not None and workers is not None:
        raise ValueError("Name a scheduler or a number of workers to start here, not both.")
    if workers is not None and workers < 1:
        raise ValueError(f"`workers` must be 1 or larger, got {workers}.")
    with ExitStack() as stack:
        if scheduler is None:
            scratch = stack.enter_context(TemporaryDirectory(prefix="derand-", ignore_cleanup_errors=True))
            cluster = stack.enter_context(_start_undisturbed(_start_cluster, workers or 1, memory, scratch))
            client = stack.enter_context(cluster.get_client())
        else:
            client = _reach(scheduler, stack)
        require_same_versions(client)
        yield client


def _reach(scheduler: str, stack: ExitStack) -> object:
    """A client of a scheduler that runs: the one that is there already, or a new one."""
    from distributed import Client

    known = get_current_client()
    if known is not None and known.scheduler is not None and known.scheduler.address == scheduler:
        return known
    try:
        return stack.enter_context(Client(scheduler, timeout=_PATIENCE))
    except (OSError, ValueError, TypeError) as error:  # TypeError: tls:// without keys
        reason = " ".join(str(error).split())[:200]
        raise ConnectionError(
            f"The scheduler {scheduler} cannot be reached: {reason}. Start one by `dask scheduler`, and name the "
            "address that it prints; tls:// needs keys in Dask's configuration (docs/scale.md)."
        ) from None


def _start_cluster(workers: int, memory: str | None, scratch: str) -> Any:
    """Worker processes that talk by TLS, whose HTTP servers answer nothing.

    What does not fit into memory goes to `scratch`, as pickles, and modules are looked for there: nobody else may write
    to it.
    """
    import dask
    from distributed.security import Security

    from distributed import LocalCluster

    import_extra("cryptography", "dask", "A cluster on this machine")
    with dask.config.set({"distributed.scheduler.http.routes": [], "temporary-directory": scratch}):
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            security=Security.temporary(),
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            local_directory=scratch,
            config={"distributed.worker.http.routes": []},  # of workers that are started again, too
            silence_logs=logging.CRITICAL,  # errors of tasks are told by whoever asked for them
            **({} if memory is None else {"memory_limit": memory}),
        )


def _start_undisturbed(start: Callable[..., object], *arguments: object) -> Any:
    """Start processes that an interrupt from the keyboard does not reach: it is for whoever started them."""
    if threading.current_thread() is not threading.main_thread():
        return start(*arguments)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which new processes keep
    try:
        return start(*arguments)
    finally:
        signal.signal(signal.SIGINT, before)


def require_same_versions(client: Fitted) -> None:
    """Refuse workers that would compute with another version of this package."""
    found = client.run(_read_version)
    others = {worker: version for worker, version in found.items() if version != derand.__version__}
    if others:
        worker, version = next(iter(others.items()))
        what = "no derand" if version is None else f"derand {version}"
        raise ConnectionError(
            f"Workers must have the same version as this program, derand {derand.__version__}, but {worker} has {what}"
            f" ({len(others)} of {len(found)} workers differ): install the same version everywhere."
        )


def _read_version() -> str | None:
    try:
        import derand as found
    except ImportError:
        return None
    return str(found.__version__)
