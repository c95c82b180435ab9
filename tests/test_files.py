"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from derand.files import replace_when_done, require_folder, require_writable


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


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes of this kind")
def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """The new file is as readable for others as any other new file."""
    with replace_when_done(tmp_path / "note.txt") as draft:
        draft.write_text("x")
    (tmp_path / "other.txt").write_text("x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("note.txt", "other.txt")]
    assert modes[0] == modes[1]


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
