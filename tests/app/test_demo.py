"""The demo: its numbers are those of the library, and it leaves a plot and a report behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from derand import average_certified_radius, certified_accuracy
from derand.app.demo import RADII, RADIUS
from derand.datasets import load
from derand.estimators import AdditiveClassifier
from tests.app.commands.running import run


def test_the_demo_reports_held_out_rows(tmp_path: Path) -> None:
    """Accuracy and radii are those of a classifier trained on the training rows and certified on the test rows.

    The folder is made where it is missing, and holds a PNG file, a page and nothing else.
    """
    folder = tmp_path / "new" / "folder"
    result = json.loads(run("demo", "--json", "--output", folder).stdout)
    picture, page = sorted(folder.iterdir())
    assert (result["plot"], result["report"]) == (str(picture), str(page))
    assert "<title>Breast cancer, held-out patients</title>" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    data = load("sklearn_breast_cancer")
    train, test = data.split
    labels = np.array(data.target_names)[data.y]
    assert result["radius"] == RADIUS
    model = AdditiveClassifier(radius=RADIUS, regularization=result["regularization"])
    certificates = model.fit(data.X[train], labels[train]).certify(data.X[test])
    assert (result["noise"], result["norm"]) == (str(model.noise_), certificates.norm)
    assert [entry["radius"] for entry in result["certified_accuracy"]] == list(RADII)
    shares = certified_accuracy(labels[test], certificates, RADII)
    assert [entry["share"] for entry in result["certified_accuracy"]] == shares.tolist()
    assert result["average_certified_radius"] == average_certified_radius(labels[test], certificates)
    assert result["accuracy"] > 0.95
    assert shares[RADII.index(RADIUS)] > 0.9

    ordered = np.sort(certificates.radius)
    assert [row["radius"] for row in result["most_certain"]] == ordered[::-1][:5].tolist()
    assert [row["radius"] for row in result["least_certain"]] == ordered[:5].tolist()
    for row in result["most_certain"] + result["least_certain"]:
        assert 0.5 <= row["probability"] <= 1
        assert row["correct"] == (row["label"] == labels[test][row["row"] - 1])
