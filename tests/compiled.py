"""Which sources decide what is compiled, found by their content, wherever they lie: the key of a cache of numba's.

numba's cache does not notice a change in another file that a kernel calls. A file compiles if it imports numba, or a
name of the package's door to it (the module that imports `njit`). What it compiles calls other compiled functions and
reads constants; so the modules count, too, out of which such a file takes constants, or what its own are made of. An
edit of any other file leaves the key alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path


def list_compiled(package: Path) -> list[Path]:
    """The files of a package that may define compiled functions, and those that hold their constants."""
    modules = {_name_module(path, package): path for path in package.rglob("*.py")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}

    def select(homes: set[str], chosen: set[str]) -> list[str]:
        """The modules that import one of these names, or any, out of one of these homes."""
        last = tuple(home.rpartition(".")[2] for home in homes)
        likely = [name for name, text in texts.items() if any(word in text for word in last)]  # few are parsed
        pairs = {name: _list_imports(texts[name]) for name in likely}
        return [
            name
            for name, named in pairs.items()
            if any(home in homes and (not chosen or one in chosen) for home, one in named)
        ]

    doors = set(select({"numba"}, {"", "njit", "jit"}))
    found, left = set(doors), select({"numba", "numba.cuda", *doors}, set())
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            made_of = set(_walk_names_outside(ast.parse(texts[name])))
            taken = {home for home, one in _list_imports(texts[name]) if one.strip("_").isupper() or one in made_of}
            left += taken & modules.keys()
    return sorted(modules[name] for name in found)


def hash_compiled(package: Path) -> str:
    """The state of these files, and of the version of numba, which throws away what another has compiled."""
    content = [f"{path.relative_to(package)}\n".encode() + path.read_bytes() for path in list_compiled(package)]
    return hashlib.sha256(b"\0".join([version("numba").encode(), *content])).hexdigest()[:16]


def _name_module(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _list_imports(text: str) -> set[tuple[str, str]]:
    """Modules that a file imports, wherever in it, each with a name out of it; "" stands for the module as a whole."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module, alias.name) for alias in node.names}
            found |= {(f"{node.module}.{alias.name}", "") for alias in node.names}  # which may be modules
    return found


def _walk_names_outside(tree: ast.Module) -> Iterator[str]:
    """Names that are read when a file is loaded, outside of its functions and classes."""
    for statement in tree.body:
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
