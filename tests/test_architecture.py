"""The dependency order of the package, held by walking its imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import derand

PACKAGE = Path(derand.__file__).parent

# Each room may import the rooms of later lines, and nothing of its own line but itself.
ORDER = [
    {"cli"},
    {"reproduce", "bench", "jobs", "demo"},
    {"report"},
    {"plot"},
    {"storage"},
    {"baselines"},
    {"estimators"},
    {"importers"},
    {"metrics"},
    {"certificates"},
    {"ensemble"},
    {"noise", "kernels", "datasets", "frames"},
    {"files", "interval", "normal", "text", "threads"},
]
SCIKIT_LEARN_ROOMS = {"estimators", "baselines", "importers", "datasets"}
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_module(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def walk_imports(path: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_module(path)} uses a relative import, which this test does not follow"
            assert node.module is not None
            if node.module == "derand":
                yield from (f"derand.{derand._HOMES.get(alias.name, alias.name)}" for alias in node.names)
            else:
                yield node.module


def rooms_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in walk_imports(path) if name.startswith("derand.")} - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_every_module_has_its_place_in_the_order(path: Path) -> None:
    """A new module cannot appear without a line in the order above."""
    assert name_room(path) in LEVEL


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_imports_only_go_down(path: Path) -> None:
    """A module imports its own room and rooms below it, never above or beside it."""
    own = name_room(path)
    wrong = {room for room in rooms_imported(path) if room != own and LEVEL[room] <= LEVEL[own]}
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_scikit_learn_stays_in_its_rooms(path: Path) -> None:
    """scikit-learn is imported by estimators, baselines, importers and datasets alone."""
    imports_it = any(name.split(".")[0] == "sklearn" for name in walk_imports(path))
    assert not imports_it or name_room(path) in SCIKIT_LEARN_ROOMS


def test_the_public_names_have_homes_that_define_them() -> None:
    """Every name that the package exports exists where the table says."""
    for name in derand.__all__:
        assert getattr(derand, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = derand.nothing


def test_no_module_is_named_like_a_public_function() -> None:
    """A module of the same name would hide a lazily exported name."""
    assert not {path.stem for path in MODULES} & set(derand._HOMES)
