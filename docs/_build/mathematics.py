"""Mathematics in the pages: `$...$` and `$$...$$` become MathML while the site is built.

Browsers draw MathML by themselves, so that no page needs a script or a font from elsewhere. Must not know the site.
"""

from __future__ import annotations

import re
import unicodedata
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

MATHML = "http://www.w3.org/1998/Math/MathML"
OPERATOR = f"{{{MATHML}}}mo"
STYLES = {"script": "SCRIPT", "bold": "BOLD", "double-struck": "DOUBLE-STRUCK", "fraktur": "FRAKTUR"}
"""Styles that browsers no longer take from an attribute, and how Unicode names their letters."""
FUNCTIONS, THIN = ("exp", "ln", "log", "max", "min"), "0.167em"
MINUS, TIGHT, CLOSING = "\N{MINUS SIGN}", ("/", "|"), (")", "]", "}", "|", "\N{DOUBLE VERTICAL LINE}")

# code (priority 190) is taken before us; backslashes (180) and emphasis after
PRIORITY = 185
BLOCK = r"\$\$(.+?)\$\$"
INLINE = r"(?<![\\$])\$(?!\s)([^$]+?)(?<!\s)\$(?![\d$])"


def to_mathml(latex: str, display: str = "inline") -> str:
    """MathML of a formula.

    Parameters
    ----------
    latex : str
        Without the dollar signs.
    display : "inline" or "block"

    Returns
    -------
    str
        One `math` element.

    Raises
    ------
    ValueError
        Where a command is not understood; the message names the formula.

    Examples
    --------
    >>> to_mathml("x")
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    try:
        tree = ElementTree.fromstring(convert(latex.strip(), display=display))
    except Exception as error:
        raise ValueError(f"the formula ${latex}$ cannot be converted: {error!r}") from error
    _space_operators(tree)
    for element in tree.iter():
        style = element.attrib.get("mathvariant")
        if style in STYLES and element.text:
            element.text = "".join(_restyle(character, STYLES[style]) for character in element.text)
            del element.attrib["mathvariant"]
        if element.text and "\\" in element.text:
            raise ValueError(f"the formula ${latex}$ holds {element.text}, which is not understood.")
    ElementTree.register_namespace("", MATHML)
    return ElementTree.tostring(tree, encoding="unicode")


def _space_operators(tree: ElementTree.Element) -> None:
    """Space signs as TeX does: none around bars and slashes, none after a minus that negates; capital Greek upright."""
    for parent in tree.iter():
        row = list(parent)
        for place, element in enumerate(row):
            before = row[place - 1] if place else None
            opens = place + 1 < len(row) and row[place + 1].text == "("
            if element.text == MINUS and _negates(before):
                element.set("form", "prefix")
            elif element.text in TIGHT:
                element.attrib.update(lspace="0", rspace="0")
            elif element.text in FUNCTIONS:
                element.tag = OPERATOR
                element.attrib.update(lspace=THIN, rspace="0" if opens else THIN)
            elif element.text and "\N{GREEK CAPITAL LETTER ALPHA}" <= element.text <= "\N{GREEK CAPITAL LETTER OMEGA}":
                element.set("mathvariant", "normal")


def _negates(before: ElementTree.Element | None) -> bool:
    """Whether a minus after this element belongs to what follows."""
    return before is None or (before.tag == OPERATOR and before.text not in CLOSING)


def _restyle(character: str, style: str) -> str:
    """The mathematical letter or digit of a style, such as a bold 1."""
    name = unicodedata.name(character, "")
    kind = name.removeprefix("LATIN ").replace(" LETTER", "")  # "CAPITAL F", "SMALL F", "DIGIT ONE"
    for candidate in (f"{style} {kind}", f"MATHEMATICAL {style} {kind}"):
        try:
            return unicodedata.lookup(candidate)
        except KeyError:
            continue
    return character


class _Formula(InlineProcessor):
    """Puts a formula's MathML in its place, out of reach of the other rules."""

    def __init__(self, pattern: str, display: str, md: Markdown) -> None:
        super().__init__(pattern, md)
        self.compiled_re = re.compile(pattern, re.DOTALL)
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802 - Markdown's name
        formula = to_mathml(m.group(1), self.display)
        if self.display == "block":
            formula = f'<span class="formula">{formula}</span>'  # scrolls where the page is narrow
        return self.md.htmlStash.store(formula), m.start(0), m.end(0)


class Mathematics(Extension):
    """The extension of Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name
        md.inlinePatterns.register(_Formula(BLOCK, "block", md), "formula-block", PRIORITY + 1)
        md.inlinePatterns.register(_Formula(INLINE, "inline", md), "formula", PRIORITY)
