"""Plans: every line of every table has one, and lines share it where they need the same model."""

from __future__ import annotations

import pytest

from experiments.reproduce import list_names
from experiments.reproduce._outcomes import CERTIFIERS, TRAINERS
from experiments.reproduce._plans import make_plan
from experiments.reproduce._specification import find_item, read_reasons

WITH_MODELS = [name for name in list_names() if name.startswith("tab:") and not find_item(name).is_settings]


@pytest.mark.parametrize("name", WITH_MODELS)
def test_every_line_has_a_plan(name: str) -> None:
    """A line's recipe names a trainer and a certifier that exist, and reasons that are described."""
    for line in find_item(name).lines:
        for recipe in (line.recipe, *line.variants):
            plan = make_plan(recipe)
            assert plan.trainer in TRAINERS
            assert plan.certifier in CERTIFIERS
        assert line.reason is None or line.reason in read_reasons()


def test_quirks_are_named_options() -> None:
    """The identifier as a feature and cut numbers stand where the paper has them."""
    plans = {
        line.fields["dataset"]: make_plan(line.recipe)
        for name in ("tab:baseline-both", "tab:joint-cv-balanced-l2")
        for line in find_item(name).lines
    }
    assert plans["breast_cancer"].dataset == "breast_cancer_with_id"
    assert [name for name, plan in plans.items() if plan.cut_numbers] == ["mammographic"]


def test_lines_that_need_the_same_model_share_a_plan() -> None:
    """The lines of a joint table that differ in changed categories alone have one plan."""
    lines = [line for line in find_item("tab:joint-cv-balanced-l2").lines if line.fields["dataset"] == "adult"]
    assert len(lines) > len({make_plan(line.recipe).key for line in lines}) == 3
