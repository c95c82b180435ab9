"""Writing files whole or not at all. Must not know what is in them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PathLike = str | os.PathLike[str]


@contextmanager
def replace_when_done(path: PathLike) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes the place of `path` when the block ends without an error.

    Otherwise it is removed, and what stood at `path` before stays as it was.

    Parameters
    ----------
    path : path-like
        A folder that is missing is an error, not created.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_when_done(Path(folder) / "note.txt") as draft:
    ...         _ = draft.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['note.txt']
    """
    target, draft = _start_draft(path)
    try:
        yield draft
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def require_writable(path: PathLike, *inputs: PathLike) -> None:
    """Refuse a path that could not be written, or is an input, before the work whose result it is for."""
    for source in inputs:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise ValueError(f"The output {os.fspath(path)} is also an input, which would be lost: name another file.")
    _, draft = _start_draft(path)
    draft.unlink()


def require_folder(path: PathLike) -> None:
    """Refuse a path that is no folder and cannot become one, before the work whose results it is for."""
    target = Path(path)
    nearest = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"Cannot write into {os.fspath(path)}: {nearest} is not a folder. Name a folder.")


def _start_draft(path: PathLike) -> tuple[Path, Path]:
    """The file to be replaced in the end, and a new, empty one beside it."""
    target = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {os.fspath(path)}: it is a folder. Name a file.")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        draft.touch(exist_ok=False)
    except OSError as error:
        raise type(error)(f"Cannot write {os.fspath(path)}: {error.strerror}.") from None
    return target, draft
