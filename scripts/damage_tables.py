"""Gives 500 damaged tables to `derand train`, `certify` and `report`: success or one line, never a traceback.

    python scripts/damage_tables.py          # exit code 1 where something else happens

CSV and Parquet files are cut, get other bytes, encodings, ragged rows, huge numbers, quotes, NULs, names twice, or are
no tables at all. Commands run in this process, through the error handling of the command line.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derand.app.commands import app, run_app

N_TABLES = 500
N_ROWS = 60
Damage = Callable[[bytes, np.random.Generator], bytes]


class Tally(TypedDict):
    """How the commands ended."""

    tables: int
    commands: int
    succeeded: int
    refused_in_one_line: int
    faults: list[str]


def make_table(rng: np.random.Generator) -> pa.Table:
    """A sound table of numbers, categories, truth values and labels."""
    age = rng.normal(40, 12, N_ROWS).round(1)
    job = rng.choice(["cook", "clerk", "nurse"], N_ROWS)
    columns = {"age": age, "income": rng.integers(10, 99, N_ROWS), "job": job, "owns": rng.random(N_ROWS) < 0.5}
    return pa.table({**columns, "y": np.where(age + 9 * (job == "cook") > 42, "yes", "no")})


def write_csv(table: pa.Table) -> bytes:
    """A table as CSV."""
    lines = [",".join(table.column_names), *(",".join(map(str, row.values())) for row in table.to_pylist())]
    return ("\n".join(lines) + "\n").encode()


def write_parquet(table: pa.Table) -> bytes:
    """A table as Parquet."""
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content))]


def _flip_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 20)).tolist():
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def _put(*pieces: bytes) -> Damage:
    """Puts one of these pieces somewhere."""

    def damage(content: bytes, rng: np.random.Generator) -> bytes:
        place = int(rng.integers(len(content)))
        return content[:place] + pieces[rng.integers(len(pieces))] + content[place:]

    return damage


def _replace_cell(*cells: bytes) -> Damage:
    """Puts something else in place of some cells of a CSV file."""

    def damage(content: bytes, rng: np.random.Generator) -> bytes:
        lines = [line.split(b",") for line in content.split(b"\n")]
        for _ in range(rng.integers(1, 6)):
            line = lines[rng.integers(len(lines) - 1)]
            line[rng.integers(len(line))] = cells[rng.integers(len(cells))]
        return b"\n".join(b",".join(line) for line in lines)

    return damage


def _drop_or_double_lines(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    kept = [lines[place] for place in sorted(rng.integers(len(lines), size=rng.integers(0, len(lines) + 9)))]
    return b"\n".join(kept)


def _make_ragged(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    at = int(rng.integers(len(lines)))
    lines[at] = lines[at] + b",1" if rng.random() < 0.5 else lines[at].rpartition(b",")[0]
    return b"\n".join(lines)


def _encode(*names: str) -> Damage:
    """Writes the text, with a letter that is not ASCII, in another encoding."""

    def damage(content: bytes, rng: np.random.Generator) -> bytes:
        return content.decode().replace("cook", "köchin").encode(names[rng.integers(len(names))])

    return damage


def _change_column(content: bytes, rng: np.random.Generator) -> bytes:
    """Reads a Parquet file, and writes it with a column of another type."""
    table, at = pq.read_table(io.BytesIO(content)), int(rng.integers(5))
    n = table.num_rows
    columns = [
        pa.nulls(n),
        pa.array([b"\xff\x00"] * n),
        pa.array([[1]] * n),
        pa.array([{"a": 1}] * n),
        pa.array([10**30] * n, pa.decimal128(38)),
        pa.array([2**63 - 1] * n),
        pa.array([float("nan")] * n),
        pa.array(["a"] * n).dictionary_encode(),
        pa.array([0] * n, pa.timestamp("ns")),
        pa.array([0] * n, pa.duration("s")),
        pa.array([0] * n, pa.time64("us")),
        pa.array(["", None] * (n // 2)),
        pa.array([1.5] * n, pa.float16()),
        pa.array([True, None] * (n // 2)),
    ]
    changed = table.set_column(at, table.column_names[at], columns[rng.integers(len(columns))])
    return write_parquet(changed)


def _rename(content: bytes, rng: np.random.Generator) -> bytes:
    """Gives the columns of a Parquet file other names, some of them twice."""
    table = pq.read_table(io.BytesIO(content))
    pool = [*table.column_names, "", "a\x00b", "\N{SNOWMAN}", "y"]
    return write_parquet(table.rename_columns([pool[place] for place in rng.integers(len(pool), size=5)]))


def _take_rows(content: bytes, rng: np.random.Generator) -> bytes:
    table = pq.read_table(io.BytesIO(content))
    return write_parquet(table.slice(0, int(rng.integers(4))))


def _put_in_place(*contents: bytes) -> Damage:
    """Something else altogether."""

    def damage(content: bytes, rng: np.random.Generator) -> bytes:
        return contents[rng.integers(len(contents))]

    return damage


_STRANGE_FILES = _put_in_place(
    b"", b"\n", b"\n\n\n", b"\x00" * 100, b"\xff\xfe", b"\xef\xbb\xbf", b"PAR1", b"PAR1PAR1", b"age", b",,,,\n,,,,\n",
    b'"', b'"age', b"y\nyes\nno\n", b"{}", b"\x1f\x8b\x08", b"a" * 100_000, b"," * 100_000, b"\n" * 100_000,
    gzip.compress(b"age,y\n1,yes\n2,no\n"),
)  # fmt: skip
CSV_DAMAGE: dict[str, Damage] = {
    "cut": _cut,
    "flipped bytes": _flip_bytes,
    "NULs and control signs": _put(b"\x00", b"\x00" * 50, b"\x1a", b"\x1b[31m", b"\r", b"\x0b"),
    "quotes": _put(b'"', b'""', b"'", b'"\n"', b'",'),
    "line ends": _put(b"\n", b"\n\n\n", b"\r\n", b"\r", b"\n,,,,\n"),
    "numbers": _replace_cell(b"1e999", b"-1e400", b"9" * 400, b"nan", b"inf", b"0x10", b"1_000", b"1,5", b"1e", b"--1"),
    "cells": _replace_cell(b"", b" ", b"null", b"NA", b"true", b"2020-01-01", b"\xff\xfe", b"a" * 70_000, b"=1+1"),
    "ragged rows": _make_ragged,
    "lines": _drop_or_double_lines,
    "encodings": _encode("latin-1", "utf-16", "utf-32", "utf-8-sig", "cp037"),
    "compressed": lambda content, rng: _cut(gzip.compress(content), rng),
    "other files": _STRANGE_FILES,
}
PARQUET_DAMAGE: dict[str, Damage] = {
    "cut": _cut,
    "flipped bytes": _flip_bytes,
    "bytes put in": _put(b"\x00", b"\xff" * 30, b"PAR1"),
    "other types": _change_column,
    "other names": _rename,
    "few rows": _take_rows,
    "other files": _STRANGE_FILES,
}


def run_command(arguments: Sequence[str]) -> tuple[int, str]:
    """Run a command in this process; its exit code and what it said on stderr, a traceback where one would be seen."""
    errors, before = io.StringIO(), sys.argv
    sys.argv = ["derand", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            run_app(app)
    except SystemExit as stop:
        return int(stop.code or 0), errors.getvalue()
    except BaseException:
        return 1, traceback.format_exc()
    finally:
        sys.argv = before
    return 0, errors.getvalue()


def damage_tables(n_tables: int, seed: int = 0) -> Tally:
    """Make damaged tables and give each to the commands."""
    rng = np.random.default_rng(seed)
    table = make_table(rng)
    sound = {"csv": write_csv(table), "parquet": write_parquet(table)}
    kinds = [(ending, name, damage) for ending, all_damage in (("csv", CSV_DAMAGE), ("parquet", PARQUET_DAMAGE))
             for name, damage in all_damage.items()]  # fmt: skip
    endings: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sound.csv").write_bytes(sound["csv"])
        model = str(folder / "model.json")
        assert run_command(["train", str(folder / "sound.csv"), "--target", "y", "-o", model])[0] == 0
        for number in range(n_tables):
            ending, what, damage = kinds[number % len(kinds)]
            path = folder / f"table{number}.{ending}"
            path.write_bytes(damage(sound[ending], rng))
            for arguments in _list_commands(str(path), model, folder, number):
                code, errors = run_command(arguments)
                endings["succeeded" if code == 0 else "refused"] += 1
                if not _is_well(code, errors):
                    kept = Path(tempfile.gettempdir()) / f"derand-damaged-{number}.{ending}"
                    kept.write_bytes(path.read_bytes())
                    faults.append(f"{arguments[0]} of {kept} ({what}), exit code {code}: {errors[-1500:]}")
            path.unlink()
        left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
        faults += [f"{name} was left behind" for name in left]
    return {
        "tables": n_tables,
        "commands": endings.total(),
        "succeeded": endings["succeeded"],
        "refused_in_one_line": endings["refused"] - len(faults),
        "faults": faults,
    }


def _list_commands(path: str, model: str, folder: Path, number: int) -> list[list[str]]:
    target = ["--target", "y"] if number % 2 else []
    others = ["--subgroup", "job"] if number % 4 == 0 else []
    return [
        ["train", path, "--target", "y", "-o", str(folder / "new.json")],
        ["certify", model, path, *target, "-o", str(folder / ("out.csv" if number % 3 else "out.parquet"))],
        ["report", model, path, *target, *others, "-o", str(folder / "report.md")],
    ]


def _is_well(code: int, errors: str) -> bool:
    if code == 0:
        return not errors
    return code == 2 and errors.startswith("Error: ") and errors.count("\n") == 1 and len(errors) < 2000


def main() -> int:
    """Damage, print what became of it, and say whether all is well."""
    warnings.simplefilter("error", RuntimeWarning)
    found = damage_tables(N_TABLES)
    print(json.dumps(found, indent=2))
    return int(bool(found["faults"]))


if __name__ == "__main__":
    sys.exit(main())
