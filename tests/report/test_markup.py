"""Numbers as text are never better than the truth."""

from __future__ import annotations

from derand._core.text import format_short_down
from derand.report._markup import percent


def test_text_never_rounds_in_favour() -> None:
    """Radii and shares are cut, also where a share has no exact double."""
    assert format_short_down(0.9999999) == "0.999"
    for rows in range(1, 300):
        for held in (0, rows // 3, rows - 1, rows):
            shown = float(percent(held / rows).split("\N{NO-BREAK SPACE}")[0])
            assert shown == (1000 * held // rows) / 10
