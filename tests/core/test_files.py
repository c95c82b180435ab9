"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from derand._core.files import (
    fill_when_done,
    is_half_filled,
    replace_when_done,
    require_folder,
    require_plain,
    require_writable,
    restore_folder,
)

on_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no owners, modes, pipes and locks of this kind")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")

BEGIN_AND_WAIT = """
import sys, time
from derand._core.files import replace_when_done
with replace_when_done(sys.argv[1]) as draft:
    draft.write_text("half")
    print("begun", flush=True)
    time.sleep(600)
"""


def begin_writing(path: Path) -> subprocess.Popen[str]:
    """Another process that has begun to write a file and does not end."""
    process = subprocess.Popen([sys.executable, "-c", BEGIN_AND_WAIT, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def end_hard(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    """Until the block ends, an older file stays as it was."""
    path = tmp_path / "note.txt"
    path.write_text("old")
    with replace_when_done(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
        assert draft.parent == tmp_path
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_removes_the_draft(error: type[BaseException], tmp_path: Path) -> None:
    """Whatever ends the block early, nothing new is left behind."""

    def write_and_fail() -> None:
        with replace_when_done(tmp_path / "note.txt") as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert not list(tmp_path.iterdir())


@on_posix
def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """The new file is as readable for others as any other new file."""
    with replace_when_done(tmp_path / "note.txt") as draft:
        draft.write_text("x")
    (tmp_path / "other.txt").write_text("x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("note.txt", "other.txt")]
    assert modes[0] == modes[1]


@on_posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_a_replaced_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    """A private file stays private, also while its successor is being written."""
    path = tmp_path / "note.txt"
    path.write_text("old")
    path.chmod(mode)
    with replace_when_done(path) as draft:
        draft.write_text("new")
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@as_root
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    """Root may write into somebody's file without taking it away."""
    path = tmp_path / "note.txt"
    path.write_text("old")
    path.chmod(0o640)
    os.chown(path, 1234, 2345)
    with replace_when_done(path) as draft:
        draft.write_text("new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 2345, 0o640)


@as_root
def test_where_the_group_cannot_be_kept_another_one_gets_no_more_than_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not give files away still replaces them, and opens them to nobody new."""
    path = tmp_path / "note.txt"
    path.write_text("old")
    path.chmod(0o664)
    os.chown(path, 1234, 2345)

    def refuse(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    write_note(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@on_posix
def test_drafts_of_killed_processes_are_swept(tmp_path: Path) -> None:
    """The next to write the same file removes them; even a mere look at whether it can be written does."""
    path = tmp_path / "note.txt"
    for clean in (lambda: require_writable(path), lambda: path.write_text("x") and write_note(path)):
        process = begin_writing(path)
        end_hard(process)
        (left,) = tmp_path.glob(".note.txt.*.part")
        assert f"-{process.pid}-" in left.name
        clean()
        assert not list(tmp_path.glob(".*"))


def write_note(path: Path) -> None:
    with replace_when_done(path) as draft:
        draft.write_text("new")


@on_posix
def test_drafts_that_are_alive_or_of_others_are_not_swept(tmp_path: Path) -> None:
    """Not one that is being written, of another file, or of another machine, whose processes nobody here knows."""
    path = tmp_path / "note.txt"
    process = begin_writing(path)
    dead = begin_writing(tmp_path / "other.txt")
    end_hard(dead)
    (tmp_path / f".note.txt.00000000-{dead.pid}-0123abcd.part").touch()
    (tmp_path / ".note.txt.part").touch()
    before = set(tmp_path.iterdir())
    assert len(before) == 4
    with replace_when_done(path) as draft:
        draft.write_text("outer")
        write_note(path)
        assert draft.exists()
    assert path.read_text() == "outer"
    assert set(tmp_path.iterdir()) == {*before, path}
    end_hard(process)


@on_posix
def test_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    """It is neither replaced nor waited for."""
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path(os.devnull)):
        with pytest.raises(
            OSError, match=r"Cannot write .*: it is a pipe or a device, not a plain file\. Name a file\."
        ):
            require_writable(path)
        with pytest.raises(OSError, match="it is a pipe or a device"), replace_when_done(path):
            pass
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system does not say which file had no room; other errors keep what they say."""

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"^Cannot write .*note\.txt: No space left on device\.$"):
        write_note(tmp_path / "note.txt")
    with pytest.raises(FileNotFoundError, match="absent"), replace_when_done(tmp_path / "note.txt"):
        (tmp_path / "absent").read_text()
    assert not list(tmp_path.iterdir())


def test_a_path_is_tried_without_leaving_a_trace(tmp_path: Path) -> None:
    """A good path passes and nothing appears; a folder, or a folder that is missing, is refused."""
    require_writable(tmp_path / "note.txt")
    assert not list(tmp_path.iterdir())
    with pytest.raises(IsADirectoryError, match="is a folder"):
        require_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"Cannot write .*note\.txt: No such file"):
        require_writable(tmp_path / "absent" / "note.txt")


def test_a_folder_is_tried_without_leaving_a_trace(tmp_path: Path) -> None:
    """A folder, or one that could be made, passes and nothing appears; a file, or a folder within one, is refused."""
    (tmp_path / "note.txt").touch()
    require_folder(tmp_path)
    require_folder(tmp_path / "new" / "newer")
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
    for path in (tmp_path / "note.txt", tmp_path / "note.txt" / "results"):
        with pytest.raises(NotADirectoryError, match=r"Cannot write into .*note\.txt is not a folder"):
            require_folder(path)


@on_posix
def test_a_name_that_is_not_utf8_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """What stood there stays: records, JSON and consoles could not hold such a name afterwards."""
    path = tmp_path / os.fsdecode(b"out\xff.json")
    path.write_text("before")
    for write in (require_writable, require_folder, lambda one: replace_when_done(one).__enter__()):
        with pytest.raises(ValueError, match=r"must be UTF-8, got .*out\\xff\.json: choose another name"):
            write(path)
    assert (path.read_text(), len(list(tmp_path.iterdir()))) == ("before", 1)


@on_posix
def test_long_names(tmp_path: Path) -> None:
    """As long as the system takes them, though a draft's name is longer; beyond, the error names the target."""
    target = tmp_path / ("x" * 250 + ".txt")
    require_writable(target)
    with replace_when_done(target) as draft:
        draft.write_text("whole")
    assert [file.name for file in tmp_path.iterdir()] == [target.name]
    longer = tmp_path / ("y" * 300)
    for write in (require_writable, lambda one: replace_when_done(one).__enter__()):
        with pytest.raises(OSError, match=f"^Cannot write {longer}: File name too long.$"):
            write(longer)


def test_a_target_that_cannot_be_replaced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of another user in a shared folder, or read-only: the error names it, and not the draft beside it."""
    target = tmp_path / "out.txt"
    target.write_text("before")

    def refuse(draft: Path, place: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(draft), None, str(place))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError, match=r"^Cannot write .*/out\.txt: [^/]*$"), replace_when_done(target) as draft:
        draft.write_text("after")
    assert target.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


RESULTS = ("a.txt", "b.txt", "run.json")
FILL_AND_END = """
import os, signal, sys
from pathlib import Path
from derand._core.files import fill_when_done
replace = Path.replace
def stop_at_last(self, target):
    if self.name == "run.json" and str(target).endswith("results/run.json"):
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = stop_at_last
with fill_when_done(sys.argv[1], "run.json") as draft:
    for name in ("a.txt", "b.txt", "run.json"):
        (draft / name).write_text("new")
"""


def fill(folder: Path, text: str) -> None:
    with fill_when_done(folder, "run.json") as draft:
        for name in RESULTS:
            (draft / name).write_text(text)


@pytest.fixture
def half_filled(tmp_path: Path) -> Path:
    """A folder into which all new files but the last have moved, and the process was killed."""
    folder = tmp_path / "results"
    fill(folder, "old")
    subprocess.run([sys.executable, "-c", FILL_AND_END, str(folder)], check=False)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.txt": "new", "b.txt": "new"}
    return folder


def read_all(folder: Path) -> set[str]:
    assert {path.name for path in folder.iterdir()} == set(RESULTS)
    return {path.read_text() for path in folder.iterdir()}


@on_posix
def test_what_stood_there_before_is_put_back(half_filled: Path) -> None:
    """When it is asked for, also after the folder was moved or its files were removed by hand."""
    assert is_half_filled(half_filled)
    (half_filled / "a.txt").unlink()
    restore_folder(half_filled)
    assert read_all(half_filled) == {"old"}
    assert not is_half_filled(half_filled)
    assert list(half_filled.parent.iterdir()) == [half_filled]


@on_posix
def test_a_folder_that_others_have_filled_since_is_left_alone(half_filled: Path) -> None:
    """The file that says that all are there is there: what lies aside is of no use."""
    for name in RESULTS:
        (half_filled / name).write_text("newer")
    restore_folder(half_filled)
    assert read_all(half_filled) == {"newer"}
    assert list(half_filled.parent.iterdir()) == [half_filled]


@on_posix
def test_a_process_that_lives_is_not_disturbed(half_filled: Path) -> None:
    """Whoever moves files into the same folder is waited for."""
    import fcntl

    (draft,) = half_filled.parent.glob(".*.part")
    handle = os.open(draft, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(OSError, match="Another process is moving files into"):
        fill(half_filled, "newer")
    os.close(handle)
    fill(half_filled, "newer")
    assert read_all(half_filled) == {"newer"}


@as_root
def test_nobody_else_says_what_is_moved(half_filled: Path) -> None:
    """A draft of another user may name any file: it is neither believed nor removed."""
    (draft,) = half_filled.parent.glob(".*.part")
    os.chown(draft, 1234, 1234)
    restore_folder(half_filled)
    fill(half_filled, "newer")
    assert read_all(half_filled) == {"newer"}
    assert draft.exists()


@on_posix
@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 10_000, '{"files": ["../x"], "is_new": false}'])
def test_a_journal_that_is_damaged_is_named(content: str, half_filled: Path) -> None:
    """And what lies aside stays."""
    (draft,) = half_filled.parent.glob(".*.part")
    (draft / ".journal.json").write_text(content)
    with pytest.raises(ValueError, match=r"journal\.json is damaged: move files from"):
        restore_folder(half_filled)
    assert (draft / ".old" / "a.txt").read_text() == "old"


def test_a_file_that_cannot_be_replaced_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a link to another file system: one line names it, and files that had moved are back."""
    folder = tmp_path / "results"
    fill(folder, "old")
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target == folder / "b.txt" and self.parent.name != ".old":
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match=r"^Cannot write .*b\.txt: Invalid cross-device link\.$"):
        fill(folder, "new")
    assert read_all(folder) == {"old"}
    assert list(tmp_path.iterdir()) == [folder]


@on_posix
def test_a_pipe_or_a_device_is_not_read(tmp_path: Path) -> None:
    """Nobody waits for a writer, nor reads without end."""
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(
            OSError, match=r"^Cannot read .*: it is a pipe or a device, not a plain file\. Name a file\.$"
        ):
            require_plain(path)
