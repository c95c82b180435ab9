"""Small blocks of HTML for notebooks: text escaped, styles inline, nothing loaded. Must not know what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from derand._core.text import shorten

_CELL = "text-align:left;padding:0.15em 1em 0.15em 0;vertical-align:top"
_MUTED = "opacity:0.7"
_LONGEST = 60


def write_text(value: object, length: int = _LONGEST) -> str:
    """Text for a page: escaped, cut where it is long.

    Examples
    --------
    >>> write_text("<b>")
    '&lt;b&gt;'
    """
    return escape(shorten(str(value), length))


def write_table(headers: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table; without headers where there are none.

    `rows`: their cells are escaped.

    Examples
    --------
    >>> "<td" in write_table(["a"], [[1]])
    True
    """
    head = "".join(f'<th scope="col" style="{_CELL};{_MUTED}">{write_text(name)}</th>' for name in headers)
    lines = ["".join(f'<td style="{_CELL}">{write_text(cell, 120)}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    top = f"<thead><tr>{head}</tr></thead>" if headers else ""
    return f'<table style="border-collapse:collapse;margin:0.4em 0">{top}<tbody>{body}</tbody></table>'


def write_block(title: str, *parts: str) -> str:
    """A titled block of parts that are HTML already.

    Examples
    --------
    >>> write_block("Certificates", "<p>3 rows</p>").startswith('<div class="derand"')
    True
    """
    return f'<div class="derand" style="margin:0.4em 0"><strong>{escape(title)}</strong>{"".join(parts)}</div>'


def write_lines(lines: Iterable[str], *, muted: bool = False) -> str:
    """Sentences, each a paragraph, escaped.

    Examples
    --------
    >>> write_lines(["a < b"]).endswith("a &lt; b</p>")
    True
    """
    style = f"margin:0.2em 0;{_MUTED}" if muted else "margin:0.2em 0"
    return "".join(f'<p style="{style}">{escape(line)}</p>' for line in lines)
