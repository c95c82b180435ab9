"""What the part "What if" of a page is made of: the model's tables, the rows, and what may change of them.

Types alone: `_what_if` fills them, the page's script reads them. Infinity is the text "inf", a missing number null.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Size = float | Literal["inf"]
"""A number that may be infinite."""
Decides = Literal["score", "line", "mean", "vote", "median", "none"]
"""What the page computes: the score, a sum of products, the expected score, the share of copies, their median; or no
answer."""


class WhatIfOption(TypedDict):
    """A value of a category, and whether a change to it is covered by certificates."""

    code: float | None
    text: str
    allowed: bool


class WhatIfColumn(TypedDict):
    """A column that the model reads: how it is moved, and what the threat says of it.

    Of numbers, `limit` is a share of the value ("share") or how far down and up ("down", "up").
    """

    feature: int
    name: str
    kind: Literal["number", "category"]
    frozen: bool
    date: NotRequired[bool]
    """Whether it was a column of dates, and its numbers are days since 1970-01-01."""
    low: NotRequired[float]
    high: NotRequired[float]
    middle: NotRequired[float]
    grain: NotRequired[float]
    whole: NotRequired[bool]
    ends: NotRequired[list[float] | None]
    """What it cannot leave: 0 and 1, where training rows held nothing else."""
    takes_missing: NotRequired[bool]
    unit: NotRequired[float]
    noise_scale: NotRequired[float | None]
    limit: NotRequired[dict[str, Size] | None]
    domain: NotRequired[list[float | str] | None]
    step: NotRequired[float]
    options: NotRequired[list[WhatIfOption]]


class WhatIfTerm(TypedDict):
    """A function of the sum; `at` are places among the columns.

    Of numbers: the edges of each axis, whether it ends with a cell for missing values, and the scores of all cells, one
    output after the other within a cell. Of a category: the scores of its options. Of a line: slopes instead.
    """

    at: list[int]
    edges: NotRequired[list[list[float]]]
    gaps: NotRequired[list[bool]]
    scores: NotRequired[list[int]]
    slopes: NotRequired[list[float]]
    missing: NotRequired[list[float] | None]


class WhatIfMember(TypedDict):
    """A sum: what it is compared with (of several classes, what is added to each), and the ends of its range."""

    shift: list[int]
    low: float
    high: float
    terms: list[WhatIfTerm]


class WhatIf(TypedDict):
    """All that the page needs to answer for moved rows of the row table, the first ones of it: a list of `cells` per
    column, in the order of the table."""

    answer: Literal["label", "number"]
    decides: Decides
    noise: str | None
    norm: Size | None
    missing_budget: int
    budgets: list[int]
    points: float
    odds: list[float] | None
    """Slope and shift from a score's lead to log-odds; None where the classifier gives no probabilities."""
    n_outputs: int
    weights: list[float] | None
    columns: list[WhatIfColumn]
    members: list[WhatIfMember]
    n_rows: int
    cells: list[list[float | None]]
    sentence: str
