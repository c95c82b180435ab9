"""Blocks that sections are made of, and the one place where they become HTML, Markdown and LaTeX.

A section lists its blocks once. Text of the user is escaped here. Must not know what a section says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from markupsafe import Markup, escape

from derand._core.text import format_count, shorten
from derand.report._markup import NAME_LENGTH, escape_latex, mark_text, put_on_one_line

Text = str | Markup
"""Text is escaped; markup of the page is taken as it is."""


def tag(name: str, *content: Text, **attributes: object) -> Markup:
    """An element of HTML; attributes that are empty are left out.

    Examples
    --------
    >>> tag("p", "a < b", class_="fine", data_test="")
    Markup('<p class="fine">a &lt; b</p>')
    """
    told = [f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value]
    return Markup(f"<{name}{''.join(told)}>{''.join(map(escape, content))}</{name}>")


def quiet(text: str) -> Markup:
    """Text that stands back."""
    return tag("span", text, class_="quiet")


class Block:
    """Something that a section says; by default nothing in each of the outputs."""

    __slots__ = ()

    def html(self) -> Markup:
        """The block on the page."""
        return Markup("")

    def markdown(self) -> list[str]:
        """The same as parts of a Markdown document."""
        return []

    def latex(self) -> list[str]:
        """The same as lines of LaTeX."""
        return []


@dataclass(frozen=True, slots=True)
class Raw(Block):
    """Markup of the page alone, such as a template or a control."""

    content: Markup

    def html(self) -> Markup:
        return self.content


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A title; that of a section bears its anchor."""

    text: str
    anchor: str = ""
    level: int = 2

    def html(self) -> Markup:
        return tag(f"h{self.level}", self.text, id=self.anchor and f"h-{self.anchor}")

    def markdown(self) -> list[str]:
        return [f"{'#' * self.level} {mark_text(self.text)}"]


@dataclass(frozen=True, slots=True)
class Paragraph(Block):
    """A paragraph, of the page's class `kind`; left out where it is empty."""

    text: Text
    kind: str = ""
    test: str = ""

    def html(self) -> Markup:
        return tag("p", self.text, class_=self.kind, data_test=self.test) if self.text else Markup("")

    def markdown(self) -> list[str]:
        return [mark_text(self.text)]


@dataclass(frozen=True, slots=True)
class Comment(Block):
    """A line that only the source of LaTeX shows."""

    text: str

    def latex(self) -> list[str]:
        return [f"% {put_on_one_line(self.text)}"]


@dataclass(frozen=True, slots=True)
class Bullets(Block):
    """A list of sentences."""

    items: Sequence[str]
    kind: str = ""
    test: str = ""

    def html(self) -> Markup:
        return tag("ul", *(tag("li", item) for item in self.items), class_=self.kind, data_test=self.test)

    def markdown(self) -> list[str]:
        return ["\n".join(f"- {mark_text(item)}" for item in self.items)]


@dataclass(frozen=True, slots=True)
class FactList(Block):
    """Names with their values, on the page also with a note."""

    items: Sequence[tuple[str, ...]]
    kind: str = "facts"

    def html(self) -> Markup:
        listed = [
            tag("div", tag("dt", name), tag("dd", value), *(tag("dd", note, class_="note") for note in notes))
            for name, value, *notes in self.items
        ]
        return tag("dl", *listed, class_=self.kind)

    def markdown(self) -> list[str]:
        return ["\n".join(f"- {mark_text(name)}: {mark_text(value)}" for name, value, *_ in self.items)]


class Cell(NamedTuple):
    """A cell of which the page shows more than text, or another text."""

    text: str
    page: Text | None = None
    kind: str = ""
    title: str = ""
    style: str = ""

    def html(self, name: str, scope: str = "") -> Markup:
        """The cell as an element of that name."""
        shown = self.text if self.page is None else self.page
        return tag(name, shown, scope=scope, class_=self.kind, title=self.title, style=self.style)


Line = list[str | Cell]
"""Cells of a table, text or more."""


def name_cell(name: str, length: int) -> Cell:
    """A name of the user's: the page cuts it, and has it in full where a mouse rests."""
    return Cell(name, shorten(name, length), title=name)


def count_cells(*numbers: int) -> list[str]:
    """Counts, each in a cell."""
    return [format_count(number) for number in numbers]


@dataclass(frozen=True, slots=True)
class Table(Block):
    """A table whose first column names its lines.

    Heads that are plain text begin with a capital on the page. `latex` is what LaTeX calls the table in a comment: it
    has those tables alone that are called something.
    """

    head: Sequence[str | Cell]
    rows: Sequence[Line] | Sequence[list[str]]
    label: str = ""
    """For those who do not see the page."""
    caption: str = ""
    test: str = ""
    kind: str = "numeric"
    latex_title: str | None = None
    align: Sequence[str] = ()
    """Columns of LaTeX; by default the first to the left and all others to the right."""
    is_cut: bool = True
    """Whether Markdown cuts long cells."""

    def html(self) -> Markup:
        head = [_as_cell(one, one[:1].upper() + one[1:] if isinstance(one, str) else None) for one in self.head]
        lines = [[_as_cell(cell) for cell in row] for row in self.rows]
        table = tag(
            "table",
            tag("caption", self.caption) if self.caption else "",
            tag("thead", tag("tr", *(cell.html("th", "col") for cell in head))) if head else "",
            tag("tbody", *(tag("tr", row[0].html("th", "row"), *(c.html("td") for c in row[1:])) for row in lines)),
            class_=self.kind,
            data_test=self.test,
        )
        return tag("div", table, class_="scroll", role="region", aria_label=self.label, tabindex="0")

    def markdown(self) -> list[str]:
        rules = ["---:" if one == "r" else "---" for one in self._columns]
        length = NAME_LENGTH if self.is_cut else 10**9
        listed = [[mark_text(shorten(text, length)) for text in line] for line in self.texts]
        lines = [[mark_text(_as_cell(one).text) for one in self.head], rules, *listed]
        return ["\n".join(f"| {' | '.join(cells)} |" for cells in lines)]

    def latex(self) -> list[str]:
        if self.latex_title is None:
            return []
        head = [_as_cell(one).text for one in self.head]
        listed = [[escape_latex(put_on_one_line(text)) for text in line] for line in [head, *self.texts]]
        top, *body = [" & ".join(cells) + r" \\" for cells in listed]
        start = r"\begin{tabular}{" + "".join(self._columns) + "}"
        title = [f"% {self.latex_title}"] if self.latex_title else []
        return [*title, start, r"\toprule", top, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]

    @property
    def texts(self) -> list[list[str]]:
        """The lines without what only the page shows."""
        return [[_as_cell(cell).text for cell in row] for row in self.rows]

    @property
    def _columns(self) -> list[str]:
        return list(self.align) or ["l", *["r"] * (len(self.head) - 1)]


