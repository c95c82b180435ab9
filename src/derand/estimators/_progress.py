"""Progress of long training on the terminal. Must not know what is trained."""

from __future__ import annotations

from collections.abc import Iterator


def count_rounds(n_rounds: int, title: str, verbose: bool) -> Iterator[int]:
    """0, 1, ..., with a bar on standard error where `verbose` is true."""
    if not verbose:
        yield from range(n_rounds)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(range(n_rounds), description=title, console=Console(stderr=True))
