"""The demo: train on bundled data, certify held-out rows, draw a plot, write a report. A plain dict out.

Must not know the command line or how results are printed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from derand import plot
from derand._core.arrays import FloatArray
from derand._core.files import PathLike, replace_when_done
from derand.app import Summary
from derand.certificates import Certificates
from derand.datasets import Dataset, load
from derand.estimators import AdditiveClassifier
from derand.metrics import average_certified_radius, certified_accuracy
from derand.report import Report
from derand.tables import Labels

RADIUS = 0.25
"""What the model is trained for, in interquartile ranges."""
RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
_SHOWN_ROWS = 5


def run_demo(folder: PathLike) -> Summary:
    """Train and certify an AdditiveClassifier on scikit-learn's breast-cancer data and show the results.

    Writes `certified_accuracy.png` and `report.html`.

    Parameters
    ----------
    folder : path-like
        Created where it is missing.

    Returns
    -------
    dict
        Accuracy, certified accuracy at RADII, average certified radius, the most and the least certain test
        rows, the seconds each step took, and the paths of the plot and the report.
        `radius`: what it was trained for.
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
) -> list[Summary]:
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
