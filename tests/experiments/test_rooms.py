"""What experiments may import: public names of the package, and public names of each other's rooms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import derand
import experiments

FOLDER = Path(experiments.__file__).parent
SHARED = {"derand._core"}
"""Types of arrays and the like, which all code of the repository shares."""


def list_imports(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below a folder with each name it imports, modules and what is taken from them."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} uses a relative import, which this test does not follow"
                yield from ((path, f"{node.module}.{alias.name}") for alias in node.names)


def find_private_module(name: str) -> str | None:
    """The name up to its first private part; None where all parts are public."""
    parts = name.split(".")
    at = next((place for place, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None)
    return None if at is None else ".".join(parts[: at + 1])


def test_experiments_use_public_names_of_the_package() -> None:
    """No private module of a room of derand."""
    used = {find_private_module(name) for _, name in list_imports(FOLDER) if name.startswith("derand.")} - {None}
    assert used == SHARED


def test_rooms_of_the_experiments_use_public_names_of_each_other() -> None:
    """A private module is imported within its own folder alone; those at the top serve all."""
    wrong = []
    for path, name in list_imports(FOLDER):
        private = find_private_module(name) if name.startswith("experiments.") else None
        if private is not None and not path.is_relative_to(FOLDER.parent.joinpath(*private.split(".")[:-1])):
            wrong.append((path.name, name))
    assert not wrong


def test_the_package_does_not_know_the_experiments() -> None:
    """Users have the package alone."""
    package = Path(derand.__file__).parent
    assert not [path.name for path, name in list_imports(package) if name.split(".")[0] == "experiments"]
