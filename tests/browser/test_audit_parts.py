"""Parts that an auditor reads: what may change, what is not guaranteed, subgroups, two models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier
from derand.report import Report

Visit = Callable[..., Any]
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def compared() -> Report:
    """Two models, a column and a model with hostile names, and a group whose labels are turned around."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({HOSTILE: rng.normal(size=300), "b": rng.normal(size=300), "sex": rng.choice(["f", "m"], 300)})
    y = (frame[HOSTILE] + frame["b"] > 0).to_numpy().astype(int)
    truth = np.where((frame["sex"] == "f") & (rng.random(300) < 0.6), 1 - y, y)
    first, second = (StumpClassifier(noise=f"gaussian:{size}", scaling="standard").fit(frame, y) for size in (0.3, 0.8))
    return Report(first, frame, truth, subgroups="sex", compare=second, compare_name=HOSTILE, what_if=False)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_all_parts_are_seen_at_every_width(visit: Visit, compared: Report, width: int, scheme: str) -> None:
    """Nothing is wider than the window, hostile names are text, and limits need no click."""
    page = visit(compared, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert page.locator("img").count() == 0
    assert page.locator("[data-test=limits] li").first.is_visible()
    summary = compared.to_dict()
    found = summary["comparison"]
    assert found is not None
    assert page.locator("[data-test=comparison]").inner_text() == found["sentence"]
    assert page.locator("#compare svg[role=img]").count() == 1
    assert page.locator("[data-test=threat-table] tbody tr").count() == 3
    marks = page.locator("[data-test=subgroups] .beyond, .contrasts:not([data-test=subgroups]) .beyond")
    assert marks.count() == 2 * (summary["group_comparison"] or {"n_marked": 0})["n_marked"] > 0


def test_rows_on_which_models_differ_open_by_the_keyboard(visit: Visit, compared: Report) -> None:
    """The list says how many there are, and shows rows when it is opened."""
    page = visit(compared)
    tables = {one["key"]: one for one in (compared.to_dict()["comparison"] or {"disagreements": []})["disagreements"]}
    part = page.locator("[data-test=disagreement]").nth(1)
    assert f"{tables['first']['n_rows']} of 300" in part.locator("summary").inner_text()
    assert not part.locator("tbody tr").first.is_visible()
    part.locator("summary").focus()
    page.keyboard.press("Enter")
    assert part.locator("tbody tr").first.is_visible()
    assert part.locator("tbody tr").count() == len(tables["first"]["rows"])
