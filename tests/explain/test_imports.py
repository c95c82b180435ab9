"""Fitting and certifying draw nothing, and do not import what draws."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from derand import AdditiveClassifier
fitted = AdditiveClassifier(regularization=1.0).fit([[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5)
assert fitted.certify([[0.0]]).label.size == 1
print([name for name in sys.modules if name.startswith(("derand.explain.plots", "matplotlib"))])
"""


def test_fit_imports_no_plots() -> None:
    """Neither `derand.explain.plots` nor matplotlib: what pictures need of the training rows is measured elsewhere."""
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
