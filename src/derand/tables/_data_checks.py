"""Data checks of columns that can be learnt from: identifiers, dates and numbers as text, leaks of the target.

Owns when a column is suspected, and the message that says so. Rows are looked at in a sample. Must not know models.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray, Targets
from derand._core.text import join_words, quote_short
from derand.tables._dates import reads_as_date
from derand.tables._kinds import Category, reads_as_number

MOST_CLASSES = 256
FEW_CLASSES = 20
"""Up to so many classes may have a row or two each."""
MOST_ROWS = 20_000
"""That are looked at."""
_FEWEST_ROWS = 50
"""Of a table whose whole numbers may be called identifiers by their order alone."""
_NAMED_ROWS = 20
_NAMES = frozenset(
    {"id", "ids", "uuid", "guid", "key", "pk", "no", "nr", "num", "number", "index", "idx", "rowid", "ref", "reference"}
)
_NUMBER_TEXT = re.compile(r"[-+]?[$€£]? ?(\d{1,3}([,.' ]\d{3})+|\d+)?([.,]\d+)? ?[%$€£]?")
_MOST_TEXTS = 0.95
_LEAK_ROWS, _LEAK_CASES = 100, 20
_LEAST_LEFT = 0.02
"""Of the errors of a constant answer, what a column that leaks the target leaves."""
_LEAK_ORDER = 0.995
"""Share of pairs of rows of two classes that a leak puts in order."""
_LEAK_RANKS = 0.999
_CELL_ROWS, _MOST_CELLS = 50, 32
_BLOCK_NUMBERS = 2**18  # of columns that are looked at together
_ROUNDING = 1e-9
_SENTINELS = frozenset(sign * float("9" * digits) for digits in range(1, 10) for sign in (-1, 1)) | {-1.0}
_LEAST_SENTINELS = 2

_COUNTING = "has another whole number in every row, as row numbers and identifiers do"
_NAMED = "is named like an identifier, and its whole numbers hardly repeat"
_ORDERED = "rises or falls from row to row by whole numbers, as row numbers and identifiers do"
_LEAK = "predicts the target almost alone: make sure that it is known before the target, or leave it out"


def sample_rows(n_rows: int) -> IntArray | None:
    """Rows to look at, in order; None for all of them."""
    if n_rows <= MOST_ROWS:
        return None
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False))


def recognise_text(values: Collection[Category]) -> tuple[str, str] | None:
    """What most values of a column of text read as, "dates" or "numbers", and one of them; None for neither."""
    texts = [str(value) for value in values]
    for word, reads in (("dates", reads_as_date), ("numbers", reads_as_written_number)):
        found = [text for text in texts if reads(text)]
        if len(found) > 1 and len(found) >= _MOST_TEXTS * len(texts):
            return word, next((text for text in found if not reads_as_number(text)), found[0])
    return None


def reads_as_written_number(text: str) -> bool:
    """Whether people would read text as a number: with signs for thousands, a comma, a per cent or a currency."""
    stripped = text.strip()
    return any(sign.isdigit() for sign in stripped) and (
        reads_as_number(stripped) or bool(_NUMBER_TEXT.fullmatch(stripped))
    )


def check_text(values: Collection[Category]) -> str | None:
    """What to say of a column of text by what it reads as."""
    found = recognise_text(values)
    if found is None:
        return None
    word, example = found
    if word == "dates":
        return f"is text that reads as dates, such as {quote_short(example)}: {ADVICE_ON_DATES}"
    return f"is text that reads as numbers, such as {quote_short(example)}: turn it into plain numbers first"


def check_spellings(values: Collection[Category]) -> str | None:
    """What to say of categories that differ by capital letters or by blanks at their ends alone.

    Examples
    --------
    >>> check_spellings(["M", "m", "f ", "f", "d"])
    "spells one category in several ways, such as 'M' and 'm': write 2 of its values alike first"
    """
    by_word: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str):
            by_word.setdefault(" ".join(value.split()).casefold(), []).append(value)
    several = [sorted(spelt) for spelt in by_word.values() if len(spelt) > 1]
    if not several:
        return None
    count = sum(len(spelt) - 1 for spelt in several)
    alike = "its values" if count == 1 else f"{count} of its values"
    example = join_words([quote_short(one) for one in several[0]])
    return f"spells one category in several ways, such as {example}: write {alike} alike first"


def check_sentinel(values: FloatArray) -> str | None:
    """What to say of a number such as -999 that stands far outside all others in several rows, or is the only one
    below 0.

    Examples
    --------
    >>> check_sentinel(np.array([3.0, -999.0, 41.0, -999.0, 12.0]))
    'holds -999 in 2 cells, far outside its other numbers (3 to 41): if that means missing, empty the cells'
    """
    present = np.sort(values[np.isfinite(values)])
    for end in (present[:1], present[-1:]):
        others = present[present != end]
        if others.size == 0 or present.size - others.size < _LEAST_SENTINELS or float(end[0]) not in _SENTINELS:
            continue
        low, high = float(others[0]), float(others[-1])
        is_far = min(abs(end[0] - low), abs(end[0] - high)) > high - low > 0
        if is_far or (end[0] < -1 and low >= 0):
            where = "far outside its other numbers" if is_far else "and no other number below 0"
            return (
                f"holds {end[0]:g} in {present.size - others.size} cells, {where} ({low:g} to {high:g}): if that means "
                "missing, empty the cells"
            )
    return None


ADVICE_ON_DATES = "turn it into days (--dates on the command line, derand.dates_to_numbers in Python), or leave it out"


def check_identifier(name: str | int, values: FloatArray, n_rows: int) -> tuple[str | None, bool]:
    """What to say of numbers that look like identifiers, and whether that is certain enough to leave them out.

    `values`: of sampled rows, in their order; `n_rows`: of the whole table.
    """
    if n_rows < _NAMED_ROWS or np.isnan(values).any() or (values != np.floor(values)).any():
        return None, False
    ordered = np.sort(values)
    repeats = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
    named = not _NAMES.isdisjoint(_split_name(name))
    if repeats:
        return (_NAMED, False) if named and repeats < 0.5 * values.size else (None, False)
    if named:
        return _COUNTING, True
    if n_rows < _FEWEST_ROWS:
        return None, False
    if ordered[-1] - ordered[0] < 1.02 * n_rows:  # hardly a number is left out
        return _COUNTING, True
    steps = np.diff(values)
    return (_ORDERED, False) if (steps > 0).all() or (steps < 0).all() else (None, False)


def check_target(name: str | int, numbers: FloatArray) -> str | None:
    """What to say of a target of numbers that looks like an identifier; None where it does not."""
    rows = sample_rows(numbers.size)
    message, _ = check_identifier(name, numbers if rows is None else numbers[rows], numbers.size)
    if message is None:
        return None
    return f"The target {quote_short(name)} {message}: look whether another column is meant."


def _split_name(name: str | int) -> list[str]:
    """The words of a name, also of one such as customerId."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(name))
    return re.split(r"[^a-z0-9]+", parted.lower())


