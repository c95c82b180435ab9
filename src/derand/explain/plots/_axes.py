"""What all plots share: colours, axes where none are given, and names as they are.

Owns how text of the user's gets into a picture: a name is never read as a formula. Must not know what is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

ACCENT, WRONG, MUTED, DATA = "#0a5ea8", "#c2500a", "#5b6b7a", "#dde4eb"
"""Blue, orange and greys that people of any colour vision tell apart."""
LINES = ("#0a5ea8", "#c2500a", "#00805e", "#a03a78", "#5b6b7a", "#8a6d00", "#3f97c9", "#000000")
"""Of several models or classes: told apart by any colour vision, and dark enough on white."""
_DEFAULT_LENGTH = 30


def as_axes(axes: Axes | None) -> Axes:
    """The same, or new ones."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots()[1]


def as_label(text: object, length: int = _DEFAULT_LENGTH) -> str:
    """Text of the user's on one line; where it is long, its middle is left out, as long names differ at their ends.

    Examples
    --------
    >>> as_label("income\\n(yearly)"), as_label("number of open accounts", 12)
    ('income (yearly)', 'number…ounts')
    """
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())
    if len(line) <= length:
        return line
    end = (length - 1) // 2
    return f"{line[: length - 1 - end].rstrip()}…{line[len(line) - end :].lstrip()}"


def keep_plain(*texts: Text) -> None:
    """Show texts as they are written: a dollar sign is no formula."""
    for text in texts:
        text.set_parse_math(False)
