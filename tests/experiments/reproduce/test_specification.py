"""What the TOML files hold, and how recipes are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.reproduce import list_names, read_items
from experiments.reproduce._plans import make_plan
from experiments.reproduce._specification import METRICS, find_item, fits, merge, resolve_recipe
from tests.shared import shared_folder

TABLES = [name for name in list_names() if name.startswith("tab:")]
FIGURES = [name for name in list_names() if name.startswith("fig:")]


def test_every_table_and_figure_is_there() -> None:
    """19 tables, 9 figures and the claims, each in a file of its own name."""
    assert (len(TABLES), len(FIGURES), list_names()[-1]) == (19, 9, "claims")
    for name, item in read_items().items():
        assert item.name == name
        assert item.title


@pytest.mark.parametrize("name", TABLES)
def test_published_numbers_are_those_of_the_paper(name: str) -> None:
    """Every printed number, with its fields, radius and deviation, is the one of the shared tables."""
    rows = json.loads((shared_folder("paper") / "tables.json").read_text(encoding="utf-8"))[name]["rows"]
    ours = [
        {**line.fields, "metric": one.metric, "radius": one.radius, "value": one.value, "std": one.deviation}
        for line in find_item(name).lines
        for one in line.published
    ]
    wanted = [
        {"metric": row.get("metric", row.get("parameter")), "radius": None, "std": None}
        | {key: value for key, value in row.items() if key not in ("parameter", "relation", "printed")}
        for row in rows
    ]

    def normalise(cells: list[dict[str, Any]]) -> list[str]:
        plain = [{key: value for key, value in cell.items() if value is not None} for cell in cells]
        return sorted(json.dumps(cell | {"value": float(cell["value"])}, sort_keys=True) for cell in plain)

    assert normalise(ours) == normalise(wanted)


def test_the_rows_add_up() -> None:
    """All 2077 printed numbers are there."""
    assert sum(len(line.published) for name in TABLES for line in find_item(name).lines) == 2077


def test_settings_are_read_from_their_tables() -> None:
    """Noise that a line does not print comes from the table of noise levels, boosting's settings from theirs."""
    line = next(line for line in find_item("tab:error-bounds-extensive").lines if line.fields["dataset"] == "diabetes")
    assert make_plan(line.recipe).noise == "uniform:0.35"
    boosted = [line for line in find_item("tab:baseline-both").lines if line.fields["method"] == "robtreeboost"]
    assert [line.recipe["training"]["quantile"] for line in boosted] == [0.6, 0.7, 0.98, 0.95]
    assert [line.recipe["training"]["n_estimators"] for line in boosted] == [30, 15, 40, 100]


def test_printed_noise_agrees_with_the_settings() -> None:
    """Where a line prints its noise and a table of settings has one, they are equal."""
    for line in find_item("tab:baseline-both").lines:
        assert line.fields.get("noise") == line.recipe.get("noise")


def test_an_unknown_name_gets_a_suggestion() -> None:
    """The nearest name is suggested; the prefix may be left out."""
    with pytest.raises(ValueError, match="Did you mean 'tab:baseline-both'"):
        find_item("tab:baseline-bth")
    with pytest.raises(ValueError, match="Did you mean 'fig:joint-ca'"):
        find_item("joint-c")
    assert find_item("timings").name == "tab:timings"


def test_later_rules_win_and_tables_within_are_merged() -> None:
    """A rule of the file comes after the common ones; what it does not name stays."""
    content = {"rules": [{"when": {"dataset": "diabetes"}, "set": {"scaling": "none", "training": {"levels": 7}}}]}
    recipe = resolve_recipe(content, {"dataset": "diabetes", "norm": "l1", "noise": 1.0})
    assert recipe["scaling"] == "none"
    assert recipe["training"] == {"class_weight": "balanced", "levels": 7, "split_step": 0.01}


def test_a_rule_fits_where_all_its_values_do() -> None:
    """A list names alternatives; a missing field does not fit."""
    assert fits({"a": [1, 2], "b": True}, {"a": 2, "b": True, "c": 0})
    assert not fits({"a": 1}, {"b": 1})
    assert merge({"a": {"b": 1}}, {"a": 2}) == {"a": 2}


def test_metrics_are_no_fields() -> None:
    """No line's identifying field carries the name of a metric."""
    assert not {field for name in TABLES for line in find_item(name).lines for field in line.fields} & set(METRICS)
