"""Hypothesis strategies: cases, model files, tables and command lines.

Each is drawn from a `random.Random` whose choices hypothesis makes, records and shrinks; the drawing itself knows
nothing of hypothesis. `share` says how many examples a test gets: a part of what the profile in tests/conftest.py
allows.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import typing
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from random import Random
from types import UnionType
from typing import Any

import numpy as np
import pandas as pd
import typer
from hypothesis import settings
from hypothesis import strategies as st

from derand.app.commands import app
from tests.fuzz.drawing import Case, draw_any_case
from tests.storage.models import compute_checksum

RANDOMS = st.randoms(use_true_random=False)
CASES: st.SearchStrategy[Case] = RANDOMS.map(draw_any_case)


def share(part: float) -> settings:
    """As many examples as the profile allows, times a part: slow tests get few, quick ones many."""
    return settings(max_examples=max(1, int(settings.default.max_examples * part)))


# model files

_ODD_VALUES = (
    None, True, False, 0, -1, 1, 2, 2**53, 2**53 + 1, -(2**70), 10**400, 0.5, -0.0, 1e308, 5e-324, math.nan, math.inf,
    "", "0", "step_function", "category_table", "Threshold", "\x00", "\N{SNOWMAN}", [], [[]], [0], [[1], [2]],
    {}, {"": 0},
)  # fmt: skip


def draw_document(random: Random, document: dict[str, Any]) -> bytes:
    """The bytes of a damaged model file: fields changed, with or without a checksum that fits, or bytes."""
    changed = copy.deepcopy(document)
    if random.random() < 0.7:
        for _ in range(random.choice((1, 1, 2, 5))):
            _change_field(random, changed)
        if random.random() < 0.9:
            changed["sha256"] = compute_checksum(changed)
    content = json.dumps(changed, ensure_ascii=random.random() < 0.9).encode("utf-8", "surrogatepass")
    if random.random() < 0.3:
        content = _change_bytes(random, content)
    return content


def _list_places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _list_places(node[key])


def _change_field(random: Random, document: dict[str, Any]) -> None:
    places = list(_list_places(document))
    if not places:
        return
    node, key = random.choice(places)
    how = random.choice(("odd", "odd", "near", "drop", "copy", "double"))
    if how == "odd":
        node[key] = random.choice(_ODD_VALUES)
    elif how == "near" and isinstance(node[key], int | float) and not isinstance(node[key], bool):
        node[key] = random.choice((node[key] + 1, -node[key], node[key] * 2, float(node[key])))
    elif how == "drop":
        del node[key]
    elif how == "copy":
        other, place = random.choice(places)
        node[key] = copy.deepcopy(other[place]) if _holds(other, place) else None
    elif isinstance(node, list):
        node.append(copy.deepcopy(node[key]))
    else:
        node[f"{key}_"] = node[key]


def _holds(node: Any, key: Any) -> bool:
    return key in node if isinstance(node, dict) else key < len(node)


def _change_bytes(random: Random, content: bytes) -> bytes:
    for _ in range(random.choice((1, 1, 3))):
        at = random.randrange(len(content) + 1)
        piece = bytes(random.randrange(256) for _ in range(random.choice((0, 1, 1, 4))))
        content = content[:at] + piece + content[at + random.choice((0, 1, 1, 40)) :]
    return content


# tables

_NAMES = ("age", "income", "job", "", " ", "a,b", 'say "x"', "\N{SNOWMAN}", "a\nb", "y2", "*", "0", "NaN", "a" * 300)
_TEXTS = ("cook", "clerk", "", " ", "\N{SNOWMAN}", "nan", "1", "1e999", "=1+1", "a\x00b", "e\u0301", "\u202e", "0x1")
_NUMBERS = (0.0, -0.0, 1.5, -3.25, 1e-300, 5e-324, 1e300, 2.0**53 + 2)


def draw_cell(random: Random, kind: str) -> Any:
    """One cell of a column of some kind."""
    pools: dict[str, Callable[[], Any]] = {
        "number": lambda: random.choice((*_NUMBERS, random.uniform(-9, 9), random.uniform(-9, 9))),
        "whole": lambda: random.randint(-5, 5),
        "huge": lambda: random.choice((2**63 - 1, 2**53 + 1, -(2**62), 7)),
        "beyond": lambda: random.choice((10**30, -(10**400), 3)),
        "infinite": lambda: random.choice((math.inf, -math.inf, 1.0)),
        "gaps": lambda: random.choice((math.nan, math.nan, random.uniform(-9, 9))),
        "text": lambda: random.choice(_TEXTS),
        "text gaps": lambda: random.choice((None, *_TEXTS)),
        "truth": lambda: random.random() < 0.5,
        "date": lambda: random.choice((date(2020, 1, 1), date(1, 1, 1))),
        "time": lambda: pd.Timestamp(random.choice(("2020-01-01", "1999-12-31 23:59"))),
        "complex": lambda: complex(random.randint(0, 1), 1),
        "bytes": lambda: random.choice((b"", b"\xff")),
        "list": lambda: [random.randint(0, 1)],
        "mixed": lambda: random.choice((1, "a", None, 2.5, True, math.nan)),
        "nothing": lambda: None,
    }
    return pools[kind]()


KINDS = ("number", "number", "number", "whole", "whole", "text", "text", "truth", "gaps", "text gaps", "huge", "beyond",
         "infinite", "date", "time", "complex", "bytes", "list", "mixed", "nothing")  # fmt: skip


def draw_frame(random: Random, n_rows: int, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """A frame of odd columns and names; like another one it has its names, mostly, and other cells."""
    if like is not None and random.random() < 0.7:
        names = list(like.columns)
        random.shuffle(names)
        names = names[: random.choice((len(names), len(names), max(len(names) - 1, 0)))]
    else:
        names = [random.choice((*_NAMES, random.randint(0, 3))) for _ in range(random.choice((1, 2, 3, 4)))]
        if random.random() < 0.85:
            names = list(dict.fromkeys(names))  # else some may be there twice
    columns = []
    for _ in names:
        kind = random.choice(KINDS[: random.choice((9, len(KINDS)))])  # ordinary kinds first
        cells = pd.Series([draw_cell(random, kind) for _ in range(n_rows)], dtype=object)
        if random.random() < 0.1 and kind != "list":
            cells = cells.astype("category")
        elif random.random() < 0.8:
            cells = cells.infer_objects()
        columns.append(cells)
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n_rows))
    frame.columns = pd.Index(names, dtype=object)
    return frame


def draw_labels(random: Random, n_rows: int) -> np.ndarray:
    """Labels of two kinds, mostly."""
    pools: tuple[tuple[Any, ...], ...] = (
        ("no", "yes"), ("no", "yes"), (0, 1), (0, 1), (False, True), (1.5, 2.5), ("a",), ("a", "b", "c"),
        (math.nan, 1.0), (None, "a"), (math.inf, 0.0), (10**30, 1),
    )  # fmt: skip
    pool = random.choice(pools)
    cells = [pool[at % len(pool)] for at in range(n_rows)]
    random.shuffle(cells)
    return np.array(cells, dtype=object) if None in pool or 10**30 in pool else np.array(cells)


# command lines

_LIKELY: dict[str, tuple[str, ...]] = {
    "target": ("y",),
    "model": ("stumps", "additive", "tree-boost", "ada-boost"),
    "noise": ("gaussian:0.25", "uniform:1", "laplace:0.5", "none"),
    "rule": ("vote", "mean"),
    "proof": ("best", "paper"),
    "norm": ("1", "2", "inf", "0", "none"),
    "scaling": ("standard", "range", "robust", "none"),
    "class_weight": ("balanced",),
    "monotone": ("age=increasing", "income=decreasing"),
    "limit": ("age=5%", "income=10", "age=0:3", "*=1%"),
    "domain": ("age=0:200", "income=0:100"),
    "step": ("age=1", "income=5"),
    "freeze": ("age", "job", "income"),
    "radii": ("0,0.1,0.5", "0.1"),
    "group": ("job", "owns"),
    "categorical": ("owns", "income"),
    "classes": ("no,yes", "1,0"),
    "trust": ("sklearn.tree._tree.Tree",),
    "ignore": ("age", "job"),
}
"""Values of options by their names; an option that is not here gets any of the odd ones."""
_ODD_WORDS = ("y", "age", "nothing", "\N{SNOWMAN}", "", "a=b", "age=", "job=1", "age=-1", "age=5:1", "--", "-x", "3",
              "-1", "gaussian", "gaussian:-1", "gaussian:nan", "median", "0,a", "inf", "nan")  # fmt: skip
_ODD_NUMBERS = ("-1", "nan", "inf", "1e308", "1e-320", "abc", "", "0.5", "7")
_INPUTS = {"model": "model.json", "threat": "threat.toml", "configuration": "derand.toml"}
_ODD_INPUTS = ("table.parquet", "gaps.csv", "table.csv", "model.json", "vote.json", "threat.toml", "empty.csv",
               "broken.json", "derand.toml", "folder", "nothing.csv", "folder/nothing.csv")  # fmt: skip
_OUTPUTS = {
    "train": ("out.json",),
    "import": ("out.json",),
    "export": ("out.onnx",),
    "certify": ("out.csv", "out.parquet"),
    "report": ("out.html", "out.md", "out.tex"),
    "init": ("out.toml",),
}
_ODD_OUTPUTS = ("out.csv", "out.json", "out.html", "out.txt", "out", "folder", "nothing/out.csv", "table.csv")


def list_commands() -> dict[str, inspect.Signature]:
    """Every command of the command line with its parameters, from the application's own list."""
    found = {}
    for command in app.registered_commands:
        assert command.callback is not None
        hints = typing.get_type_hints(command.callback, include_extras=True)
        whole = inspect.signature(command.callback)
        parameters = [one.replace(annotation=hints[name]) for name, one in whole.parameters.items() if name in hints]
        found[command.name or command.callback.__name__] = whole.replace(parameters=parameters)
    return found


