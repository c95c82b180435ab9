"""Damaged Arrow streams and Parquet files, read in a process of its own: one that dies is seen by who started it.

python -m tests.tables.damaging KIND FIRST COUNT     # prints the number and the end of each try
"""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from derand.tables import ColumnKind, inspect_file
from derand.tables._files import open_stream

KINDS = {
    "age": ColumnKind.NUMBER,
    "job": ColumnKind.TEXT,
    "trade": ColumnKind.TEXT,
    "owns": ColumnKind.BOOLEAN,
    "rooms": ColumnKind.NUMBER,
}
FORMATS = ("stream", "compressed stream", "parquet", "compressed parquet")
_LENGTHS = (0, 1, 1000, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


def make_table(n_rows: int = 60) -> pa.Table:
    """Numbers, text, categories and truth values, with missing cells."""
    jobs = [None if row % 7 == 0 else ("cook", "clerk", "nurse")[row % 3] for row in range(n_rows)]
    return pa.table(
        {
            "age": pa.array([None if row % 11 == 0 else float(row) for row in range(n_rows)]),
            "job": jobs,
            "trade": pa.array(jobs).dictionary_encode(),
            "owns": [row % 2 == 0 for row in range(n_rows)],
            "rooms": pa.array(range(n_rows), pa.int32()),
            "note": pa.array(jobs, pa.large_string()),
        }
    )


def write_table(kind: str) -> bytes:
    """The table in one of the formats."""
    table, sink, is_packed = make_table(), io.BytesIO(), "compressed" in kind
    if "parquet" in kind:
        pq.write_table(table, sink, compression="snappy" if is_packed else "none")
        return sink.getvalue()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if is_packed else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=25)
    return sink.getvalue()


def damage(content: bytes, rng: random.Random) -> bytes:
    """The same with some bits flipped, cut short, or with another number where a length or an offset may stand."""
    changed, way = bytearray(content), rng.randrange(4)
    if way == 0:
        for _ in range(rng.randrange(1, 5)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del changed[rng.randrange(len(changed)) :]
    else:
        size = 4 * (way - 1)
        at = size * rng.randrange(len(changed) // size)
        number = rng.choice((*_LENGTHS, rng.randrange(2**64)))
        changed[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(changed)


def read(content: bytes, kind: str, folder: Path) -> str:
    """How reading every cell ended: read, refused, or the name of another error."""
    try:
        if "stream" in kind:
            file = open_stream(io.BytesIO(content))
        else:
            path = folder / "damaged.parquet"
            path.write_bytes(content)
            file = inspect_file(path)
            file.read().to_pydict()
        for batch in file.read_batches(KINDS, as_is=["note"]):
            batch.to_pydict()
    except ValueError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "read"


def count_ends(kind: str, n_tries: int) -> Counter[str]:
    """How the tries ended; one that ended its process is counted under the exit code, and the next ones go on."""
    ends: Counter[str] = Counter()
    first = 0
    while first < n_tries:
        command = [sys.executable, "-m", "tests.tables.damaging", kind, str(first), str(n_tries - first)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        ends.update(lines)
        first += len(lines)
        if first < n_tries:
            ends[f"exit code {done.returncode}"] += 1
            first += 1
    return ends


if __name__ == "__main__":
    FORMAT, FIRST, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    CONTENT = write_table(FORMAT)
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(FIRST, FIRST + COUNT):
            print(read(damage(CONTENT, random.Random(number)), FORMAT, Path(scratch)), flush=True)
