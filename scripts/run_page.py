"""Run everything that a page of the documentation shows: `python scripts/run_page.py docs/credit.md [--write]`.

Three sorts of blocks count, in the order of the page, all in one empty folder: a block with a title is a file of that
name; lines of a console block that begin with `$ ` are commands; `>>> ` lines of a python block are Python, in one
session for the whole page. What they print is compared with the lines below them (exit code 1 where it differs), or
written there. Commands that end badly, and errors in Python, stop it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
WIDTH = "110"
DERAND = f'derand() {{ "{sys.executable}" -m derand "$@"; }}; '
"""The command of the interpreter that runs this, wherever it is installed."""


class Page:
    """The session of one page: the names of its Python, and the environment of its commands."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.environment = os.environ | {"COLUMNS": WIDTH, "NO_COLOR": "1"}

    def run(self, block: re.Match[str]) -> str:
        """The text of a block with what it prints now."""
        language, options, body = block["language"], block["options"], block["body"]
        titled = TITLE.search(options)
        if titled:
            Path(titled[1]).write_text(body, encoding="utf-8")
        elif language == "console":
            body = "".join(self._run_commands(body))
        elif language == "python" and body.startswith(">>> "):
            body = "".join(self._run_python(body))
        return f"```{language}{options}\n{body}```"

    def _run_commands(self, body: str) -> Iterator[str]:
        for line in body.splitlines():
            if not line.startswith("$ "):
                continue
            command = ["bash", "-o", "pipefail", "-c", DERAND + line[2:]]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{line}\n{done.stdout}{done.stderr}")
            yield f"{line}\n{_trim(done.stdout)}"

    def _run_python(self, body: str) -> Iterator[str]:
        for example in doctest.DocTestParser().get_examples(body):
            lines = example.source.splitlines()
            prompts = [">>> ", *["... "] * (len(lines) - 1)]
            shown = "\n".join(f"{prompt}{line}".rstrip() for prompt, line in zip(prompts, lines, strict=True))
            yield f"{shown}\n{_trim(self._execute(example.source), empty='<BLANKLINE>')}"
        yield "\n"

    def _execute(self, source: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements = ast.parse(source).body
            mode = "single" if len(statements) == 1 else "exec"
            exec(compile(source, "<page>", mode), self.names)
        return stream.getvalue()


def _trim(printed: str, empty: str = "") -> str:
    """Without spaces at line ends; in Python empty lines are marked as doctest wants it."""
    return "".join(f"{line.rstrip() or empty}\n" for line in printed.splitlines())


def run_page(text: str, folder: str | Path) -> str:
    """The text of a page with what its blocks print now.

    Parameters
    ----------
    text : str
        Markdown.
    folder : path
        Where it is run; files that the page writes stay there.

    Returns
    -------
    str
    """
    page = Page()
    with contextlib.chdir(folder):
        return BLOCK.sub(page.run, text)


def main() -> int:
    """Run the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="write what is printed into the pages")
    options = parser.parse_args()
    differing = 0
    for path in options.pages:
        before = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            after = run_page(before, folder)
        if options.write:
            path.write_text(after, encoding="utf-8")
        elif after != before:
            differing += 1
            changes = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), "now", lineterm="", n=1)
            print("\n".join(changes))
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())
