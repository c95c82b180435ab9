"""The demo: train on bundled data, certify held-out rows, draw a plot, write a report. A plain dict out.

Must not know the command line or how results are printed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TypedDict

import numpy as np

from derand import plot
from derand._core.arrays import FloatArray
from derand._core.files import PathLike, replace_when_done
from derand.certificates import Certificates
from derand.datasets import Dataset, load
from derand.estimators import AdditiveClassifier
from derand.metrics import ShareAtRadius, average_certified_radius, certified_accuracy
from derand.report import Report
from derand.tables import Labels

RADIUS = 0.25
"""What the model is trained for, in interquartile ranges."""
RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
_SHOWN_ROWS = 5


class DemoRow(TypedDict):
    """A test row; rows count from 1, as in the report."""

    row: int
    label: str
    correct: bool
    probability: float
    """Of the label."""
    failure: float
    """Of a vote; NaN by the rule "mean"."""
    radius: float


class DemoSeconds(TypedDict):
    """How long the steps took."""

    compile: float
    train: float
    certify: float


class DemoResult(TypedDict):
    """What the demo found and where it wrote it."""

    dataset: str
    training_rows: int
    test_rows: int
    radius: float
    """What it was trained for."""
    regularization: float
    noise: str
    norm: float
    accuracy: float
    certified_accuracy: list[ShareAtRadius]
    average_certified_radius: float
    most_certain: list[DemoRow]
    least_certain: list[DemoRow]
    plot: str
    report: str
    seconds: DemoSeconds


def run_demo(folder: PathLike) -> DemoResult:
    """Train and certify an AdditiveClassifier on scikit-learn's breast-cancer data and show the results.

    Writes `certified_accuracy.png` and `report.html`.

    Parameters
    ----------
    folder : path-like
        Created where it is missing.

    Returns
    -------
    DemoResult
        A dict: accuracy, certified accuracy at RADII, average certified radius, the most and the least certain test
        rows, the seconds each step took, and the paths of the plot and the report.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)  # where it cannot be made, nobody waits for the training
    data = load("sklearn_breast_cancer")
    labels = np.array(data.target_names)[data.y]
    train, test = data.split
    opened = time.perf_counter()
    small = AdditiveClassifier(radius=RADIUS, regularization=1.0)
    small.fit([[0.0], [1.0]] * 4, [0, 1] * 4).certify([[0.0]])  # compiles
    started = time.perf_counter()
    model = AdditiveClassifier(radius=RADIUS).fit(data.X[train], labels[train])
    trained = time.perf_counter()
    certificates = model.certify(data.X[test])
    certified = time.perf_counter()
    probability = model.predict_proba(data.X[test]).max(axis=1)
    order = np.argsort(-certificates.radius, kind="stable").tolist()
    return {
        "dataset": data.provenance,
        "training_rows": len(train),
        "test_rows": len(test),
        "radius": RADIUS,
        "regularization": model.regularization_,
        "noise": str(model.noise_),
        "norm": model.norm,
        "accuracy": float((certificates.label == labels[test]).mean()),
        "certified_accuracy": [
            {"radius": radius, "share": float(share)}
            for radius, share in zip(RADII, certified_accuracy(labels[test], certificates, RADII), strict=True)
        ],
        "average_certified_radius": average_certified_radius(labels[test], certificates),
        "most_certain": _describe_rows(certificates, labels[test], probability, order[:_SHOWN_ROWS]),
        "least_certain": _describe_rows(certificates, labels[test], probability, order[: -_SHOWN_ROWS - 1 : -1]),
        "plot": os.fspath(_write_plot(certificates, labels[test], Path(folder))),
        "report": os.fspath(_write_report(model, data, Path(folder))),
        "seconds": {"compile": started - opened, "train": trained - started, "certify": certified - trained},
    }


def _describe_rows(
    certificates: Certificates, labels: Labels, probability: FloatArray, rows: list[int]
) -> list[DemoRow]:
    return [
        {
            "row": at + 1,
            "label": str(certificates.label[at]),
            "correct": bool(certificates.label[at] == labels[at]),
            "probability": float(probability[at]),
            "failure": float(certificates.failure[at]),
            "radius": float(certificates.radius[at]),
        }
        for at in rows
    ]


def _write_plot(certificates: Certificates, labels: Labels, folder: Path) -> Path:
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "certified_accuracy.png"
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = plot.certified_accuracy(labels, certificates, figure.subplots())
    axes.set_title("Breast cancer, test rows; radius in interquartile ranges")
    with replace_when_done(path) as draft:
        figure.savefig(draft, format="png", dpi=150)
    return path


def _write_report(model: AdditiveClassifier, data: Dataset, folder: Path) -> Path:
    labels = np.array(data.target_names)[data.y]
    train, test = data.split
    path = folder / "report.html"
    Report(
        model,
        data.X[test],
        labels[test],
        X_train=data.X[train],
        y_train=labels[train],
        feature_names=data.feature_names,
        subgroups=["mean area"],
        title="Breast cancer, held-out patients",
    ).write_html(path)
    return path
