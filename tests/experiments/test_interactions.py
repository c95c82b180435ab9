"""The table of features that interact: its patches, and the generated task."""

from __future__ import annotations

import pytest

from experiments.commands._interactions import format_lines
from experiments.interactions import CROSSED, compare_groups, cut_patches


def test_patches_cover_an_image_once() -> None:
    for height, width in ((1, 2), (2, 2)):
        pixels = [pixel for patch in cut_patches(height, width) for pixel in patch]
        assert sorted(pixels) == list(range(784))


@pytest.mark.long
def test_groups_tell_what_single_columns_cannot() -> None:
    lines = list(compare_groups([CROSSED]))
    single, found, given = (line.shares.natural for line in lines)
    assert single < 60
    assert min(found, given) > 95
    assert "groups that were found" in format_lines(lines)
