"""The notebooks of the examples: they run as they stand, print what they store, and stay small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.ipynb"))
LIBRARIES = {"certify_an_ebm": "interpret.glassbox"}
"""What a notebook needs beside the package."""
LONG = {path.stem: [pytest.mark.long] for path in NOTEBOOKS}  # `make test-docs` runs them
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
MAX_BYTES = 1_000_000

# runs the cells in one namespace, as Jupyter does; what a cell prints is one entry of the list
RUNNER = """
import contextlib, io, json, sys
printed, names = [], {"__name__": "__main__"}
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile(source, "<cell>", "exec"), names)
    printed.append(stream.getvalue())
json.dump(printed, sys.stdout)
"""


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def stored_text(cell: dict[str, Any]) -> str:
    """What a cell printed when the notebook was run."""
    return "".join("".join(part["text"]) for part in cell["outputs"] if part["output_type"] == "stream")


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=LONG.get(path.stem, [])) for path in NOTEBOOKS]
)
def test_a_notebook_prints_what_it_stores(path: Path, tmp_path: Path) -> None:
    """All cells run in order in a fresh interpreter, and each prints the text that is stored below it."""
    cells = read_cells(path)
    if path.stem in LIBRARIES:
        pytest.importorskip(LIBRARIES[path.stem])
    sources = ["".join(cell["source"]) for cell in cells]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(sources),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [stored_text(cell) for cell in cells]
    assert not list(tmp_path.iterdir()), "the notebook leaves files behind"


@each_notebook
def test_a_notebook_is_stored_as_run(path: Path) -> None:
    """Every cell was run once, from top to bottom, without error, and tables, the plot and the report are stored."""
    cells = read_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert "error" not in {output["output_type"] for output in outputs}
    assert "stderr" not in {output.get("name") for output in outputs}
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    assert any("<iframe" in "".join(output.get("data", {}).get("text/html", "")) for output in outputs)


@each_notebook
def test_a_notebook_is_small(path: Path) -> None:
    """The report inside does not make the file unwieldy."""
    assert path.stat().st_size < MAX_BYTES
