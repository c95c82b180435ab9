"""What only some systems have is not needed: nothing fails at import without it, and files are written without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import MODULES, PACKAGE

ROOT = Path(__file__).resolve().parent.parent
_HIDE = """
import builtins, os, signal, sys
import matplotlib.figure, numba, pyarrow.csv, pyarrow.parquet, rich.progress, scipy.stats, sklearn.ensemble, typer

HIDDEN = {"fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios", "tty"}
usual_import, usual_open = builtins.__import__, os.open

def refuse_hidden(name, namespace=None, *others, **options):
    importer = (namespace or {}).get("__name__", "")
    if name.split(".")[0] in HIDDEN and importer.split(".")[0] in ("derand", "experiments"):
        raise ImportError(f"{importer} imports {name}, which is not on every system")
    return usual_import(name, namespace, *others, **options)

def refuse_folders(path, *others, **options):
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        raise PermissionError("folders cannot be opened on this system")
    return usual_open(path, *others, **options)

builtins.__import__, os.open, sys.platform = refuse_hidden, refuse_folders, "win32"
for name in ("chown", "fchmod", "fchown", "fork", "getegid", "geteuid", "getgid", "getpgid", "getuid", "killpg",
             "lchown", "mkfifo", "sched_getaffinity", "setsid", "statvfs", "sysconf", "O_DIRECTORY", "O_NOFOLLOW"):
    delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
"""
_WORK = """
from pathlib import Path
from derand.app.commands import main
Path("table.csv").write_text("x,job,label\\n" + "".join(f"{row},{'ab'[row % 2]},{row // 20}\\n" for row in range(40)))
Path("model.json").write_text("an older file, which is replaced")
for arguments in (
    "train table.csv --target label -o model.json --model stumps",
    "certify model.json table.csv -o out.csv",
    "certify model.json table.csv -o out.parquet",
    "report model.json table.csv --target label -o report.html",
):
    sys.argv = ["derand", *arguments.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
print(*sorted(path.name for path in Path().iterdir()))
"""


def run_hidden(code: str, folder: Path) -> list[str]:
    """Lines that a fresh interpreter prints, in which what only some systems have is gone."""
    places = [str(PACKAGE.parent), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", _HIDE + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="nothing to hide: this system is another one")
def test_every_module_is_imported_where_a_system_lacks_owners_modes_and_signals(tmp_path: Path) -> None:
    """All of the package but the kernels of a GPU, and all of the experiments."""
    roots = [(PACKAGE.parent, path) for path in MODULES if path.parent.name != "cuda"]
    roots += [(ROOT, path) for path in (ROOT / "experiments").rglob("*.py") if path.name != "__main__.py"]
    names = [".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for root, path in roots]
    assert len(names) > 100
    run_hidden(f"from importlib import import_module\nfor name in {names}:\n    import_module(name)", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing to hide: this system is another one")
def test_files_are_written_where_a_system_lacks_owners_modes_and_signals(tmp_path: Path) -> None:
    """Train, certify and report replace files, and leave nothing else behind."""
    written = run_hidden(_WORK, tmp_path)[-1]
    assert written == "model.json out.csv out.csv.json out.parquet out.parquet.json report.html table.csv"
