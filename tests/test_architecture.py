"""The dependency order of the package, held by walking its imports."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import derand
from derand import Threat, model

PACKAGE = Path(derand.__file__).parent

# From low to high: each room may import the rooms of earlier lines, and nothing of its own line but itself.
ORDER = [
    {"_core"},
    {"kernels"},
    {"noise"},
    {"threat"},
    {"threat_text"},
    {"model"},
    {"perturbation"},
    {"certificates"},
    {"auditing", "metrics", "tables", "datasets"},
    {"train", "convert"},
    {"fitted"},
    {"explain"},
    {"frames", "plot"},
    {"estimators"},
    {"storage"},
    {"report"},
    {"distributed"},
    {"app"},
    {"__main__"},
]
SCIKIT_LEARN_ROOMS = {"estimators", "datasets", "convert"}
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")

KNOWN_CYCLES: list[set[str]] = []
"""Modules that import each other in a circle, inside functions or for types alone. This list may only get shorter."""


def name_room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_module(path: Path) -> str:
    """Its name without the package's; that of a folder is its `__init__`."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def list_imports(path: Path) -> frozenset[tuple[str, str]]:
    """Full names of all modules that a file imports, wherever in the file, each with a name out of it, or ""."""
    return frozenset(_walk_imports(path))


def _walk_imports(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_module(path)} uses a relative import, which this test does not follow"
            assert node.module is not None
            for alias in node.names:
                if node.module == "derand":
                    yield f"derand.{derand._HOMES.get(alias.name, alias.name)}", alias.name
                else:
                    yield node.module, alias.name


def list_own(path: Path) -> set[tuple[str, ...]]:
    """The modules of the package that a file imports, as parts of their names without the package's."""
    named = {name for name, _ in list_imports(path) if name.startswith("derand.")} - {"derand.__version__"}
    return {tuple(name.split(".")[1:]) for name in named}


def find_cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of modules of which each one leads to every other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found, left = set[str](), [start]
        while left:
            new = graph[left.pop()] - found
            found |= new
            left += new
        reached[start] = found
    circles = {frozenset(other for other in found if start in reached[other]) for start, found in reached.items()}
    return [set(one) for one in circles if len(one) > 1]


def test_audits_share_nothing_with_the_kernels() -> None:
    """They prove by other code what kernels claim: of what certifies they know the results alone."""
    for path in sorted((PACKAGE / "auditing").rglob("*.py")):
        assert "kernels" not in {parts[0] for parts in list_own(path)}
        names = {name for home, name in list_imports(path) if home.startswith("derand.certificates")}
        assert names <= {"Certificates", "Intervals", "ToleranceRadii"}


def test_audits_read_threats_by_themselves() -> None:
    """A box that is computed wrongly must not pass both: no method or property of Threat is named, nor its helpers."""
    fields = {field.name for field in dataclasses.fields(Threat)}
    forbidden = {name for name in vars(Threat) if not name.startswith("__")} - fields
    assert {"may_move", "ball_norm", "missing_budget", "resolve"} <= forbidden
    for path in sorted((PACKAGE / "auditing").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        assert not {node.attr for node in nodes if isinstance(node, ast.Attribute)} & forbidden, path.name
        taken = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "derand.threat"]
        names = {alias.name for node in taken for alias in node.names}
        assert names == ({"Threat"} if path.name == "_threat.py" else set()), path.name
        assert "perturbation" not in {room for room, *_ in list_own(path)}, path.name


def test_every_module_has_its_place_in_the_order() -> None:
    """A new module cannot appear without a line in the order above."""
    assert {name_room(path) for path in MODULES} == set(LEVEL)


def test_imports_only_go_down() -> None:
    """A module imports its own room and rooms below it, never above or beside it: so there is no cycle of rooms."""
    wrong = {
        (name_module(path), room)
        for path in MODULES
        for room, *_ in list_own(path)
        if room != name_room(path) and LEVEL[room] >= LEVEL[name_room(path)]
    }
    assert not wrong


def test_private_modules_stay_in_their_room() -> None:
    """What other rooms need of a room, its __init__ or a public module of it offers."""
    wrong = {
        (name_module(path), ".".join(parts))
        for path in MODULES
        for parts in list_own(path)
        if parts[0] != name_room(path) and any(name.startswith("_") for name in parts[1:])
    }
    assert not wrong


def test_modules_import_each_other_without_a_cycle() -> None:
    """No chain of imports leads back to where it began, those in functions and for types among them.

    A cycle that is gone is taken out of the list; a new one is not put into it.
    """
    known = {name_module(path): path for path in MODULES}
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        pairs = [(home.removeprefix("derand."), one) for home, one in list_imports(path) if home.startswith("derand.")]
        named = {f"{home}.{one}" if f"{home}.{one}" in known else home for home, one in pairs}
        graph[name] = (named & known.keys()) - {name}
    found = find_cycles(graph)
    assert [one for one in found if one not in KNOWN_CYCLES] == []
    assert [one for one in KNOWN_CYCLES if one not in found] == []


def test_cycles_are_found() -> None:
    """Through several modules; a module that merely leads to a circle is not in it."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set[str]()}
    assert find_cycles(graph) == [{"a", "b", "c"}]


def test_only_the_model_room_asks_for_classes_of_terms_and_models() -> None:
    """Everybody else asks for facts: a new term or model is then no new case anywhere."""
    known = {name for name, value in vars(model).items() if isinstance(value, type)}
    asked = [
        (name_module(path), node.lineno)
        for path in MODULES
        if name_room(path) != "model"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("isinstance", "issubclass")
        and known & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    ]
    assert not asked


def test_scikit_learn_stays_in_its_rooms() -> None:
    """scikit-learn is imported by estimators, datasets and convert alone."""
    rooms = {name_room(path) for path in MODULES for name, _ in list_imports(path) if name.split(".")[0] == "sklearn"}
    assert rooms <= SCIKIT_LEARN_ROOMS


def test_the_public_names_have_homes_that_define_them() -> None:
    """Every name that the package exports exists where the table says."""
    for name in derand.__all__:
        assert getattr(derand, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = derand.nothing


def test_no_module_or_folder_is_named_like_a_public_name() -> None:
    """One of the same name, `audit/` beside `derand.audit`, would hide a name that is imported on first use."""
    named = {part.removesuffix(".py") for path in MODULES for part in path.relative_to(PACKAGE).parts}
    assert not named & set(derand._HOMES)
