"""Writing files whole or not at all. Must not know what is in them.

What is being written stands beside its target as a draft, `.NAME.HOST-PROCESS-TOKEN.part`, and is locked for as long as
its process lives. A draft that is not locked was left behind by a process that was killed: whoever writes the same
target next, on the same machine, removes it. Where files cannot be locked (Windows, some network folders) nothing is
swept; where there are no owners and modes (Windows) none are kept.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]
_LONG_NAME = 200
"""Bytes of a name that its draft bears whole: with all that is added, systems take 255."""


@contextmanager
def replace_when_done(path: PathLike) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes the place of `path` when the block ends without an error.

    Otherwise it is removed, and what stood at `path` before stays as it was. A file that is replaced keeps its mode,
    and its owner where the system allows that. An error of the system that names no file, such as a full disk, is taken
    for one of writing this file, and gets its name.

    `path`: a folder that is missing is an error, not created; a pipe or a device is refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_when_done(Path(folder) / "note.txt") as draft:
    ...         _ = draft.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['note.txt']
    """
    target = _find_target(path)
    before = target.stat() if target.exists() else None
    with _start_draft(target, path) as draft, _name_target(path, draft):
        yield draft
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        if before is not None:
            _keep_access(draft, before)
        draft.replace(target)


@contextmanager
def _name_target(path: PathLike, written: Path) -> Iterator[None]:
    """Let errors of the system about what is being written, or about no file, name the path that was asked for."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(written)):
            raise
        raise type(error)(f"Cannot write {os.fspath(path)}: {os.strerror(error.errno)}.") from None


@contextmanager
def fill_when_done(folder: PathLike, last: str) -> Iterator[Path]:
    """A new folder beside `folder` to write files into; they move there when the block ends without an error.

    Otherwise they are removed, and what stood there before stays as it was. Files of the same names are replaced, each
    one whole; others stay.

    `folder`: made where it is missing; the folder that it lies in must exist; `last`: name of the file that says that
    all are there: what stands in its place goes first, and it comes last.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with fill_when_done(Path(place) / "results", "note.txt") as draft:
    ...         _ = (draft / "note.txt").write_text("whole")
    ...     [str(file.relative_to(place)) for file in Path(place).rglob("*.txt")]
    ['results/note.txt']
    """
    require_folder(folder)
    target = Path(os.path.realpath(folder))
    _sweep_drafts(target)
    draft = target.with_name(f"{_begin_name(target)}{os.getpid()}-{secrets.token_hex(4)}.part")
    lock: int | None = None
    try:
        try:
            draft.mkdir()
        except OSError as error:
            raise type(error)(f"Cannot write into {os.fspath(folder)}: {error.strerror}.") from None
        lock = _lock_folder(draft)
        yield draft
        _move_files(draft, target, last)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock_folder(folder: Path) -> int | None:
    """The open folder that locks it, where the system can lock."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _move_files(draft: Path, target: Path, last: str) -> None:
    """Move all files of a folder into another one, `last` in the end."""
    files = sorted(draft.iterdir(), key=lambda file: (file.name == last, file.name))
    places = [_find_target(target / file.name) for file in files]
    target.mkdir(exist_ok=True)
    (target / last).unlink(missing_ok=True)
    for file, place in zip(files, places, strict=True):
        if place.exists():
            _keep_access(file, place.stat())
        file.replace(place)


def require_writable(path: PathLike, *inputs: PathLike) -> None:
    """Refuse a path that could not be written, or is an input, before the work whose result it is for."""
    for source in inputs:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise ValueError(f"The output {os.fspath(path)} is also an input, which would be lost: name another file.")
    with _start_draft(_find_target(path), path):
        pass


def require_folder(path: PathLike) -> None:
    """Refuse a path that is no folder and cannot become one, before the work whose results it is for."""
    require_utf8(path)
    target = Path(path)
    nearest = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"Cannot write into {os.fspath(path)}: {nearest} is not a folder. Name a folder.")


def require_utf8(path: PathLike) -> None:
    """Refuse a name that is not UTF-8 before anything is written: records, JSON and consoles hold text alone."""
    name = os.fspath(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
        raise ValueError(f"The name of a file must be UTF-8, got {shown}: choose another name.") from None


def _find_target(path: PathLike) -> Path:
    """The file to be replaced in the end."""
    require_utf8(path)
    target = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    with _name_target(path, target), suppress(FileNotFoundError, NotADirectoryError):
        os.stat(target)  # a name may be too long, or nobody may look
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {os.fspath(path)}: it is a folder. Name a file.")
    if target.exists() and not target.is_file():
        raise OSError(f"Cannot write {os.fspath(path)}: it is a pipe or a device, not a plain file. Name a file.")
    return target


@contextmanager
def _start_draft(target: Path, path: PathLike) -> Iterator[Path]:
    """A new, empty file beside the target, locked; removed in the end unless it took another name."""
    _sweep_drafts(target)
    draft = target.with_name(f"{_begin_name(target)}{os.getpid()}-{secrets.token_hex(4)}.part")
    lock: int | None = None
    try:
        with _name_target(path, draft):
            lock = _create_locked(draft, is_private=target.exists())
        yield draft
    finally:
        with suppress(OSError):  # what went wrong before is what counts
            draft.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _begin_name(target: Path) -> str:
    """How the names of this machine's drafts of a file begin: a process number says nothing on another machine."""
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    name = target.name.encode(errors="surrogateescape")
    own = target.name if len(name) <= _LONG_NAME else hashlib.sha256(name).hexdigest()
    return f".{own}.{host}-"


def _create_locked(draft: Path, *, is_private: bool) -> int | None:
    """Create a draft; the open file that locks it, where the system can lock.

    What replaces a file may be read by nobody else until it has that file's mode.
    """
    while True:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if is_private else 0o666)
        if fcntl is None:
            os.close(handle)  # an open file could not be renamed there
            return None
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)  # swept by another process in the moment before it was locked


def _sweep_drafts(target: Path) -> None:
    """Remove drafts of the same file whose processes were killed: nobody holds their locks."""
    if fcntl is None:
        return
    name = re.compile(re.escape(_begin_name(target)) + r"\d+-[0-9a-f]{8}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        stale = [entry.path for entry in entries if name.fullmatch(entry.name) and not entry.is_symlink()]
        for draft in stale:
            _remove_unlocked(draft)


def _remove_unlocked(draft: str) -> None:
    with suppress(OSError):  # gone, of another user, or locked: its process lives
        is_folder = os.path.isdir(draft)
        handle = os.open(draft, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_folder:
                shutil.rmtree(draft, ignore_errors=True)
            else:
                os.unlink(draft)
        finally:
            os.close(handle)


def _keep_access(draft: Path, before: os.stat_result) -> None:
    """Give a draft the owner, the group and the mode of the file that it replaces, as far as this user may.

    Where the group cannot be kept, another group gets no more than everybody has.
    """
    if not hasattr(os, "chown"):
        return
    mode, now = stat.S_IMODE(before.st_mode), draft.stat()
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.chown(draft, before.st_uid, before.st_gid)
        except PermissionError:
            mode &= 0o777
            try:
                os.chown(draft, -1, before.st_gid)
            except PermissionError:
                mode = (mode & 0o707) | (mode & 0o007) << 3
    with suppress(PermissionError):  # a file system without modes
        os.chmod(draft, mode)
