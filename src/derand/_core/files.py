"""Writing files, and folders of files, whole or not at all; opening plain files. Must not know what is in them.

What is being written stands beside its target as a draft, `.NAME.HOST-PROCESS-TOKEN.part`, and is locked for as long as
its process lives. A draft that is not locked was left behind by a process that was killed: whoever writes the same
target next, on the same machine, removes it. Where files cannot be locked (Windows, some network folders) nothing is
swept; where there are no owners and modes (Windows) none are kept.

Files of one folder that belong together are written into a draft that is a folder. Before they move, a journal of
their names is written into the draft. Then old files move into the draft, the one that says that all are there before
the others, and new ones take their places, that one after the others. Where it is missing and there is a journal, a
process ended in between: `restore_folder` puts the old files back.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedReader
from pathlib import Path
from typing import TypedDict

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]
_LONG_NAME = 200
"""Bytes of a name that its draft bears whole: with all that is added, systems take 255."""
_JOURNAL, _OLD = ".journal.json", ".old"
_MAX_JOURNAL_BYTES = 2**20


class _Journal(TypedDict):
    """What moves from a draft into its folder."""

    files: list[str]
    """Their names; the last one says that all are there."""
    is_new: bool
    """Whether the folder did not exist before."""


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

    Otherwise they are removed, and what stood there before stays as it was, whatever ends the process. Files of the
    same names are replaced, and keep their modes and owners as in `replace_when_done`; others stay.

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
    restore_folder(folder)
    target = Path(os.path.realpath(folder))
    _sweep_drafts(target)
    home = target if os.path.ismount(target) else target.parent  # files move only within a file system
    draft = home / f"{_begin_name(target)}{os.getpid()}-{secrets.token_hex(4)}.part"
    lock: int | None = None
    try:
        try:
            draft.mkdir(mode=0o700)
        except OSError as error:
            raise type(error)(f"Cannot write into {os.fspath(folder)}: {error.strerror}.") from None
        lock = _lock_folder(draft)
        yield draft
        _move_files(draft, target, last)
    finally:
        try:
            _settle(draft, target)
        except BaseException:  # such as SIGTERM, which comes once
            _settle(draft, target)
            raise
        finally:
            if lock is not None:
                os.close(lock)


def restore_folder(folder: PathLike) -> None:
    """Put back what stood in a folder before a process that was killed while files moved there.

    OSError where that process lives: another one is moving files into the same folder.
    """
    _restore(Path(os.path.realpath(folder)), None)


def is_half_filled(folder: PathLike) -> bool:
    """Whether `restore_folder` has something to do."""
    return any(_find_journals(Path(os.path.realpath(folder))))


def _restore(target: Path, own: Path | None) -> None:
    for draft in _find_journals(target):
        if draft == own:
            continue
        try:
            lock = _lock_folder(draft, waits=False)
        except FileNotFoundError:  # another process has done it
            continue
        except BlockingIOError:
            raise OSError(f"Another process is moving files into {target}: wait until it ends.") from None
        try:
            _settle(draft, target)
        finally:
            if lock is not None:
                os.close(lock)


def _find_journals(target: Path) -> list[Path]:
    """Drafts of a folder from which files were being moved, of any machine, of this user."""
    found = []
    for home in (target.parent, target):
        with suppress(OSError), os.scandir(home) as entries:
            drafts = [Path(entry.path) for entry in entries if _names_draft(entry.name, target)]
            found += [draft for draft in drafts if _is_own(draft) and (draft / _JOURNAL).exists()]
    return found


def _is_own(draft: Path) -> bool:
    """Whether a draft is a folder of this user: nobody else may say what is moved."""
    with suppress(OSError):
        found = draft.lstat()
        return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())
    return False


def _lock_folder(folder: Path, *, waits: bool = True) -> int | None:
    """The open folder that locks it, where the system can lock."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # a file system without locks
        pass
    return handle


