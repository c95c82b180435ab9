"""Draw the guide's pictures of a model and of a row: `python scripts/pictures.py [folder]`. They go to docs/images.

Data is drawn here, so that the pictures are the same everywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from derand import AdditiveClassifier, StumpClassifier, Threat, from_model, plot_certified_accuracy

COLOURS = 64
"""Enough for a few lines; a picture then takes some tens of kilobytes."""
DOTS_PER_INCH = 90


def make_loans(n_rows: int = 2000) -> tuple[pd.DataFrame, Any]:
    """Loans of people that there are not, and whether they were repaid."""
    rng = np.random.default_rng(0)
    loans = pd.DataFrame(
        {
            "income": rng.lognormal(8, 0.5, n_rows).round(),
            "age": rng.integers(18, 80, n_rows).astype(float),
            "amount": (rng.lognormal(9, 0.6, n_rows) / 100).round() * 100,
            "job": rng.choice(["clerk", "cook", "nurse", "pilot"], n_rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    steady = loans.job.map({"clerk": 0.0, "cook": -0.6, "nurse": 0.5, "pilot": 0.9})
    score = 1.6 * np.log(loans.income / 3000) - np.log(loans.amount / 8000) + steady - ((loans.age - 50) / 25) ** 2 / 2
    return loans, np.where(score + rng.normal(0, 0.6, n_rows) > -0.3, "repaid", "default")


def write(axes: Any, path: Path) -> None:
    """Write the figure of some axes, and make the file small."""
    axes.figure.savefig(path, dpi=DOTS_PER_INCH)
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1024} kB")


def main() -> None:
    """Draw all pictures."""
    matplotlib.use("Agg")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    loans, outcome = make_loans()
    train, test = slice(0, 1000), slice(1000, 2000)
    clf = AdditiveClassifier(radius=0.25, regularization=0.1, random_state=0).fit(loans[train], outcome[train])
    write(clf.plot()[0], folder / "plot-shapes.png")
    certificates = clf.certify(loans[test])
    weak = int(np.argsort(certificates.radius)[50])
    write(clf.explain(loans[test].iloc[weak]).plot()[0], folder / "plot-row.png")
    write(compare(loans[["income", "age", "amount"]], outcome, train, test), folder / "plot-compare.png")


def compare(loans: pd.DataFrame, outcome: Any, train: slice, test: slice) -> Any:
    """Three models on numbers alone, certified in the same units."""
    ours = AdditiveClassifier(radius=0.25, regularization=0.1, random_state=0).fit(loans[train], outcome[train])
    stumps = StumpClassifier(noise="gaussian:0.25", scaling="robust", rule="mean").fit(loans[train], outcome[train])
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(loans[train], outcome[train])
    lines, threat = from_model(plain, loans[train]), Threat(norm=2, units=ours.units)
    models = {"AdditiveClassifier": ours, "StumpClassifier": stumps, "LogisticRegression": lines}
    found = {name: model.certify(loans[test], threat=threat) for name, model in models.items()}
    return plot_certified_accuracy(found, outcome[test])


if __name__ == "__main__":
    main()
