"""What may change, column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from derand import Threat
from derand._core.text import format_short_down
from derand.report import Report
from tests.report.pages import check_page


def tabulate(mixed: Any, threat: Threat | None = None, **options: Any) -> dict[str, Any]:
    clf, X, y = mixed
    report = Report(clf, X, y, threat=threat, what_if=False, n_explained=0, **options)
    check_page(report)
    found = report.to_dict()["threat_table"]
    return {"": found, **{one["column"]: one for one in found["columns"]}}


def test_without_a_threat_the_table_is_in_the_users_units(mixed: Any) -> None:
    """A number may move by the radius times its unit; categories where it is said."""
    clf, _, _ = mixed
    found = tabulate(mixed, radius=0.5)
    assert found["age"]["change"] == f"by less than {format_short_down(0.5 * clf.units[0])}"
    assert (found["age"]["direction"], found["age"]["values"]) == ("up and down", "any number")
    assert found["job"]["change"] == "to any value, where it says “changed”"
    assert found["job"]["values"] == "“clerk”, “cook” and “smith”"
    assert found[""]["note"].startswith("Radius 0.5: one column may change by 0.5 of its unit")
    assert "any 1 to 2 of the categories" in found[""]["words"][-1]


def test_limits_directions_ends_steps_and_frozen_columns(mixed: Any) -> None:
    """Each has its own cell."""
    threat = Threat(
        norm=None, limits={"age": (0, 3)}, domain={"age": (0, 120)}, steps={"age": 0.5}, frozen=["town"], l0=1,
        may_become={"job": ["cook"]},
    )  # fmt: skip
    found = tabulate(mixed, threat)
    assert (found["age"]["change"], found["age"]["direction"]) == ("up by at most 3", "up only")
    assert (found["age"]["domain"], found["age"]["values"]) == ("between 0 and 120", "steps of 0.5")
    assert (found["job"]["change"], found["job"]["values"]) == ("to these values alone", "“cook”")
    assert (found["town"]["moves"], found["town"]["change"]) == (False, "frozen: stays as it is")
    assert found[""]["n_moving"] == 2


def test_norms_say_how_columns_go_together(mixed: Any) -> None:
    """All at once in norm inf, a number of columns in norm 0."""
    found = tabulate(mixed, Threat(norm=np.inf, limits={"age": "5%"}), rule="mean")
    assert found["age"]["change"].endswith(", and by at most 5% of its value")
    assert "0.25" in str(found[""]["note"])
    assert found["job"]["change"] == "stays as it is"
    found = tabulate(mixed, Threat(norm=0), rule="mean")
    assert found["age"]["change"] == "to any number"
    assert found[""]["note"].startswith("At radius 1: any 1 number")
