"""Blocks: declared once, the same text in every output, and escaped in each."""

from __future__ import annotations

from markupsafe import Markup

from derand.report._blocks import (
    Bullets,
    Cell,
    Comment,
    Details,
    FactList,
    Figure,
    Group,
    Heading,
    Paragraph,
    Raw,
    Section,
    Table,
    in_latex,
    in_markdown,
    name_cell,
    on_page,
    write_html,
    write_latex,
    write_markdown,
)

NASTY = "<b>_a_ & 5 %"
ESCAPED = "&lt;b&gt;_a_ &amp; 5 %"


def test_text_is_escaped_in_every_output() -> None:
    """In paragraphs, headings, lists, facts and cells; markup of the page is taken as it is."""
    table = Table(["name", NASTY], [[NASTY, NASTY]], label=NASTY, caption=NASTY, latex_title="figures")
    blocks = [Heading(NASTY, "top"), Paragraph(NASTY, "fine"), Bullets([NASTY]), FactList([(NASTY, NASTY)]), table]
    page = write_html(blocks)
    assert "<b>" not in page
    assert f'<h2 id="h-top">{ESCAPED}</h2>' in page
    assert f'<p class="fine">{ESCAPED}</p>' in page
    assert f'aria-label="{ESCAPED}"' in page
    told = "\n".join(write_markdown(blocks))
    assert "<b>" not in told
    assert "## \\<b\\>\\_a\\_ & 5 %" in told
    assert "| name | \\<b\\>\\_a\\_ & 5 % |" in told  # once, not twice
    assert "\\textless{}b\\textgreater{}\\_a\\_ \\& 5 \\%" in "\n".join(write_latex(blocks))
    assert write_html([Paragraph(Markup("<em>and</em>")), Paragraph("")]) == "<p><em>and</em></p>\n"


def test_blocks_stand_where_they_are_meant_to() -> None:
    """Groups and folded parts are transparent in text; some blocks belong to one output alone."""
    inside = [Paragraph("told"), Raw(Markup("<hr>")), Figure(None, "no picture"), Comment("source")]
    for one in (Group("beside", inside), Details("card", inside, summary="more", is_open=True)):
        assert one.markdown() == ["told"]
        assert one.latex() == ["% source"]
        assert "<p>told</p>\n<hr>" in one.html()
        assert "no picture" not in one.html()
    parts = [on_page(Paragraph("page")), in_markdown(Paragraph("text")), in_latex(Comment("paper"))]
    assert write_html(parts).strip() == "<p>page</p>"
    assert write_markdown(parts) == ["text"]
    assert write_latex(parts) == ["% paper"]


def test_tables_are_declared_once() -> None:
    """Heads begin with a capital on the page, cells may show more there, and LaTeX has tables with a title alone."""
    rows = [[name_cell("a long name", 6), Cell("0.5", kind="quoted", style="--weak: 1")]]
    table = Table(["row", Cell("radius", "Radius (l2)")], rows, test="some")
    page = table.html()
    assert '<th scope="col">Row</th><th scope="col">Radius (l2)</th>' in page
    assert '<th scope="row" title="a long name">a lon…</th><td class="quoted" style="--weak: 1">0.5</td>' in page
    assert table.markdown() == ["| row | radius |\n| --- | ---: |\n| a long name | 0.5 |"]
    assert table.latex() == []
    named = Table(["row", "radius"], [["1", "0.5"]], latex_title="", align=("r", "p{8cm}"))
    assert named.latex()[0] == "\\begin{tabular}{rp{8cm}}"
    assert named.markdown()[0].splitlines()[1] == "| ---: | --- |"


def test_a_section_bears_its_anchor() -> None:
    section = Section("some", lambda _: "Some", lambda summary: [Heading(summary["title"], "some")])
    page = section.html({"title": "Title"})
    assert page.startswith('<section id="some" aria-labelledby="h-some">')
    assert '<h2 id="h-some">Title</h2>' in page
