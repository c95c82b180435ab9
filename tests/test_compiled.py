"""The key of numba's cache: it changes with all that compiled functions rest on, wherever it lies, and with no more."""

from __future__ import annotations

from pathlib import Path

import pytest

import derand
from derand.kernels import compiling
from tests.compiled import hash_compiled, list_compiled

PACKAGE = Path(derand.__file__).parent

FILES = {
    "__init__.py": "",
    "low/door.py": "def compile_loop(f):\n    from numba import njit\n    return njit(f)\n",
    "low/limits.py": "from house.words import NAME\nMOST = 3\n",
    "low/loops.py": "from house.low.door import compile_loop\nfrom house.low.limits import MOST\n"
    "from house.high import Row\n",
    "far/more.py": "def work():\n    from house.low import door\n    return door.compile_loop(work)\n",
    "words.py": "NAME = 'x'\n",
    "high.py": "from house.low import loops\nclass Row: ...\n",
}
COMPILED = {"low/door.py", "low/limits.py", "low/loops.py", "far/more.py", "words.py"}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "house"


def test_compiling_files_and_their_constants_are_found_by_content(house: Path) -> None:
    """Files that import the door, also in a function, and modules that hold their constants; not whoever calls them."""
    assert {str(path.relative_to(house)) for path in list_compiled(house)} == COMPILED


@pytest.mark.parametrize("name", FILES)
def test_the_key_changes_with_these_files_alone(house: Path, name: str) -> None:
    """A comment in another file compiles nothing again."""
    before = hash_compiled(house)
    (house / name).write_text(FILES[name] + "# changed\n")
    assert (hash_compiled(house) != before) == (name in COMPILED)


def test_a_move_changes_the_key(house: Path) -> None:
    """numba knows functions by their file."""
    before = hash_compiled(house)
    (house / "low").rename(house / "kernels")
    for path in house.rglob("*.py"):
        path.write_text(path.read_text().replace("house.low", "house.kernels"))
    assert hash_compiled(house) != before


def test_every_compiled_function_of_the_package_is_in_a_file_that_counts() -> None:
    """Of all modules that are loaded, whatever their names."""
    import derand.estimators
    import derand.report  # noqa: F401

    found = {str(path) for path in list_compiled(PACKAGE)}
    assert len(compiling.LOOPS) > 50
    files = {loop.py_func.__code__.co_filename for loop in compiling.LOOPS}
    assert {file for file in files if Path(file).is_relative_to(PACKAGE)} <= found
