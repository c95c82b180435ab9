"""Reading the TOML files of this folder: what the paper printed, and the recipe behind each printed line.

Owns names, fields and rules; must not know how a recipe is carried out. A line's recipe starts from `[defaults]` of
`common.toml`, takes what the table's `[recipe]` and the line itself say, and then every rule that fits it: those of
`common.toml`, then the table's own. A rule fits where the recipe so far has all the values that `when` names.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeAlias

TomlTable: TypeAlias = Mapping[str, Any]
"""What a TOML file holds, or a part of it: only the file says which values have which type."""
METRICS = ("nac", "acr", "ca", "bca", "train_time_s", "cert_time_s", "lambda", "sigma", "q", "n_b")
"""Fields of a line that hold published numbers; all others say what the line is about."""
CLAIMS = "claims"
HOW_TO_LIST = "`python -m experiments reproduce --list` prints all names."
_FOLDERS = {"tab": "tables", "fig": "figures"}
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "lambda": ("noise",),
    "sigma": ("noise",),
    "q": ("training", "quantile"),
    "n_b": ("training", "n_estimators"),
}
"""Where the numbers of the two tables of settings go in a recipe."""
_TIME = re.compile(r"(<?)([0-9.]+)(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Published:
    """One printed number: `radius` is None where it does not apply, `deviation` where none is printed."""

    metric: str
    radius: float | None
    value: float
    deviation: float | None
    printed: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A printed line: the fields that name it, its recipe, its numbers, and other recipes that explain differences."""

    fields: TomlTable
    recipe: TomlTable
    published: tuple[Published, ...]
    reason: str | None
    variants: tuple[TomlTable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A table or figure of the paper, or the claims of its text; `content` is the TOML file as it is."""

    name: str
    title: str
    content: TomlTable

    @property
    def kind(self) -> str:
        """tab, fig or claims."""
        return self.name.partition(":")[0]

    @property
    def is_settings(self) -> bool:
        """Whether the numbers are settings that other tables read."""
        return bool(self.content.get("settings", False))

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines with their recipes, in the order of the paper."""
        return tuple(_resolve_line(self, line) for line in self.content.get("lines", []))


@functools.cache
def read_items() -> Mapping[str, Item]:
    """Every table, figure and the claims, by name, in the order of `common.toml`."""
    order: list[str] = _read_common()["order"]
    return {name: _read_item(name) for name in order}


def find_item(name: str) -> Item:
    """The item of that name; the error for an unknown one suggests the nearest."""
    items = read_items()
    if name in items:
        return items[name]
    bare = {known.partition(":")[2] or known: known for known in items}
    if name in bare:
        return items[bare[name]]
    close = difflib.get_close_matches(name, [*items, *bare], n=1, cutoff=0.3)
    hint = f" Did you mean {bare.get(close[0], close[0])!r}?" if close else ""
    raise ValueError(f"The paper has no table or figure named {name!r}.{hint} {HOW_TO_LIST}")


def read_reasons() -> Mapping[str, Mapping[str, str]]:
    """Why cells may differ from the paper: a title and a text by name."""
    reasons: Mapping[str, Mapping[str, str]] = _read_common()["reasons"]
    return reasons


def merge(base: TomlTable, changes: TomlTable) -> dict[str, Any]:
    """`base` with `changes`; tables within them are merged as well.

    Examples
    --------
    >>> merge({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}})
    {'a': 1, 'b': {'c': 2, 'd': 3}}
    """
    merged = dict(base)
    for name, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = merge(merged[name], value) if both else value
    return merged


def resolve_recipe(content: TomlTable, fields: TomlTable) -> dict[str, Any]:
    """The recipe of a line with these fields in a file with this content."""
    common = _read_common()
    recipe = merge(merge(common["defaults"], content.get("recipe", {})), fields)
    for name in recipe["settings_from"]:
        recipe = merge(recipe, _find_settings(name, recipe))
    for rule in [*common["rules"], *content.get("rules", [])]:
        if fits(rule["when"], recipe):
            recipe = merge(recipe, rule["set"])
    return recipe


def fits(when: TomlTable, fields: TomlTable) -> bool:
    """Whether the fields have all the values that `when` names; a list names alternatives."""
    return all(fields.get(name) in (value if isinstance(value, list) else [value]) for name, value in when.items())


def _folder() -> Traversable:
    return files("experiments.reproduce")


@functools.cache
def _read_common() -> dict[str, Any]:
    return tomllib.loads(_folder().joinpath("common.toml").read_text(encoding="utf-8"))


def _read_item(name: str) -> Item:
    kind, _, bare = name.partition(":")
    path = _folder().joinpath(*([f"{CLAIMS}.toml"] if name == CLAIMS else [_FOLDERS[kind], f"{bare}.toml"]))
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Item(content["name"], content["title"], content)


def _resolve_line(item: Item, line: TomlTable) -> Line:
    fields = {name: value for name, value in line.items() if name not in METRICS}
    recipe = resolve_recipe(item.content, fields)
    for variant in _read_common()["variants"]:
        if fits(variant["when"], recipe):
            changes = [{"seed": seed} for seed in range(variant["seeds"])] if "seeds" in variant else [variant["set"]]
            recipes = tuple(merge(recipe, change) for change in changes)
            return Line(fields, recipe, tuple(_read_numbers(line)), variant["reason"], recipes)
    return Line(fields, recipe, tuple(_read_numbers(line)), None, ())


def _read_numbers(line: TomlTable) -> Iterator[Published]:
    for metric in line:
        if metric not in METRICS:
            continue
        cells = line[metric] if isinstance(line[metric], dict) else {None: line[metric]}
        for radius, cell in cells.items():
            yield _read_number(metric, None if radius is None else float(radius), cell)


def _read_number(metric: str, radius: float | None, cell: Any) -> Published:
    if isinstance(cell, str):
        time = _TIME.fullmatch(cell)
        assert time, f"{cell!r} is not a time"
        return Published(metric, radius, float(time[2]) * _SECONDS[time[3]], None, cell)
    value, deviation = cell if isinstance(cell, list) else (cell, None)
    return Published(metric, radius, value, deviation)


def _find_settings(name: str, recipe: TomlTable) -> dict[str, Any]:
    """What a table of settings says about a recipe's method, dataset and norm."""
    found: dict[str, Any] = {}
    for line in find_item(name).content["lines"]:
        if fits({field: line[field] for field in ("method", "dataset", "norm")}, recipe):
            for metric, path in _SETTINGS.items():
                if metric in line:
                    nested = functools.reduce(lambda inner, key: {key: inner}, reversed(path), line[metric])
                    found = merge(found, nested)
    return found


def describe(fields: TomlTable) -> str:
    """Fields as short text, such as "l1, mnist_1v5, noise 4.0".

    Examples
    --------
    >>> describe({"norm": "l1", "dataset": "adult", "uses_numerical": True, "r0": 1})
    'l1, adult, uses_numerical, r0 1'
    """
    parts = []
    for name, value in fields.items():
        if isinstance(value, bool):
            parts += [name] if value else []
        else:
            parts.append(value if isinstance(value, str) else f"{name} {json.dumps(value)}")
    return ", ".join(parts)
