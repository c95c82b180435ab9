"""The dependency order of the package, held by walking its imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import derand
from derand import model

PACKAGE = Path(derand.__file__).parent

# From low to high: each room may import the rooms of earlier lines, and nothing of its own line but itself.
ORDER = [
    {"_arrays", "_later", "progress"},
    {"threads", "processes"},
    {"files", "text", "finite", "origin", "units"},
    {"markup"},
    {"kernels"},
    {"noise"},
    {"threat"},
    {"threat_text"},
    {"model"},
    {"certificates"},
    {"auditing", "metrics", "frames", "datasets"},
    {"monte_carlo", "learn", "importers"},
    {"plot"},
    {"explaining"},
    {"estimators"},
    {"storage", "exporters"},
    {"tuning"},
    {"report"},
    {"jobs", "demo", "warming"},
    {"distributed"},
    {"cli"},
    {"__main__"},
]
SCIKIT_LEARN_ROOMS = {"estimators", "datasets", "tuning", "importers"}
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_module(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def walk_imports(path: Path, *, at_top: bool = False) -> Iterator[str]:
    """Full names of all modules that a file imports, wherever in the file or only when it is loaded."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_top else ast.walk(tree):
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


def test_audits_share_nothing_with_the_kernels() -> None:
    """They prove by other code what kernels claim: of what certifies they know the results alone."""
    for path in sorted((PACKAGE / "auditing").glob("*.py")):
        assert "kernels" not in rooms_imported(path)
        named = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        names = {alias.name for node in named if node.module == "derand.certificates" for alias in node.names}
        assert names <= {"Certificates", "Intervals", "ToleranceRadii"}


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_every_module_has_its_place_in_the_order(path: Path) -> None:
    """A new module cannot appear without a line in the order above."""
    assert name_room(path) in LEVEL


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_imports_only_go_down(path: Path) -> None:
    """A module imports its own room and rooms below it, never above or beside it: so there is no cycle of rooms."""
    own = name_room(path)
    wrong = {room for room in rooms_imported(path) if room != own and LEVEL[room] >= LEVEL[own]}
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_private_modules_stay_in_their_room(path: Path) -> None:
    """What other rooms need of a room, its __init__ or a public module of it offers."""
    own = name_room(path)
    parts = [name.split(".")[1:] for name in walk_imports(path) if name.startswith("derand.")]
    wrong = [names for names in parts if names[0] != own and any(name.startswith("_") for name in names[1:])]
    assert not wrong


def test_modules_import_each_other_without_a_cycle() -> None:
    """Also within a room no chain of imports at the top of files leads back to where it began."""
    names = {path: ".".join(["derand", *path.relative_to(PACKAGE).with_suffix("").parts]) for path in MODULES}
    graph = {name: set(walk_imports(path, at_top=True)) for path, name in names.items()}
    done: set[str] = set()

    def visit(name: str, chain: tuple[str, ...]) -> None:
        assert name not in chain, " -> ".join([*chain, name])
        if name not in done:
            for other in graph.get(name, set()):
                visit(other, (*chain, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_only_the_model_room_asks_for_classes_of_terms_and_models(path: Path) -> None:
    """Everybody else asks for facts: a new term or model is then no new case anywhere."""
    if name_room(path) == "model":
        return
    known = {name for name, value in vars(model).items() if isinstance(value, type)}
    asked = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("isinstance", "issubclass")
        and known & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    ]
    assert not asked


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_scikit_learn_stays_in_its_rooms(path: Path) -> None:
    """scikit-learn is imported by estimators, datasets and tuning alone."""
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
