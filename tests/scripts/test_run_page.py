"""Pages that are run: what blocks print is put below them, in one session, and what goes wrong stops it."""

from __future__ import annotations

import ast
import doctest
from pathlib import Path

import pytest

from scripts.run_page import BLOCK, run_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("credit", "compare/ebm", "compare/mapie", "compare/fairlearn", "compare/art", "compare/veritas")
LIBRARIES = {
    "credit": "flint",
    "compare/ebm": "interpret.glassbox",
    "compare/mapie": "mapie",
    "compare/fairlearn": "fairlearn",
    "compare/art": "art",
    "compare/veritas": "veritas",
}
"""What a page needs beside the package: the extras `audit` and `interpret` and the dependency group `peers`."""

SMALL = """
```text title="two.txt"
1
2
```

```console
$ cat two.txt
old output
```

```python
>>> with open("two.txt") as file:
...     total = sum(map(int, file))
>>> total
7
>>> print("a\\n\\nb")
```

```python
not_run()
```
"""

SMALL_DONE = """
```text title="two.txt"
1
2
```

```console
$ cat two.txt
1
2
```

```python
>>> with open("two.txt") as file:
...     total = sum(map(int, file))
>>> total
3
>>> print("a\\n\\nb")
a
<BLANKLINE>
b

```

```python
not_run()
```
"""


def test_blocks_get_what_they_print_now(tmp_path: Path) -> None:
    """A titled block is a file, commands and Python see it, old output goes, and a second run changes nothing."""
    done = run_page(SMALL, tmp_path)
    assert done == SMALL_DONE
    assert run_page(done, tmp_path) == done


@pytest.mark.parametrize("block", ["```console\n$ false | cat\n```", "```python\n>>> 1 / 0\n```"])
def test_what_goes_wrong_stops_it(block: str, tmp_path: Path) -> None:
    """Neither a command that ends badly nor an error becomes part of a page."""
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        run_page(f"\n{block}\n", tmp_path)


@pytest.mark.parametrize("name", PAGES)
def test_examples_of_a_page_can_be_compiled(name: str) -> None:
    """Cheap, and without the libraries: all Python of the page is Python, and there is some."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    blocks = [block["body"] for block in BLOCK.finditer(text) if block["body"].startswith(">>> ")]
    examples = [example for body in blocks for example in doctest.DocTestParser().get_examples(body)]
    assert len(examples) > 10
    for example in examples:
        ast.parse(example.source)


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_says(name: str, tmp_path: Path) -> None:
    """Everything on the page runs and prints the lines below it."""
    pytest.importorskip(LIBRARIES[name], reason=f"{LIBRARIES[name]} is not installed: pip install --group peers")
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert run_page(text, tmp_path) == text
