"""What several tests of this folder try: a small table, and made-up lines and outcomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.reproduce._outcomes import Outcome
from experiments.reproduce._plans import Plan, make_plan
from experiments.reproduce._specification import Item, Line

SMALL = "tab:l2-mle-ablation"


def make_outcome(radius: list[float], correct: list[bool] | None = None) -> Outcome:
    n_rows = len(radius)
    label = np.ones(n_rows, dtype=np.int64)
    y = label if correct is None else np.where(correct, label, 0)
    return Outcome(y, label, np.array([radius]), np.empty(0), np.array([1.0, 2.0]))


def make_line(metric: dict[str, Any], **recipe: Any) -> tuple[Item, Line, Plan]:
    """A line of a made-up table on diabetes, l2 with sigma 1."""
    fields = {"norm": "l2", "dataset": "diabetes", "noise": 1.0}
    content = {"name": "tab:made-up", "title": "made up", "recipe": recipe, "lines": [{**fields, **metric}]}
    item = Item("tab:made-up", "made up", content)
    line = replace(item.lines[0], variants=(), reason=None)
    return item, line, make_plan(line.recipe)