def draw_command(random: Random, name: str, signature: inspect.Signature) -> list[str]:
    """A line for a command: what it requires, mostly, and some options; most lines have at most one odd value."""
    line, odd = [name], random.choice((0.0, 0.0, 0.1, 0.5))
    optional = [one for one in signature.parameters.values() if one.default is not inspect.Parameter.empty]
    chosen = random.sample(optional, min(random.choice((0, 1, 2, 4)), len(optional)))
    for parameter in signature.parameters.values():
        is_required = parameter.default is inspect.Parameter.empty
        if parameter in chosen or (is_required and random.random() >= odd / 5):
            line += _draw_parameter(random, name, parameter, odd)
    if random.random() < odd / 10:
        line.append(random.choice(("--nothing", "-h", "more", "--json=1")))
    return line


def _draw_parameter(random: Random, command: str, parameter: inspect.Parameter, odd: float) -> list[str]:
    kind, *extras = typing.get_args(parameter.annotation) or (parameter.annotation,)
    kind = next(iter(typing.get_args(kind)), kind) if typing.get_origin(kind) in (UnionType, typing.Union) else kind
    option = next((extra for extra in extras if isinstance(extra, typer.models.OptionInfo)), None)
    name = None if option is None else _find_name(option, parameter.name)
    if kind is bool:
        return [name] if name else []
    is_list = typing.get_origin(kind) is list
    inner = typing.get_args(kind)[0] if is_list else kind
    count = random.choice((1, 1, 2)) if is_list else 1
    values = [_draw_value(random, command, parameter.name, inner, random.random() < odd) for _ in range(count)]
    return [word for value in values for word in ((name, value) if name else (value,))]


def _find_name(option: typer.models.OptionInfo, name: str) -> str:
    """How an option is written: inside of Annotated, typer takes the first name for a default."""
    written = [one for one in (option.default, *(option.param_decls or ())) if isinstance(one, str)]
    return next((one for one in written if one.startswith("--")), f"--{name.replace('_', '-')}")


def _draw_value(random: Random, command: str, name: str, kind: Any, is_odd: bool) -> str:
    if kind is Path:
        if name in ("output", "witness"):
            return random.choice(_ODD_OUTPUTS if is_odd else _OUTPUTS.get(command, ("out",)))
        return random.choice(_ODD_INPUTS) if is_odd else _INPUTS.get(name, "table.csv")
    if kind in (int, float):
        return random.choice(_ODD_NUMBERS if is_odd else ("0", "1", "2") if kind is int else ("0.25", "0.1", "0"))
    return random.choice(_LIKELY[name] if name in _LIKELY and not is_odd else _ODD_WORDS)
