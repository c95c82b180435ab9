"""Reading, working and writing at the same time: one batch is read ahead, and one written behind, by a thread each.

Owns the order: what is raised is what reading, working and writing one batch after the other would raise first, and
when a block ends, however it ends, no thread reads or writes any more. Must not know what batches hold.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from derand._core.files import PathLike
from derand.tables import names_stream

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_pipeline(
    items: Generator[Item, None, None],
    work: Callable[[Item], Result],
    write: Callable[[Result], None],
    done: Callable[[Result], None],
    *,
    data: PathLike,
    output: PathLike,
    n_threads: int,
) -> None:
    """Work on items one after the other while the next is read and the last result is written.

    `items`: what reads; closed in the end; `work`: from an item to what is written of it; `done`: called with each
    result that is written; `data`, `output`: what is read and written: a stream is waited for and written to by nobody
    but the caller's thread, so that rows go out as they come; `n_threads`: with one thread all is done in turn.
    """
    ahead, behind = (n_threads > 1 and not names_stream(path) for path in (data, output))
    with read_ahead(items, by_thread=ahead) as coming, write_behind(write, done, by_thread=behind) as hand_over:
        for item in coming:
            hand_over(work(item))


@contextmanager
def read_ahead(items: Generator[Item, None, None], *, by_thread: bool) -> Iterator[Iterator[Item]]:
    """The same items, each made by a thread while the one before it is worked on.

    `items`: closed in the end; `by_thread`: if not, items are made when they are asked for.
    """
    try:
        if not by_thread:
            yield items
            return
        with ThreadPoolExecutor(1, "read-ahead") as pool:
            yield _take_ahead(items, pool)
    finally:
        items.close()


def _take_ahead(items: Iterator[Item], pool: ThreadPoolExecutor) -> Iterator[Item]:
    end: Any = object()
    coming: Future[Item] = pool.submit(next, items, end)
    while (item := coming.result()) is not end:
        coming = pool.submit(next, items, end)
        yield item


@contextmanager
def write_behind(
    write: Callable[[Item], None], done: Callable[[Item], None], *, by_thread: bool
) -> Iterator[Callable[[Item], None]]:
    """What takes items and lets a thread write each while the next one is worked on, one at a time.

    `write`: called by that thread, in order; `done`: called by whoever hands over items, with each that is written;
    `by_thread`: if not, each is written when it is handed over.
    """
    if not by_thread:

        def write_now(item: Item) -> None:
            write(item)
            done(item)

        yield write_now
        return
    last: list[tuple[Item, Future[None]]] = []

    def finish() -> None:
        if last:
            item, writing = last.pop()
            writing.result()
            done(item)

    with ThreadPoolExecutor(1, "write-behind") as pool:

        def write_soon(item: Item) -> None:
            finish()
            last.append((item, pool.submit(write, item)))

        try:
            yield write_soon
        finally:
            finish()  # where both failed, writing the last batch came before working on this one
