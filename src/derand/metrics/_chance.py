"""Whether shares differ by more than chance: exact tests, and how they are read where there are many of them.

Must not know what is counted.
"""

from __future__ import annotations

from collections.abc import Sequence


def compare_shares(count: int, total: int, other_count: int, other_total: int) -> float:
    """The probability that two groups of rows with one and the same true share differ as much as these, or more.

    Fisher's exact test, two-sided: it holds for groups of any size.

    `count`, `total`: how many rows of the one group count, and of how many; `other_count`, `other_total`: the same of
    the other group.

    Examples
    --------
    >>> round(compare_shares(8, 10, 1, 10), 4)
    0.0055
    """
    from scipy.stats import fisher_exact  # slow to import, and few need it

    table = [[count, total - count], [other_count, other_total - other_count]]
    return min(1.0, float(fisher_exact(table).pvalue))


def compare_paired(first: int, second: int) -> float:
    """The probability that two answers to the same rows, of equal worth, differ as unevenly as these, or more so.

    McNemar's test in its exact form: of the rows on which they differ, each is as likely to speak for one as for the
    other.

    `first`, `second`: on how many rows only the first is right, and only the second.

    Examples
    --------
    >>> compare_paired(0, 5), compare_paired(0, 0)
    (0.0625, 1.0)
    """
    from scipy.stats import binomtest

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0


def adjust_chances(chances: Sequence[float]) -> list[float]:
    """The same probabilities raised by Holm's method, so that each may be compared with 5 % by itself.

    However many there are, and however they depend on each other: where nothing differs, the probability that any of
    them is below 5 % is at most 5 %.

    Examples
    --------
    >>> adjust_chances([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    raised = [1.0] * len(chances)
    highest = 0.0
    for place, at in enumerate(sorted(range(len(chances)), key=lambda at: chances[at])):
        highest = max(highest, min(1.0, chances[at] * (len(chances) - place)))
        raised[at] = highest
    return raised