class Leaks:
    """Asks of columns whether they tell the target by themselves: labels, or more than twenty different numbers."""

    def __init__(self, target: Targets) -> None:
        values, codes = np.unique(target, return_inverse=True)
        self._is_number = target.dtype.kind in "iuf" and values.size > 20
        self._codes, self._n_classes = codes.ravel(), values.size
        counts = np.bincount(self._codes)
        self._errors = target.size - int(counts.max(initial=0))
        enough = self._is_number or (self._errors >= _LEAK_CASES and self._n_classes <= 256)
        self._asks = target.size >= _LEAK_ROWS and enough

    def check_numbers(self, values: FloatArray) -> str | None:
        """What to say of a column of numbers that leaks."""
        if not self._asks:
            return None
        if self._is_number:
            present = ~np.isnan(values)
            if present.sum() < _LEAK_ROWS:
                return None
            ranks = _rank(values[present]), _rank(self._codes[present].astype(np.float64))
            return _LEAK if abs(_correlate(*ranks)) > _LEAK_RANKS else None
        if self._n_classes == 2 and self._is_in_order(values):
            return _LEAK
        return self._check_codes(_cut(values))

    def check_many(self, columns: Sequence[FloatArray]) -> list[str | None]:
        """The same for many columns, which takes less time; those in which something is missing one by one."""
        found: list[str | None] = [None] * len(columns)
        if not self._asks:
            return found
        whole = [at for at, values in enumerate(columns) if not (self._is_number or np.isnan(values).any())]
        for at in set(range(len(columns))).difference(whole):
            found[at] = self.check_numbers(columns[at])
        size = max(1, _BLOCK_NUMBERS // self._codes.size)
        for start in range(0, len(whole), size):
            block = whole[start : start + size]
            for at, leaks in zip(block, self._leak(np.array([columns[at] for at in block])), strict=True):
                found[at] = _LEAK if leaks else None
        return found

    def _leak(self, values: FloatArray) -> NDArray[np.bool_]:
        """Which columns tell the label, shape (n_columns, n_rows); none is missing. As `check_numbers` does it."""
        n_columns, n_rows = values.shape
        n_cells = _count_cells(n_rows)
        edges = np.quantile(values, np.arange(1, n_cells) / n_cells, axis=1)
        cells = np.zeros(values.shape, dtype=np.int64)
        for edge in edges:
            cells += values >= edge[:, None]
        places = (cells + n_cells * np.arange(n_columns)[:, None]) * self._n_classes + self._codes
        counts = np.bincount(places.ravel(), minlength=n_columns * n_cells * self._n_classes)
        by_cell = counts.reshape(n_columns, n_cells, self._n_classes)
        leaks = self._is_pure(by_cell)
        if self._n_classes == 2:
            for at in np.flatnonzero(~leaks & _may_be_in_order(by_cell)).tolist():
                leaks[at] = self._is_in_order(values[at])
        return leaks

    def check_categories(self, codes: IntArray) -> str | None:
        """What to say of a column of categories that leaks; -1 is a missing one."""
        if not self._asks:
            return None
        if not self._is_number:
            return self._check_codes(codes + 1)
        ranks, own = _rank(self._codes.astype(np.float64)), codes + 1
        counts = np.bincount(own)
        if counts[counts > 0].min() < 5:
            return None
        means = np.bincount(own, weights=ranks) / np.maximum(counts, 1)
        return _LEAK if _correlate(means[own], ranks) ** 2 > _LEAK_RANKS else None

    def _is_in_order(self, values: FloatArray) -> bool:
        """Whether the larger numbers are those of one class; missing ones stand below all others, or above."""
        one = self._codes == 1
        pairs = float(one.sum()) * float((~one).sum())
        for fill in (-np.inf, np.inf) if np.isnan(values).any() else (0.0,):
            ranks = _rank(np.where(np.isnan(values), fill, values))
            share = (ranks[one].sum() - one.sum() * (one.sum() + 1) / 2) / pairs
            if max(share, 1 - share) > _LEAK_ORDER:
                return True
        return False

    def _check_codes(self, codes: IntArray) -> str | None:
        counts = np.bincount(codes * self._n_classes + self._codes, minlength=(codes.max() + 1) * self._n_classes)
        return _LEAK if self._is_pure(counts.reshape(1, -1, self._n_classes))[0] else None

    def _is_pure(self, counts: IntArray) -> NDArray[np.bool_]:
        """Whether the commonest labels of cells are nearly always right; counts are (n_columns, n_cells, n_classes)."""
        most = self._codes.size and int(np.bincount(self._codes).argmax())
        enough = counts.sum(axis=2) >= 5  # one row alone is always pure
        right = np.where(enough, counts.max(axis=2), counts[:, :, most]).sum(axis=1)
        return np.asarray(self._codes.size - right <= _LEAST_LEFT * self._errors)


def _rank(values: FloatArray) -> FloatArray:
    """Ranks from 1 on; equal values share theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place.ravel()])


def _correlate(first: FloatArray, second: FloatArray) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size else 0.0


def _may_be_in_order(counts: IntArray) -> NDArray[np.bool_]:
    """Whether pairs of rows could be in order as far as a leak asks for, if those of one cell were as they may be.

    `counts` are those of two classes in each cell of each column, (n_columns, n_cells, 2).
    """
    zero, one = counts[:, :, 0].astype(np.float64), counts[:, :, 1].astype(np.float64)
    below = np.cumsum(zero, axis=1) - zero
    pairs = zero.sum(axis=1) * one.sum(axis=1)
    surely, perhaps = (one * below).sum(axis=1), (one * (below + zero)).sum(axis=1)
    return np.asarray(np.maximum(perhaps, pairs - surely) > _LEAK_ORDER * pairs * (1 - _ROUNDING))


def _count_cells(n_rows: int) -> int:
    return max(1, min(_MOST_CELLS, n_rows // _CELL_ROWS))


def _cut(values: FloatArray) -> IntArray:
    """Cells of like numbers of rows, from 1 on; 0 where a number is missing."""
    missing = np.isnan(values)
    n_cells = _count_cells(values.size)
    if missing.all():
        return np.zeros(values.size, dtype=np.int64)
    edges = np.unique(np.quantile(values[~missing], np.arange(1, n_cells) / n_cells))
    return np.where(missing, 0, 1 + np.searchsorted(edges, values, side="right"))


def refuse_identifiers(n_classes: int, n_rows: int, what: str, more: str = "") -> None:
    """Refuse many classes of which most rows have one of their own: nothing can be learnt of them."""
    if n_classes > FEW_CLASSES and 2 * n_classes > n_rows:
        raise ValueError(
            f"{what} must hold classes of several rows each, got {n_classes} different labels in {n_rows} rows, as an "
            f"identifier has: choose another target, or merge classes.{more}"
        )
