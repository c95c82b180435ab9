"""Threats: what may change is one object, checked when it is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand import Gaussian, Threat, Uniform


def test_the_norm_is_that_of_the_noise() -> None:
    """ "auto" becomes the noise's norm, 2 without noise; another one stays, and so do units of its own."""
    assert Threat(l0=2).resolve(Gaussian(1.0)) == Threat(norm=2, l0=2)
    assert Threat(norm=1).resolve(Uniform(1.0)) == Threat(norm=1)
    assert Threat(norm=1).resolve(Gaussian(1.0, (3.0,))) == Threat(norm=1, units=(3.0,))
    assert Threat(units=[2]).resolve(Gaussian(1.0, (3.0,))) == Threat(norm=2, units=(2.0,))  # type: ignore[arg-type]
    assert Threat().resolve(None) == Threat(norm=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": 0.5}, "`norm` of Threat must be 'auto', None, 0, 1, 2 or inf, got 0.5"),
        ({"norm": True}, "`norm` of Threat"),
        ({"l0": -1}, "`l0` must be a number of categorical features"),
        ({"l0": 1.5}, "`l0` must be"),
        ({"l0": True}, "`l0` must be"),
        ({"unseen": "no"}, "`unseen` of Threat must be True or False"),
        ({"units": [1.0, -1.0]}, "`units` of Threat must be positive and finite"),
        ({"units": 3.0}, "`units` of Threat must be one positive number per column, or a dict .* got 3.0"),
        ({"units": {"age": 0.0}}, "`units` of Threat for 'age' must be positive and finite"),
        ({"frozen": "age"}, "`frozen` of Threat must be a list of columns"),
        ({"limits": {"age": "5"}}, "`limits` of Threat for 'age' must be a percentage such as '5%', got '5'"),
        ({"limits": {"age": -1}}, "`limits` of Threat for 'age' must be 0 or larger"),
        ({"limits": {"age": (1, -1)}}, "`limits` of Threat for 'age' must be 0 or larger on both sides"),
        ({"limits": {"age": float("nan")}}, "`limits` of Threat for 'age' must be 0 or larger"),
        ({"limits": {"age": (1, 2, 3)}}, "`limits` of Threat for 'age' must be '5%', a number, or"),
        ({"domain": {"age": (2, 1)}}, "`domain` of Threat for 'age' must be a pair"),
        ({"steps": {"age": 0}}, "`steps` of Threat for 'age' must be positive"),
        ({"may_become": {"job": "clerk"}}, "`may_become` of Threat for 'job' must be a list of values"),
        (
            {"missing": -1},
            "`missing` of Threat must be 'fixed' or how many numbers may go missing or appear, .* got -1",
        ),
        ({"missing": True}, "`missing` of Threat must be 'fixed' or how many"),
        ({"missing": "some"}, "`missing` of Threat must be 'fixed' or how many .* got 'some'"),
        ({"missing": 1.5}, "`missing` of Threat must be 'fixed' or how many"),
        ({"frozen": ["age"], "limits": {"age": 1}}, "`frozen` of Threat must not name 'age'"),
        ({"units": ["m"]}, "`units` of Threat must be a positive number, got 'm'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """The error names the field and what was given."""
    with pytest.raises((ValueError, TypeError), match=message):
        Threat(**arguments)


def test_columns_are_found_by_name() -> None:
    """Names become numbers, values of categories their codes; a name that is not there has a suggestion."""
    threat = Threat(limits={"income": "5%", "*": 1.0}, frozen=["age"], may_become={"job": ["clerk", "pilot"]})
    with pytest.warns(UserWarning, match="names 'pilot' for column 'job', which no training row had"):
        found = threat.name_columns(["age", "income", "job"], {2: ("clerk", "cook")})
    assert found.limits == {1: "5%", "*": 1.0}
    assert found.frozen == (0,)
    assert found.may_become[2][0] == 0.0
    assert found.may_become[2][1] == -1.0  # training did not see it
    with pytest.raises(ValueError, match=r"`limits` of Threat names the column 'incme', .* did you mean 'income'"):
        Threat(limits={"incme": 1}).name_columns(["age", "income"])


def test_missing_numbers_are_fixed_unless_a_budget_says_otherwise() -> None:
    """The word "fixed" is a budget of 0."""
    assert [Threat(missing=missing).missing_budget for missing in ("fixed", 0, np.int64(3))] == [0, 0, 3]
    assert Threat(missing=2) == Threat(missing=2) != Threat(missing=1)
    assert hash(Threat(missing=2)) == hash(Threat(missing=2))


def test_a_missing_category_is_none_among_what_others_may_become() -> None:
    """None is a missing one, NaN as a code; any other value that training did not see has the code -1."""
    found = Threat(may_become={0: [None, "cook", "pilot"]}).name_columns(None, {0: ("clerk", "cook")})
    assert np.isnan(found.may_become[0][0])
    assert found.may_become[0][1:] == (1.0, -1.0)


def test_whole_is_spelt_out_where_the_columns_are_known() -> None:
    """Steps of its own, domains of its own and columns that stay are left alone; twice is once."""
    columns = {0: (0, 9), 1: (0, 1), 2: (0, 1), 3: (1, 5)}
    given = Threat(norm=None, limits={0: 3, 1: 1, 2: 1}, steps={0: 2}, domain={2: (0, 4)}, whole=True)
    assert given.name_columns(["a", "b", "c", "d"]).whole
    found = given.name_columns(None, whole=columns)
    assert (found.steps, found.domain) == ({0: 2.0, 1: 1.0, 2: 1.0}, {1: (0.0, 1.0), 2: (0.0, 4.0)})
    assert found.name_columns(None, whole=columns) == found
    assert given != replace(given, whole=False)


def test_budgets_of_any_size_are_taken() -> None:
    """More than there are columns counts as all of them."""
    assert Threat(l0=10**400, missing=10**400).l0 == Threat(l0=2**40).l0
