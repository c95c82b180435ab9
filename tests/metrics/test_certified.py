"""Metrics: shares and means of certified rows, and labels that do not belong are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from derand import Certificates, Threat, average_certified_radius, certified_accuracy
from derand.metrics import certified_share


def make_certificates(label: list[object], radius: list[float], classes: list[object] | None = None) -> Certificates:
    failure = np.full(len(radius), 0.1)
    return Certificates(
        np.array(label), failure, np.log(failure), np.array(radius), Threat(norm=2), classes=np.array(classes or [0, 1])
    )


CERTIFICATES = make_certificates([0, 0, 1, 1, 1], [0.0, 1.0, 0.5, 2.0, math.inf])


def test_certified_accuracy_counts_correct_rows_whose_radius_reaches() -> None:
    """A row counts where its label is right and its radius at least r; at r = 0 the radius must be positive."""
    y = [0, 0, 1, 0, 1]
    radii = [0.0, 0.5, math.nextafter(0.5, 1), 1.0, 1.5, math.inf]
    assert certified_accuracy(y, CERTIFICATES, radii).tolist() == [0.6, 0.6, 0.4, 0.4, 0.2, 0.2]
    assert certified_accuracy(y, CERTIFICATES, 0.5).tolist() == [0.6]


def test_balanced_accuracy_is_the_mean_over_classes() -> None:
    """The balanced form averages the shares within each class that occurs."""
    y = [0, 0, 1, 0, 1]
    balanced = certified_accuracy(y, CERTIFICATES, [0.0, 1.0], balanced=True)
    np.testing.assert_allclose(balanced, [(1 / 3 + 2 / 2) / 2, (1 / 3 + 1 / 2) / 2])
    only_one = certified_accuracy([1, 1, 1, 1, 1], CERTIFICATES, [0.0], balanced=True)
    np.testing.assert_allclose(only_one, [0.6])


def test_average_certified_radius_counts_wrong_rows_as_zero() -> None:
    """Rows with a wrong label add nothing; an infinite radius makes the mean infinite."""
    assert average_certified_radius([0, 0, 1, 0, 0], CERTIFICATES) == pytest.approx((0.0 + 1.0 + 0.5) / 5)
    assert average_certified_radius([0, 0, 1, 0, 1], CERTIFICATES) == math.inf


def test_labels_may_be_any_classes() -> None:
    """Text labels work where they are the certificates' classes."""
    certificates = make_certificates(["no", "yes"], [1.0, 1.0], ["no", "yes"])
    assert certified_accuracy(["no", "no"], certificates, [0.0]).tolist() == [0.5]
    assert average_certified_radius(["no", "yes"], certificates) == 1.0


@pytest.mark.parametrize(
    ("y", "radii", "words"),
    [
        ([0, 0, 1, 1, -1], [0.0], ["`y`", "[0, 1]", "-1"]),
        ([0, 0, 1, 1, 2], [0.0], ["`y`", "[0, 1]", "2"]),
        ([0, 0, 1, 1, math.nan], [0.0], ["`y`", "[0, 1]", "nan"]),
        (["no"] * 5, [0.0], ["`y`", "[0, 1]", "'no'"]),
        ([0, 1], [0.0], ["`y`", "one label per certificate", "5", "(2,)"]),
        ([[0, 0, 1, 1, 1]], [0.0], ["`y`", "(1, 5)"]),
        ([0, 0, 1, 1, 1], [-0.5], ["`radii`", "0 or larger", "-0.5"]),
        ([0, 0, 1, 1, 1], [math.nan], ["`radii`", "nan"]),
        ([0, 0, 1, 1, 1], [[0.0]], ["`radii`", "list"]),
    ],
)
def test_bad_metric_input(y: list[object], radii: list[float], words: list[str]) -> None:
    """Foreign labels, wrong lengths and negative radii are refused in words that name the parameter and the rule."""
    with pytest.raises(ValueError, match="`") as caught:
        certified_accuracy(y, CERTIFICATES, radii)
    for word in words:
        assert word in str(caught.value)


def test_no_rows_are_refused() -> None:
    """The mean over no rows is an error, not NaN."""
    with pytest.raises(ValueError, match="`y` must hold at least one label"):
        average_certified_radius([], make_certificates([], []))


def test_certified_share_counts_chosen_rows_whose_radius_reaches() -> None:
    """The same on plain arrays, for what is no certificate: an answer that nothing can change has a flat curve."""
    correct = np.array([0, 0, 1, 0, 1]) == CERTIFICATES.label
    radii = [0.0, 0.5, 1.0, math.inf]
    shares = certified_accuracy([0, 0, 1, 0, 1], CERTIFICATES, radii)
    assert certified_share(correct, CERTIFICATES.radius, radii).tolist() == shares.tolist()
    assert certified_share([True, False], [math.inf, math.inf], radii).tolist() == [0.5] * 4
    for counted, radius in (([], []), ([True], [1.0, 2.0]), ([[True]], [[1.0]])):
        with pytest.raises(ValueError, match="one entry per row"):
            certified_share(counted, radius, [0.0])
    with pytest.raises(ValueError, match="`radii` must be"):
        certified_share([True], [1.0], [-1.0])