def _move_files(draft: Path, target: Path, last: str) -> None:
    """Move all files of a draft into its folder; `_settle` undoes it wherever it ends."""
    names = sorted((file.name for file in draft.iterdir()), key=lambda name: (name == last, name))
    targets = {name: _find_target(target / name) for name in names}
    for name in names:
        _synchronize(draft / name)
    if names:
        _write_journal(draft, {"files": names, "is_new": not target.exists()})
    _restore(target, draft)
    target.mkdir(exist_ok=True)
    (draft / _OLD).mkdir()
    for name in reversed(names):
        with _name_file(target / name):
            if targets[name].exists():
                _keep_access(draft / name, targets[name].stat())
                targets[name].replace(draft / _OLD / name)
    for name in names:
        with _name_file(target / name):
            (draft / name).replace(targets[name])
            _synchronize(targets[name].parent)


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Let errors of the system name the file that could not be replaced."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"Cannot write {path}: {error.strerror or error}.") from None


def _settle(draft: Path, target: Path) -> None:
    """Remove a draft; before that, move files back where the last of them did not arrive."""
    if not os.path.isdir(draft):
        return
    journal = _read_journal(draft)
    if journal is not None:
        try:
            _move_back(draft, target, journal)
        except OSError as error:
            raise type(error)(
                f"Cannot put back what stood in {target} before a process that was stopped: "
                f"{error.strerror or error}. It lies in {draft}."
            ) from None
        (draft / _JOURNAL).unlink()
    shutil.rmtree(draft, ignore_errors=True)


def _move_back(draft: Path, target: Path, journal: _Journal) -> None:
    """Undo `_move_files` from wherever it ended, or this function itself."""
    names = journal["files"]
    targets = {name: _find_target(target / name) for name in names}
    if targets[names[-1]].exists():
        return  # all is new, or nothing was moved yet, or all is old again
    for name in names:
        if not (draft / name).exists():
            if targets[name].exists():
                targets[name].replace(draft / name)
            else:
                (draft / name).touch()  # removed since; what is put back below must not be taken for it
    for name in names:
        if (draft / _OLD / name).exists():
            target.mkdir(exist_ok=True)
            (draft / _OLD / name).replace(targets[name])
    if journal["is_new"]:
        with suppress(OSError):  # others have put files there
            target.rmdir()


def _write_journal(draft: Path, journal: _Journal) -> None:
    new = draft / f"{_JOURNAL}.new"
    new.write_text(json.dumps(journal), encoding="ascii")
    _synchronize(new)
    new.replace(draft / _JOURNAL)
    _synchronize(draft)


def _read_journal(draft: Path) -> _Journal | None:
    """The journal of a draft; None where nothing was moved."""
    try:
        with open_plain(draft / _JOURNAL) as stream:
            found = json.loads(stream.read(_MAX_JOURNAL_BYTES))
        journal: _Journal = {"files": found["files"], "is_new": found["is_new"]}
        if not journal["files"] or not all(Path(name).name == name for name in journal["files"]):
            raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"{draft / _JOURNAL} is damaged: move files from {draft} to where they belong.") from None
    return journal


def _synchronize(path: Path) -> None:
    """Let a file, or the names in a folder, reach the disk before what follows."""
    is_folder = path.is_dir()
    with suppress(OSError) if is_folder else nullcontext():  # not every system opens folders
        handle = os.open(path, os.O_RDONLY if is_folder or os.name != "nt" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def open_plain(path: PathLike) -> BufferedReader:
    """Open a plain file for reading; a pipe or a device is refused, not waited for."""
    require_plain(path)
    return Path(path).open("rb")


def require_plain(path: PathLike) -> None:
    """Refuse to read a pipe or a device; what does not exist is an error of the system."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(f"Cannot read {os.fspath(path)}: it is a pipe or a device, not a plain file. Name a file.")


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
    begin = _begin_name(target)
    for home in (target.parent, target):
        with suppress(OSError), os.scandir(home) as entries:
            drafts = [entry for entry in entries if _names_draft(entry.name, target) and not entry.is_symlink()]
            for draft in drafts:
                if draft.name.startswith(begin) and not os.path.exists(os.path.join(draft.path, _JOURNAL)):
                    _remove_unlocked(draft.path)


def _names_draft(name: str, target: Path) -> bool:
    """Whether a name is one of a draft of this file or folder, of any machine."""
    return re.fullmatch(re.escape(f".{target.name}.") + r"[0-9a-f]{8}-\d+-[0-9a-f]{8}\.part", name) is not None


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
