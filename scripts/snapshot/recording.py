"""Values by name: collected while calls are made, written to one file, compared bit for bit with those of another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from scripts.snapshot.words import Words

SHOWN = 5
"""How many values that differ are shown of one array."""


class Recorder:
    """Collects arrays by name; the first part of a name is its section."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.values: dict[str, np.ndarray] = {}
        self.place = ""

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Put what is added below this name; what is raised is written down by its type, and ends the block."""
        outer, self.place = self.place, place
        try:
            yield
        except Exception as error:
            self.add("raised", type(error).__name__)
        finally:
            self.place = outer

    def add(self, name: str, value: Any, section: str = "") -> None:
        """Keep one value: an array, a number, text, or lines of text."""
        start, _, rest = self.place.partition("/")
        array = np.asarray(value)
        if array.dtype == object:
            array = np.array([repr(one) for one in array.ravel()]).reshape(array.shape)
        full = f"{section or start}/{rest}/{name}"
        if full in self.values:
            raise RuntimeError(f"{full} is recorded twice.")
        self.values[full] = array

    def add_fields(self, thing: Any, *fields: str, section: str = "", below: str = "") -> None:
        """Keep the attributes of an object that it has."""
        for name, value in self.words.read(thing, *fields).items():
            self.add(f"{below}/{name}" if below else name, value, section)

    def add_json(self, name: str, document: Any, left_out: frozenset[str] = frozenset()) -> None:
        """Keep a document as one line per leaf, without the keys that are left out."""
        self.add(name, [f"{path} = {leaf}" for path, leaf in self._walk(document, "", left_out)])

    def _walk(self, node: Any, path: str, left_out: frozenset[str]) -> Iterator[tuple[str, str]]:
        if isinstance(node, Mapping):
            named = {self.words.rename_key(str(key), self.place): value for key, value in node.items()}
            for key in sorted(named.keys() - left_out):
                yield from self._walk(named[key], f"{path}.{key}", left_out)
        elif isinstance(node, list | tuple):
            for at, one in enumerate(node):
                yield from self._walk(one, f"{path}[{at}]", left_out)
        else:
            yield path, json.dumps(node, ensure_ascii=False, default=repr)


def write_values(values: Mapping[str, np.ndarray], path: Path) -> None:
    """Write all values; names stand beside the arrays, because they hold signs that names of files cannot."""
    np.savez(path, names=np.array(list(values)), **{f"v{at}": value for at, value in enumerate(values.values())})


def read_values(path: Path) -> dict[str, np.ndarray]:
    """Read them again."""
    with np.load(path, allow_pickle=False) as arrays:
        return {str(name): arrays[f"v{at}"] for at, name in enumerate(arrays["names"])}


def differ(old: np.ndarray, new: np.ndarray) -> np.ndarray | None:
    """Which values differ in a bit; None where arrays of other shapes or types cannot be laid side by side."""
    if old.dtype.kind == new.dtype.kind == "U":
        return old != new if old.shape == new.shape else None
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return None
    if old.dtype.kind == "f":  # NaN equals NaN of the same bits, 0.0 and -0.0 differ
        return old.view(f"i{old.dtype.itemsize}") != new.view(f"i{new.dtype.itemsize}")
    return old != new


def compare_values(
    old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray], lacking: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, Counter[str]]]:
    """Every difference as a line, and by section how many values were compared, raised errors or differ."""
    lines: list[str] = []
    counts: dict[str, Counter[str]] = {}
    for name in sorted(old.keys() | new.keys()):
        if name.startswith(lacking):
            continue
        count = counts.setdefault(name.partition("/")[0], Counter())
        if name not in old or name not in new:
            where, value = ("now", new[name]) if name in new else ("then", old[name])
            count["differ"] += 1
            lines.append(f"{name}: only {where}, {_show(value)}")
            continue
        count["compared"] += old[name].size
        count["raised"] += name.endswith("/raised")
        found = differ(old[name], new[name])
        if found is None:
            count["differ"] += 1
            lines.append(f"{name}: {_show(old[name])} then, {_show(new[name])} now{_name_line(old[name], new[name])}")
        elif found.any():
            count["differ"] += int(found.sum())
            pairs = [
                f"{then!r} -> {now!r}"
                for then, now in zip(old[name][found].tolist(), new[name][found].tolist(), strict=True)
            ]
            shown = "; ".join(pairs[:SHOWN])
            lines.append(f"{name}: {int(found.sum())} of {found.size} differ: {shown}")
    return lines, counts


def _show(value: np.ndarray) -> str:
    return repr(value.item()) if value.ndim == 0 else f"{value.dtype} of shape {value.shape}"


def _name_line(old: np.ndarray, new: np.ndarray) -> str:
    """The first line that only one of two texts has."""
    if old.ndim == new.ndim == 1 and old.dtype.kind == "U":
        then, now = set(old.tolist()), set(new.tolist())
        return "".join(
            f"; only {when}: {line}"
            for when, lines in (
                ("then", [one for one in old.tolist() if one not in now]),
                ("now", [one for one in new.tolist() if one not in then]),
            )
            for line in lines[:SHOWN]
        )
    return ""