def _as_cell(given: str | Cell, page: str | None = None) -> Cell:
    return given if isinstance(given, Cell) else Cell(given, page)


@dataclass(frozen=True, slots=True)
class Figure(Block):
    """A picture with its caption and legend, of pairs of a class of the page and a text; nothing without a picture."""

    picture: Markup | None
    caption: str = ""
    legend: Sequence[tuple[str, str]] = ()
    kind: str = ""

    def html(self) -> Markup:
        if self.picture is None:
            return Markup("")
        caption = tag("figcaption", self.caption) if self.caption else ""
        return tag("figure", caption, self.picture, write_legend(self.legend), class_=self.kind)


def write_legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """What the lines and bars of a picture mean."""
    if not entries:
        return Markup("")
    lines, bars = (
        Markup('<path class="{}" d="M1,5H25"/>'),
        Markup('<rect class="{}" x="7" y="0" width="12" height="10"/>'),
    )
    listed = [
        tag(
            "li",
            tag(
                "svg",
                (lines if kind.startswith("line") else bars).format(kind),
                viewBox="0 0 26 10",
                aria_hidden="true",
            ),
            label,
        )
        for kind, label in entries
    ]
    return tag("ul", *listed, class_="legend")


@dataclass(frozen=True, slots=True)
class Group(Block):
    """Blocks side by side or in a box, of the page's class `kind`; the other outputs show them one after the other."""

    kind: str
    blocks: Sequence[Block]

    def html(self) -> Markup:
        return tag("div", write_html(self.blocks), class_=self.kind)

    def markdown(self) -> list[str]:
        return write_markdown(self.blocks)

    def latex(self) -> list[str]:
        return write_latex(self.blocks)


@dataclass(frozen=True, slots=True)
class Details(Group):
    """Blocks that the page folds away."""

    summary: Text = ""
    test: str = ""
    is_open: bool = False

    def html(self) -> Markup:
        content = tag("summary", self.summary), write_html(self.blocks)
        return tag("details", *content, class_=self.kind, data_test=self.test, open="open" if self.is_open else "")


@dataclass(frozen=True, slots=True)
class Only(Block):
    """Blocks of one of the outputs alone."""

    output: Literal["html", "markdown", "latex"]
    blocks: Sequence[Block]

    def html(self) -> Markup:
        return write_html(self.blocks) if self.output == "html" else Markup("")

    def markdown(self) -> list[str]:
        return write_markdown(self.blocks) if self.output == "markdown" else []

    def latex(self) -> list[str]:
        return write_latex(self.blocks) if self.output == "latex" else []


def on_page(*blocks: Block) -> Only:
    """Blocks of the page alone."""
    return Only("html", blocks)


def in_markdown(*blocks: Block) -> Only:
    """Blocks of Markdown alone."""
    return Only("markdown", blocks)


def in_latex(*blocks: Block) -> Only:
    """Blocks of LaTeX alone."""
    return Only("latex", blocks)


def write_html(blocks: Sequence[Block]) -> Markup:
    """Blocks as a part of the page."""
    return Markup("\n").join(block.html() for block in blocks)


def write_markdown(blocks: Sequence[Block]) -> list[str]:
    """Blocks as parts of a Markdown document."""
    return [part for block in blocks for part in block.markdown()]


def write_latex(blocks: Sequence[Block]) -> list[str]:
    """Blocks as lines of LaTeX."""
    return [line for block in blocks for line in block.latex()]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report, under its own anchor: when a report has it, and what it says."""

    anchor: str
    link: Callable[[Any], str]
    """What the navigation calls it; "" where the report does not have it."""
    blocks: Callable[[Any], Sequence[Block]]
    """The report's dict -> what the section says, its heading first."""
    folded: str = ""
    """What the page has of it behind its heading until a reader opens it; "" for a section that is open."""

    def html(self, summary: object) -> Markup:
        """The section on the page."""
        first, *others = self.blocks(summary)
        heading, *others = [*(first.blocks if isinstance(first, Only) else [first]), *others]
        content = Markup("\n").join([heading.html(), write_html(others)])
        if self.folded:
            title = tag("summary", heading.html(), tag("span", self.folded, class_="quiet"))
            content = tag("details", title, write_html(others), class_="part")
        return tag("section", "\n", content, "\n", id=self.anchor, aria_labelledby=f"h-{self.anchor}")
