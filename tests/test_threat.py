"""Threats: what may change is one object, checked when it is made."""

from __future__ import annotations

from typing import Any

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
        ({"norm": 0.5}, "`norm` of Threat must be 'auto', None, 0, or a number from 1 on, got 0.5"),
        ({"norm": True}, "`norm` of Threat"),
        ({"l0": -1}, "`l0` must be a number of categorical features"),
        ({"l0": 1.5}, "`l0` must be"),
        ({"l0": True}, "`l0` must be"),
        ({"unseen": "no"}, "`unseen` of Threat must be True or False"),
        ({"units": [1.0, -1.0]}, "`units` of Threat must be positive and finite"),
        ({"units": ["m"]}, "`units` of Threat must be a positive number, got 'm'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """The error names the field and what was given."""
    with pytest.raises((ValueError, TypeError), match=message):
        Threat(**arguments)
