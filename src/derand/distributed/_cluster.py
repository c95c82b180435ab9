"""The Dask cluster that does the work: one that runs already, or one of worker processes on this machine.

Owns connecting, and what is said where that fails or versions differ. Must not know what is computed.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import derand

_PATIENCE = "10s"


def find_client() -> Any:
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
def connect(scheduler: str | None = None, workers: int | None = None, memory: str | None = None) -> Iterator[Any]:
    """A client of a scheduler that runs, or of worker processes that are started here and end with the block.

    Parameters
    ----------
    scheduler : str or None
        Its address, such as "tcp://10.0.0.1:8786".
    workers : int or None
        How many processes to start, of one thread each, where no scheduler is named.
    memory : str or None
        Limit of each of these, such as "2GB".
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError(
            "Work on many machines or processes needs Dask: install `derand[dask]` (pip install 'derand[dask]')."
        ) from None
    if scheduler is not None and workers is not None:
        raise ValueError("Name a scheduler or a number of workers to start here, not both.")
    if workers is not None and workers < 1:
        raise ValueError(f"`workers` must be 1 or larger, got {workers}.")
    with ExitStack() as stack:
        if scheduler is None:
            limits = {} if memory is None else {"memory_limit": memory}
            cluster = _start_undisturbed(
                LocalCluster,
                n_workers=workers or 1,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,  # errors of tasks are told by whoever asked for them
                **limits,
            )
            stack.enter_context(cluster)
            client = stack.enter_context(Client(cluster))
        else:
            try:
                client = stack.enter_context(Client(scheduler, timeout=_PATIENCE))
            except (OSError, ValueError) as error:
                reason = " ".join(str(error).split())[:200]
                raise ConnectionError(
                    f"The scheduler {scheduler} cannot be reached: {reason}. Start one by `dask scheduler`, and name "
                    "the address that it prints."
                ) from None
        require_same_versions(client)
        yield client


def _start_undisturbed(start: Callable[..., Any], **options: Any) -> Any:
    """Start processes that an interrupt from the keyboard does not reach: it is for whoever started them."""
    if threading.current_thread() is not threading.main_thread():
        return start(**options)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which new processes keep
    try:
        return start(**options)
    finally:
        signal.signal(signal.SIGINT, before)


def require_same_versions(client: Any) -> None:
    """Refuse workers that would compute with another version of this package."""
    found = client.run(_tell_version)
    others = {worker: version for worker, version in found.items() if version != derand.__version__}
    if others:
        worker, version = next(iter(others.items()))
        what = "no derand" if version is None else f"derand {version}"
        raise RuntimeError(
            f"Workers must have the same version as this program, derand {derand.__version__}, but {worker} has {what}"
            f" ({len(others)} of {len(found)} workers differ): install the same version everywhere."
        )


def _tell_version() -> str | None:
    try:
        import derand as found
    except ImportError:
        return None
    return str(found.__version__)
