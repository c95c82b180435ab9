"""Compiled code is kept on disk where that is possible; where it is not, everything works, and one warning says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from derand.kernels import compiling

ROOT = Path(__file__).resolve().parents[2]
_REFUSED = """
from numba.core import caching
def refuse(locator):
    raise PermissionError("a read-only image, and no home")
caching._CacheLocator.ensure_cache_path = refuse
"""
_IMPORT_ALL = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import derand.app.commands._train, derand.app.demo, derand.app.jobs, derand.noise
    import derand.kernels.tails.numba_backend
    import experiments.baselines.knapsack, experiments.baselines.monte_carlo
    from derand.kernels.cells.interval import subtract_up
    assert subtract_up(1.0, 0.5) == 0.5
print(*[warning.message for warning in caught if "Compiled" in str(warning.message)], sep="\\n")
"""
_COMMAND = """
import sys
from derand.app.commands import make_app, run_app
app = make_app("subtract", "Subtracts.")
@app.command()
def subtract() -> None:
    from derand.kernels.cells.interval import subtract_up
    print(subtract_up(1.0, 0.5))
sys.argv = ["subtract"]
run_app(app)
"""
_SUBTRACT = """
from derand.kernels.cells.interval import subtract_up
subtract_up(1.0, 0.5)
stats = subtract_up.entry.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run_python(code: str, *, expected: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter at the root of the clone, where the experiments are found."""
    command, surroundings = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=surroundings, check=False)
    assert done.returncode == expected, done.stderr
    return done


def test_without_a_writable_folder_everything_is_imported_and_one_warning_says_so() -> None:
    """Also the rooms above and the experiments; the warning gives the cure, in one line."""
    (line,) = run_python(_REFUSED + _IMPORT_ALL).stdout.splitlines()
    assert re.search("not kept on disk.*Set NUMBA_CACHE_DIR", line)


def test_a_command_says_it_in_one_line() -> None:
    """No place in the code and no line of source; then the command goes on."""
    done = run_python(_REFUSED + _COMMAND)
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("Warning: Compiled code is not kept on disk")
    assert done.stdout == "0.5\n"


def test_who_computes_nothing_does_not_import_the_compiler() -> None:
    """Modules with compiled functions can be imported without numba; it comes with the first call."""
    code = (
        "import sys, derand.certificates, derand.train.additive\nassert 'numba' not in sys.modules\n"
        "from derand.kernels.cells.interval import subtract_up\nsubtract_up(1.0, 0.5)\nassert 'numba' in sys.modules"
    )
    run_python(code)


def test_a_function_that_compiled_ones_call_can_be_called_from_python_too() -> None:
    """It is then compiled on its own; both give the same."""
    inner = compiling.compile_loop()(_add_one)
    outer = compiling.compile_loop()(lambda x: inner(x) * 2)
    assert outer.py_func(3) == outer(3) == 8
    assert inner(3) == _add_one(3) == 4


def _add_one(x: int) -> int:
    return x + 1


def test_a_second_process_does_not_compile_again(tmp_path: Path) -> None:
    """Where a folder is writable, code is kept there, named after the file and the line of its function."""
    first, second = (run_python(_SUBTRACT, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split() for _ in range(2))
    assert (first, second) == (["0", "1"], ["1", "0"])
    assert any(re.match(r"interval\.subtract_up-\d+\.py3", path.name) for path in tmp_path.rglob("*.nbi"))


def test_an_error_of_the_compiler_itself_is_not_hidden() -> None:
    """Only what is cured by doing without a cache is."""

    def fail(function: object, *, cache: bool = False) -> None:
        raise RuntimeError("no such target")

    with pytest.raises(RuntimeError, match="no such target"):
        compiling.compile_once(fail, abs)


@pytest.mark.parametrize("folder", ["src", "experiments"])
def test_only_one_module_asks_for_a_cache(folder: str) -> None:
    """Whoever compiles does it there, so that a machine without a cache is one case in one place."""
    wanted = re.compile(r"\bnjit\b|cache=True")
    asking = [path.name for path in (ROOT / folder).rglob("*.py") if wanted.search(path.read_text("utf-8"))]
    assert asking == (["compiling.py"] if folder == "src" else [])


_TELL = """
from derand.kernels import compiling
from derand._core.progress import listen
compiling.MOMENT = 0.0
with listen(print):
    from derand.kernels.cells.interval import subtract_up
    subtract_up(1.0, 0.5)
    subtract_up(1, 2)
    print("done")
"""


def test_compiling_is_told_once_and_only_where_it_happens(tmp_path: Path) -> None:
    """The first process on a machine says so, the second one has nothing to say."""
    first, second = (run_python(_TELL, NUMBA_CACHE_DIR=str(tmp_path)).stdout.splitlines() for _ in range(2))
    assert first == ["compiling, once on this machine (about ten seconds) ...", "done"]
    assert second == ["done"]


def test_a_moment_of_compiling_is_not_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is what others compile; depth and time are counted, so that one short function after another adds up."""
    heard: list[str] = []

    class Told:
        def __init__(self, module: str) -> None:
            function = type("Function", (), {"__module__": module})
            self.data = {"dispatcher": type("Dispatcher", (), {"py_func": function})}

    now = iter([0.0, 0.3, 0.35, 1.0, 2.0, 3.0, 4.0]).__next__
    monkeypatch.setattr(compiling, "announce", heard.append)
    monkeypatch.setattr(compiling.time, "monotonic", now)
    listener, ours, others = compiling._CompileListener(), Told("derand.kernels.worst_case.steps"), Told("elsewhere")
    listener.on_start(ours)  # at 0.0
    listener.on_end(ours)  # at 0.3
    listener.on_start(others)
    assert heard == []
    listener.on_start(ours)  # at 1.0
    assert heard == []
    listener.on_start(ours)  # called by the former, at 2.0
    assert heard == ["compiling, once on this machine (about ten seconds) ..."]
    listener.on_end(ours)
    listener.on_end(ours)
    assert len(heard) == 1
